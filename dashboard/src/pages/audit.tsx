/** The audit log: actor, action, target, and the values before and after, newest first. */
import { Button } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useLocation } from 'wouter';
import { AUDITED_NOUNS } from '../../../src/model/audit.ts';
import type { AuditRecord } from '../../../src/operations/audit.ts';
import { get } from '../api/client';
import { useUrlState } from '../api/url-state';
import { EntryRow, findTargetPage } from '../audit/entry';
import { FilterChip, FilterValues } from '../parts/filter-chip';
import { KeyHints } from '../parts/key-hint';
import { ListHead } from '../parts/list-row';
import { NewRowsButton } from '../parts/new-rows-button';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { findOlderPageStart, OlderPages, toListPage } from '../parts/page-turner';
import { useSteadyRows } from '../parts/steady-rows';
import { TextFilter } from '../parts/text-filter';
import { useRowKeys } from '../parts/use-row-keys';

const PAGE_SIZE = 50;

export function AuditPage() {
  const [urlState] = useUrlState();
  const [, navigate] = useLocation();
  const filters = {
    target: urlState.get('target') ?? '',
    action: urlState.get('action') ?? '',
    actor: urlState.get('actor') ?? '',
  };
  const before = urlState.get('before') ?? '';
  const isFiltered = Object.values(filters).some((value) => value !== '');
  const log = useQuery({
    queryKey: ['audit', filters, before],
    queryFn: () => get<readonly AuditRecord[]>('/audit', { ...filters, before, limit: PAGE_SIZE + 1 }),
    placeholderData: keepPreviousData,
  });
  const page = toListPage(log.data, PAGE_SIZE);
  const latestEntries = log.isSuccess && !log.isPlaceholderData ? page.rows : undefined;
  const { rows, newCount, showNew } = useSteadyRows(latestEntries, JSON.stringify([filters, before]));
  // While another page of the log loads, the rows of the current page remain on the screen.
  const entries = log.isPlaceholderData ? page.rows : rows;
  const olderPageStart = findOlderPageStart(page, entries);
  const openTarget = (id: string) => {
    const entry = entries.find((candidate) => String(candidate.id) === id);
    const targetPage = entry === undefined ? null : findTargetPage(entry.action, entry.target);
    if (targetPage !== null) navigate(targetPage);
  };
  const currentId = useRowKeys({ ids: entries.map(({ id }) => String(id)), onOpen: openTarget });
  return (
    <>
      <PageHead title="Audit log" />
      <AuditFilters {...filters} />
      {log.isPending ? <Loading /> : null}
      {log.isError ? <ErrorAlert error={log.error} retry={log.refetch} /> : null}
      {log.isSuccess && entries.length === 0 ? <NoEntries isFiltered={isFiltered} isFirstPage={before === ''} /> : null}
      <NewRowsButton count={newCount} noun="entry" nounPlural="entries" onShow={showNew} />
      {entries.length === 0 ? null : (
        <div className="card flush">
          <table className="list from-top">
            <caption className="unseen">Entries of the audit log, newest first</caption>
            <ListHead columns={['Action and target', 'Change', 'Actor', 'Time']} />
            <tbody>
              {entries.map((entry) => (
                <EntryRow
                  key={entry.id}
                  entry={entry}
                  isCurrent={currentId === String(entry.id)}
                  onOpen={() => openTarget(String(entry.id))}
                />
              ))}
            </tbody>
          </table>
          <OlderPages
            olderPageStart={olderPageStart}
            note={isFiltered ? 'Matches among the newest 20,000 entries, newest first' : 'Newest first'}
            isLoading={log.isPlaceholderData}
          />
        </div>
      )}
    </>
  );
}

interface AuditFiltersProps {
  readonly target: string;
  readonly action: string;
  readonly actor: string;
}

function AuditFilters({ target, action, actor }: AuditFiltersProps) {
  const [, setUrlState] = useUrlState();
  const changeFilter = (name: string, value: string | null, typed = false) =>
    setUrlState({ [name]: value, before: null }, typed);
  return (
    <search className="filters" aria-label="Audit log">
      <TextFilter
        label="Search targets"
        placeholder="Target, such as an account or domain"
        value={target}
        onApply={(text) => changeFilter('target', text, true)}
        isMain
        isInline
      />
      <FilterChip label="Action" value={action} onClear={() => changeFilter('action', null)}>
        <FilterValues
          label="Action"
          values={AUDITED_NOUNS}
          chosenText={action}
          onChange={(values) => changeFilter('action', values.join(','))}
        />
      </FilterChip>
      <FilterChip label="Actor" value={actor} onClear={() => changeFilter('actor', null)}>
        <TextFilter
          label="Actor"
          placeholder="page, token:ci or cli:root"
          value={actor}
          onApply={(text) => changeFilter('actor', text, true)}
        />
      </FilterChip>
      {target + action + actor === '' ? null : (
        <Button
          variant="subtle"
          size="compact-sm"
          onClick={() => setUrlState({ target: null, action: null, actor: null, before: null })}
        >
          Clear filters
        </Button>
      )}
      <KeyHints openLabel="open the target" />
    </search>
  );
}

function NoEntries({ isFiltered, isFirstPage }: { readonly isFiltered: boolean; readonly isFirstPage: boolean }) {
  if (isFiltered)
    return (
      <EmptyState title="No entry matches">
        Filters examine only the newest 20,000 entries. Clear the filters to show all entries.
      </EmptyState>
    );
  return (
    <EmptyState title={isFirstPage ? 'No entries' : 'No older entries'}>
      The audit log has an entry for each change that an operator makes to accounts, keys, domains, suppression lists
      and messages.
    </EmptyState>
  );
}
