/** What narrows a list that is there whole: a text and a state, both in the address, and how many are left. */
import { Group, NativeSelect, Text } from '@mantine/core';
import { useAddress } from '../api/address';
import { FilterBox } from './filter-box';
import { counted } from './number';

interface ListFiltersProps {
  /** What the text is looked for in, such as `Filter by name`. */
  readonly label: string;
  readonly states: readonly { readonly value: string; readonly label: string }[];
  /** One of the list, such as `account`. */
  readonly noun: string;
  readonly shown: number;
  readonly all: number;
}

export function ListFilters({ label, states, noun, shown, all }: ListFiltersProps) {
  const { text, state, setAddress } = useListFilters();
  return (
    <>
      <Group align="flex-end" mb="sm">
        <FilterBox label={label} value={text} onChange={(q) => setAddress({ q }, true)} />
        <NativeSelect
          label="State"
          data={[{ value: '', label: 'Every state' }, ...states]}
          value={state}
          onChange={(event) => setAddress({ state: event.currentTarget.value })}
        />
      </Group>
      <Text c="dimmed" size="sm" role="status" mb="xs">
        {shown === all ? counted(all, noun) : `${shown} of ${counted(all, noun)}`}
      </Text>
    </>
  );
}

/** What is asked for; `words` are the text as names are compared with it. */
export function useListFilters() {
  const [address, setAddress] = useAddress();
  const text = address.get('q') ?? '';
  return { text, words: text.trim().toLowerCase(), state: address.get('state') ?? '', setAddress };
}
