/** The filters of a suppression list, in the URL: list, reason, source and time. */
import { Button } from '@mantine/core';
import { SUPPRESSION_REASONS } from '../../../src/model/suppression.ts';
import { AccountSelect } from '../accounts/account-select';
import { useUrlState } from '../api/url-state';
import { TIME_RANGES } from '../messages/filters';
import { FilterChip, FilterChoice, FilterValues } from '../parts/filter-chip';
import { KeyHints } from '../parts/key-hint';
import { TextFilter } from '../parts/text-filter';
import { SERVICE_LIST } from './list-owner';

/** The parameters that filter the entries of a suppression list, without the search text. */
export const ENTRY_FILTERS = ['reason', 'source', 'since', 'until'] as const;
export type EntryFilters = Readonly<Partial<Record<(typeof ENTRY_FILTERS)[number], string>>>;

const SOURCE_OPTIONS = [
  { value: 'message', label: 'A message' },
  { value: 'none', label: 'An operator or an import' },
] as const;

export function readEntryFilters(urlState: URLSearchParams): EntryFilters {
  return Object.fromEntries(
    ENTRY_FILTERS.flatMap((name) => {
      const value = urlState.get(name) ?? '';
      return value === '' ? [] : [[name, value]];
    }),
  );
}

export function SuppressionFilters({ list }: { readonly list: string }) {
  const [urlState, setUrlState] = useUrlState();
  const { reason, source, since } = readEntryFilters(urlState);
  const search = urlState.get('search') ?? '';
  const isFiltered = search !== '' || Object.keys(readEntryFilters(urlState)).length > 0;
  const changeFilter = (name: string, value: string | null) => setUrlState({ [name]: value, after: null });
  return (
    <search className="filters" aria-label="Suppressed addresses">
      <TextFilter
        label="Search"
        placeholder="ada@example.com, ada, or @example.com"
        value={search}
        onApply={(text) => setUrlState({ search: text, after: null }, true)}
        isMain
        isInline
      />
      <FilterChip label="List" value={list === SERVICE_LIST ? '* (the whole service)' : list}>
        <AccountSelect
          label="List"
          service
          value={list}
          onChange={(name) => setUrlState({ list: name, after: null, address: null })}
        />
      </FilterChip>
      <FilterChip label="Reason" value={reason} onClear={() => changeFilter('reason', null)}>
        <FilterValues
          label="Reason"
          values={SUPPRESSION_REASONS}
          chosenText={reason}
          onChange={(values) => changeFilter('reason', values.join(','))}
        />
      </FilterChip>
      <FilterChip
        label="Source"
        value={SOURCE_OPTIONS.find(({ value }) => value === source)?.label ?? source}
        onClear={() => changeFilter('source', null)}
      >
        <FilterChoice
          label="Source"
          options={SOURCE_OPTIONS}
          anyLabel="Any"
          value={source}
          onChange={(value) => changeFilter('source', value)}
        />
      </FilterChip>
      <FilterChip
        label="Since"
        value={TIME_RANGES.find(({ value }) => value === since)?.label ?? since}
        onClear={() => changeFilter('since', null)}
      >
        <FilterChoice
          label="Added"
          options={TIME_RANGES}
          anyLabel="at any time"
          value={since}
          onChange={(value) => changeFilter('since', value)}
        />
      </FilterChip>
      {isFiltered ? (
        <Button
          variant="subtle"
          size="compact-sm"
          onClick={() =>
            setUrlState({ search: null, reason: null, source: null, since: null, until: null, after: null })
          }
        >
          Clear filters
        </Button>
      ) : null}
      <KeyHints openLabel="explain" />
    </search>
  );
}
