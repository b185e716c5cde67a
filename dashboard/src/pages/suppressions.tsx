/** The Suppressions page: search, add, remove, import and export. */
import { Anchor, Button, Group } from '@mantine/core';
import { useState } from 'react';
import { useAccounts } from '../accounts/queries';
import { path } from '../api/client';
import { useUrlState } from '../api/url-state';
import { DownloadButton } from '../parts/download';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { PageTurner } from '../parts/page-turner';
import { useRowKeys } from '../parts/use-row-keys';
import { AddSuppressionDialog } from '../suppressions/add-dialog';
import { readEntryFilters, SuppressionFilters } from '../suppressions/filters';
import { ImportDialog } from '../suppressions/import-dialog';
import { formatListOwner, SERVICE_LIST } from '../suppressions/list-owner';
import { PAGE_SIZE, useSuppressionPage } from '../suppressions/queries';
import { SuppressionDetails } from '../suppressions/suppression-details';
import { SuppressionTable } from '../suppressions/suppression-table';

export function SuppressionsPage() {
  const accounts = useAccounts();
  const [urlState, setUrlState] = useUrlState();
  const [dialog, setDialog] = useState<'add' | 'import' | null>(null);
  const list = urlState.get('list') ?? getDefaultList(accounts.data);
  const selectedAddress = urlState.get('address');
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
      {selectedAddress === null ? null : (
        <SuppressionDetails
          key={selectedAddress}
          address={selectedAddress}
          onClose={() => setUrlState({ address: null })}
        />
      )}
      <SuppressionFilters list={list} />
      <AddressList
        key={list}
        list={list}
        selectedAddress={selectedAddress}
        onSelect={(address) => setUrlState({ address })}
      />
      {dialog === 'add' ? <AddSuppressionDialog list={list} onClose={() => setDialog(null)} /> : null}
      {dialog === 'import' ? <ImportDialog list={list} onClose={() => setDialog(null)} /> : null}
    </>
  );
}

/**
 * Returns the list to show first: the account `default` if it exists, otherwise the first account, or `*` (the whole
 * service) if no account exists. Returns null if the accounts are not loaded.
 */
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

interface AddressListProps {
  readonly list: string;
  readonly selectedAddress: string | null;
  readonly onSelect: (address: string) => void;
}

function AddressList({ list, selectedAddress, onSelect }: AddressListProps) {
  const [urlState, setUrlState] = useUrlState();
  const search = urlState.get('search') ?? '';
  const after = urlState.get('after') ?? '';
  const filters = readEntryFilters(urlState);
  const page = useSuppressionPage(list, search, filters, after);
  const entries = page.data?.suppressions ?? [];
  const nextAddress = page.data?.next ?? null;
  const currentAddress = useRowKeys({ ids: entries.map(({ address }) => address), onOpen: onSelect });
  const isFiltered = Object.keys(filters).length > 0;
  // A request examines a limited number of entries, so a page without a match may not be the last page.
  const isIncompletePage = nextAddress !== null && entries.length < PAGE_SIZE;
  if (page.isPending) return <Loading />;
  if (page.isError) return <ErrorAlert error={page.error} retry={page.refetch} />;
  if (entries.length === 0 && nextAddress === null && after === '')
    return <NoMatchingAddress list={list} search={search} isFiltered={isFiltered} onSelect={onSelect} />;
  return (
    <div className="card flush">
      <SuppressionTable
        list={list}
        entries={entries}
        currentAddress={currentAddress}
        selectedAddress={selectedAddress}
        onSelect={onSelect}
      />
      <PageTurner
        note={isIncompletePage ? `Examined the list up to ${nextAddress}` : 'In alphabetical order'}
        firstButton={after === '' ? null : { label: 'First page', onTurn: () => setUrlState({ after: null }) }}
        nextButton={
          nextAddress === null
            ? null
            : {
                label: isIncompletePage ? 'Continue search' : 'Next page',
                onTurn: () => setUrlState({ after: nextAddress }),
              }
        }
        isLoading={page.isPlaceholderData}
      />
    </div>
  );
}

interface NoMatchingAddressProps {
  readonly list: string;
  readonly search: string;
  /** True if a filter other than the search text is set. */
  readonly isFiltered: boolean;
  readonly onSelect: (address: string) => void;
}

/**
 * Shows that no address matches. If the search text is a complete address, the page offers to search all lists, because
 * the address may be on another list.
 */
function NoMatchingAddress({ list, search, isFiltered, onSelect }: NoMatchingAddressProps) {
  if (isFiltered)
    return (
      <EmptyState title={`No match on the suppression list of ${formatListOwner(list)}`}>
        No entry matches the search text and the filters. Remove a filter.
      </EmptyState>
    );
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
        'A search text matches the beginning of an address. A search text that begins with @ matches the beginning of a domain.'
      )}
    </EmptyState>
  );
}
