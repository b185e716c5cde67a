/**
 * Shows the filters of a list that the page has loaded completely: a text and a state. The URL contains both filters.
 * Also shows the number of matching entries and the keyboard shortcuts of the list.
 */
import { useUrlState } from '../api/url-state';
import { FilterBox } from './filter-box';
import { FilterChip, FilterChoice } from './filter-chip';
import { KeyHints } from './key-hint';
import { formatCount } from './number';

interface ListFiltersProps {
  /** The label of the text field, such as `Filter by name`. */
  readonly label: string;
  readonly states: readonly { readonly value: string; readonly label: string }[];
  /** The noun for an entry, such as `account`. */
  readonly entryNoun: string;
  readonly shownCount: number;
  readonly totalCount: number;
}

export function ListFilters({ label, states, entryNoun, shownCount, totalCount }: ListFiltersProps) {
  const { text, state, setUrlState } = useListFilters();
  return (
    <search className="filters" aria-label="Filters">
      <FilterBox label={label} value={text} onChange={(q) => setUrlState({ q }, true)} isInline />
      <FilterChip
        label="State"
        value={state === '' ? '' : (states.find(({ value }) => value === state)?.label ?? state)}
        onClear={() => setUrlState({ state: null })}
      >
        <FilterChoice
          label="State"
          options={states}
          anyLabel="Any"
          value={state}
          onChange={(value) => setUrlState({ state: value })}
        />
      </FilterChip>
      <span className="filter-count" role="status">
        {shownCount === totalCount
          ? formatCount(totalCount, entryNoun)
          : `${shownCount} of ${formatCount(totalCount, entryNoun)}`}
      </span>
      <KeyHints openLabel="open" />
    </search>
  );
}

/**
 * Returns the filters that the URL contains. `searchText` is the text for comparison with names: trimmed, in lower
 * case.
 */
export function useListFilters() {
  const [urlState, setUrlState] = useUrlState();
  const text = urlState.get('q') ?? '';
  return { text, searchText: text.trim().toLowerCase(), state: urlState.get('state') ?? '', setUrlState };
}
