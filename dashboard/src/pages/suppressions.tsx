/** The page of suppression lists: search, add, remove, import and export. */
import { Anchor, Box, Button, Group } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useState } from 'react';
import { AccountSelect } from '../accounts/account-select';
import { useAccounts } from '../accounts/queries';
import { path } from '../api/client';
import { useUrlState } from '../api/url-state';
import { DownloadButton } from '../parts/download';
import { FilterBox } from '../parts/filter-box';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { AddSuppressionDialog } from '../suppressions/add-dialog';
import { ImportDialog } from '../suppressions/import-dialog';
import { formatListOwner, SERVICE_LIST } from '../suppressions/list-owner';
import { useSuppressionPage } from '../suppressions/queries';
import { SuppressionDetails } from '../suppressions/suppression-details';
import { SuppressionTable } from '../suppressions/suppression-table';

/** The pause in typing after which the search starts. */
const DEBOUNCE_MS = 250;

export function SuppressionsPage() {
  const accounts = useAccounts();
  const [urlState, setUrlState] = useUrlState();
  const [dialog, setDialog] = useState<'add' | 'import' | null>(null);
  const list = urlState.get('list') ?? getDefaultList(accounts.data);
  const selected = urlState.get('address');
  if (list === null) return <PageWithoutList error={accounts.error} retry={accounts.refetch} />;
  return (
    <>
      <PageHead title="Suppressions">
        <Group gap="xs">
          <Button onClick={() => setDialog('add')}>Add address</Button>
          <Button variant="default" onClick={() => setDialog('import')}>
            Import
          </Button>
          <DownloadButton
            apiPath={path`/accounts/${list}/suppressions/export`}
            name={`suppressions-${list === SERVICE_LIST ? 'service' : list}.csv`}
            label={`Export the suppression list of ${formatListOwner(list)} as CSV`}
          />
        </Group>
      </PageHead>
      {selected === null ? null : (
        <SuppressionDetails key={selected} address={selected} onClose={() => setUrlState({ address: null })} />
      )}
      <AddressList key={list} list={list} onSelect={(address) => setUrlState({ address })} />
      {dialog === 'add' ? <AddSuppressionDialog list={list} onClose={() => setDialog(null)} /> : null}
      {dialog === 'import' ? <ImportDialog list={list} onClose={() => setDialog(null)} /> : null}
    </>
  );
}

/** Returns the account `default`, or the first account, or `*` for the whole service. */
function getDefaultList(accounts: readonly { readonly name: string }[] | undefined): string | null {
  if (accounts === undefined) return null;
  return accounts.find(({ name }) => name === 'default')?.name ?? accounts[0]?.name ?? SERVICE_LIST;
}

function PageWithoutList({ error, retry }: { readonly error: unknown; readonly retry: () => unknown }) {
  return (
    <>
      <PageHead title="Suppressions" />
      {error === null ? <Loading /> : <ErrorAlert error={error} retry={retry} />}
    </>
  );
}

function AddressList({ list, onSelect }: { readonly list: string; readonly onSelect: (address: string) => void }) {
  const [urlState, setUrlState] = useUrlState();
  const search = urlState.get('search') ?? '';
  const after = urlState.get('after') ?? '';
  const [typedText, setTypedText] = useState(search);
  const page = useSuppressionPage(list, search, after);
  const setSearchDebounced = useDebouncedCallback(
    (text: string) => setUrlState({ search: text, after: null }, true),
    DEBOUNCE_MS,
  );
  const entries = page.data?.suppressions ?? [];
  const next = page.data?.next ?? null;
  return (
    <>
      <Group align="flex-end" mb="md">
        <Box flex="1 1 12rem" maw="22rem">
          <AccountSelect
            label="List"
            service
            value={list}
            onChange={(name) => setUrlState({ list: name, after: null, address: null })}
          />
        </Box>
        <FilterBox
          label="Search"
          placeholder="ada@example.com, ada, or @example.com"
          value={typedText}
          onChange={(text) => {
            setTypedText(text);
            setSearchDebounced(text);
          }}
        />
      </Group>
      {page.isPending ? <Loading /> : null}
      {page.isError ? <ErrorAlert error={page.error} retry={page.refetch} /> : null}
      {page.isSuccess && entries.length === 0 ? (
        <NoMatchingAddress list={list} search={search} onSelect={onSelect} />
      ) : null}
      {page.isSuccess && entries.length > 0 ? (
        <SuppressionTable list={list} entries={entries} onSelect={onSelect} />
      ) : null}
      <Group justify="space-between" my="md">
        {after === '' ? (
          <span />
        ) : (
          <Button variant="default" onClick={() => setUrlState({ after: null })}>
            First page
          </Button>
        )}
        {next === null ? null : (
          <Button variant="default" loading={page.isPlaceholderData} onClick={() => setUrlState({ after: next })}>
            Next page
          </Button>
        )}
      </Group>
    </>
  );
}

interface NoMatchingAddressProps {
  readonly list: string;
  readonly search: string;
  readonly onSelect: (address: string) => void;
}

/** Shows that no address matches. A complete address may be on another list, so the page offers to search all lists. */
function NoMatchingAddress({ list, search, onSelect }: NoMatchingAddressProps) {
  if (search === '')
    return (
      <EmptyState title={`The suppression list of ${formatListOwner(list)} is empty`}>
        No address is suppressed by this list.
      </EmptyState>
    );
  const isCompleteAddress = search.indexOf('@') > 0;
  return (
    <EmptyState title={`No match on the suppression list of ${formatListOwner(list)}`}>
      {isCompleteAddress ? (
        <Anchor component="button" type="button" onClick={() => onSelect(search)}>
          Search all lists for {search}
        </Anchor>
      ) : (
        'A search matches the beginning of an address or, after an @, of its domain.'
      )}
    </EmptyState>
  );
}
