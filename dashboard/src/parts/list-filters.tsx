/**
 * Shows the filters of a list that the page has loaded completely: a text and a state, both in the URL, and the number
 * of matches.
 */
import { Group, NativeSelect, Text } from '@mantine/core';
import { useUrlState } from '../api/url-state';
import { FilterBox } from './filter-box';
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
    <>
      <Group align="flex-end" mb="sm">
        <FilterBox label={label} value={text} onChange={(q) => setUrlState({ q }, true)} />
        <NativeSelect
          label="State"
          data={[{ value: '', label: 'Any' }, ...states]}
          value={state}
          onChange={(event) => setUrlState({ state: event.currentTarget.value })}
        />
      </Group>
      <Text c="dimmed" size="sm" role="status" mb="xs">
        {shownCount === totalCount
          ? formatCount(totalCount, entryNoun)
          : `${shownCount} of ${formatCount(totalCount, entryNoun)}`}
      </Text>
    </>
  );
}

/** Returns the filters of the URL. `searchText` is the text for comparison with names: trimmed, in lower case. */
export function useListFilters() {
  const [urlState, setUrlState] = useUrlState();
  const text = urlState.get('q') ?? '';
  return { text, searchText: text.trim().toLowerCase(), state: urlState.get('state') ?? '', setUrlState };
}
