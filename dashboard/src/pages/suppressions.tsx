/** Suppressions: which addresses get no mail, and why; whole lists in and out as CSV. */
import { Anchor, Box, Button, Group } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useState } from 'react';
import { AccountSelect } from '../accounts/account-select';
import { useAccounts } from '../accounts/queries';
import { useAddress } from '../api/address';
import { path } from '../api/client';
import { AddDialog } from '../lists/add-dialog';
import { ImportDialog } from '../lists/import-dialog';
import { listName, SERVICE } from '../lists/list-name';
import { ListTable } from '../lists/list-table';
import { useSearch } from '../lists/queries';
import { Why } from '../lists/why';
import { DownloadButton } from '../parts/download';
import { FilterBox } from '../parts/filter-box';
import { PageHead } from '../parts/page-head';
import { Empty, Failure, Loading } from '../parts/states';

/** A pause in typing after which the list is searched. */
const PAUSE_MS = 250;

export function SuppressionsPage() {
  const accounts = useAccounts();
  const [address, setAddress] = useAddress();
  const [doing, setDoing] = useState<'add' | 'import' | null>(null);
  const list = address.get('list') ?? firstOf(accounts.data);
  const why = address.get('address');
  if (list === null) return <Waiting error={accounts.error} retry={accounts.refetch} />;
  return (
    <>
      <PageHead title="Suppressions">
        <Group gap="xs">
          <Button onClick={() => setDoing('add')}>Add address</Button>
          <Button variant="default" onClick={() => setDoing('import')}>
            Import
          </Button>
          <DownloadButton
            at={path`/accounts/${list}/suppressions/export`}
            name={`suppressions-${list === SERVICE ? 'service' : list}.csv`}
            label={`Export the list of ${listName(list)} as CSV`}
          />
        </Group>
      </PageHead>
      {why === null ? null : <Why key={why} address={why} onClose={() => setAddress({ address: null })} />}
      <Listed key={list} list={list} onWhy={(one) => setAddress({ address: one })} />
      {doing === 'add' ? <AddDialog list={list} onClose={() => setDoing(null)} /> : null}
      {doing === 'import' ? <ImportDialog list={list} onClose={() => setDoing(null)} /> : null}
    </>
  );
}

/** The list of the account that every installation begins with, or the first there is. */
function firstOf(accounts: readonly { readonly name: string }[] | undefined): string | null {
  if (accounts === undefined) return null;
  return accounts.find(({ name }) => name === 'default')?.name ?? accounts[0]?.name ?? SERVICE;
}

function Waiting({ error, retry }: { readonly error: unknown; readonly retry: () => unknown }) {
  return (
    <>
      <PageHead title="Suppressions" />
      {error === null ? <Loading /> : <Failure error={error} retry={retry} />}
    </>
  );
}

function Listed({ list, onWhy }: { readonly list: string; readonly onWhy: (address: string) => void }) {
  const [address, setAddress] = useAddress();
  const search = address.get('search') ?? '';
  const after = address.get('after') ?? '';
  const [typed, setTyped] = useState(search);
  const found = useSearch(list, search, after);
  const later = useDebouncedCallback((text: string) => setAddress({ search: text, after: null }, true), PAUSE_MS);
  const entries = found.data?.suppressions ?? [];
  const next = found.data?.next ?? null;
  return (
    <>
      <Group align="flex-end" mb="md">
        <Box flex="1 1 12rem" maw="22rem">
          <AccountSelect
            label="List"
            service
            value={list}
            onChange={(name) => setAddress({ list: name, after: null, address: null })}
          />
        </Box>
        <FilterBox
          label="Search"
          placeholder="ada@example.com, ada, or @example.com"
          value={typed}
          onChange={(text) => {
            setTyped(text);
            later(text);
          }}
        />
      </Group>
      {found.isPending ? <Loading /> : null}
      {found.isError ? <Failure error={found.error} retry={found.refetch} /> : null}
      {found.isSuccess && entries.length === 0 ? <Nothing list={list} search={search} onWhy={onWhy} /> : null}
      {found.isSuccess && entries.length > 0 ? <ListTable list={list} entries={entries} onWhy={onWhy} /> : null}
      <Group justify="space-between" my="md">
        {after === '' ? (
          <span />
        ) : (
          <Button variant="default" onClick={() => setAddress({ after: null })}>
            From the beginning
          </Button>
        )}
        {next === null ? null : (
          <Button variant="default" loading={found.isPlaceholderData} onClick={() => setAddress({ after: next })}>
            Next page
          </Button>
        )}
      </Group>
    </>
  );
}

interface NothingProps {
  readonly list: string;
  readonly search: string;
  readonly onWhy: (address: string) => void;
}

/** What is written out as an address may be on another list. */
function Nothing({ list, search, onWhy }: NothingProps) {
  if (search === '')
    return <Empty title={`The list of ${listName(list)} is empty`}>It keeps no address from getting mail.</Empty>;
  const whole = search.indexOf('@') > 0;
  return (
    <Empty title={`Nothing on the list of ${listName(list)} begins like that`}>
      {whole ? (
        <Anchor component="button" type="button" onClick={() => onWhy(search)}>
          Look for {search} on every list
        </Anchor>
      ) : (
        'Addresses are found by their beginning, and by that of their domain behind an @.'
      )}
    </Empty>
  );
}
