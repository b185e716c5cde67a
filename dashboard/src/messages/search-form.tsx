/** The search box and its filters. What they hold is in the page's address; nothing has to be sent off. */
import { Box, Button, Group, NativeSelect, SimpleGrid, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { STATES } from '../../../src/model/message.ts';
import { useAccounts } from '../accounts/queries';
import { FilterText } from './filter-text';
import { FilterTime } from './filter-time';
import type { FilterName, Filters } from './filters';

export type Changed = Readonly<Partial<Record<FilterName, string | undefined>>>;

interface SearchFormProps {
  readonly filters: Filters;
  /** `typed` where it was, so that each pause is no step of the browser's back. */
  readonly onChange: (changed: Changed, typed: boolean) => void;
  readonly onClear: () => void;
}

export function SearchForm({ filters, onChange, onClear }: SearchFormProps) {
  const [opened, { toggle }] = useDisclosure();
  const accounts = useAccounts();
  const set = Object.keys(filters).length;
  const lesser = set - (filters.q === undefined ? 0 : 1);
  const typed = (name: FilterName) => (text: string) => onChange({ [name]: text }, true);
  const names = new Set([
    ...(accounts.data ?? []).map(({ name }) => name),
    ...(filters.account === undefined ? [] : [filters.account]),
  ]);
  const states: readonly string[] = STATES;
  const clear =
    set === 0 ? null : (
      <Button variant="default" size="compact-sm" onClick={onClear}>
        Clear all filters
      </Button>
    );
  return (
    <search aria-label="Messages">
      <Stack gap="sm" mb="md">
        <FilterText
          label="Search"
          placeholder="an address, words of the subject, or a whole id"
          value={filters.q ?? ''}
          onApply={typed('q')}
        />
        <Group hiddenFrom="sm" gap="sm">
          <Button variant="default" size="compact-sm" onClick={toggle} aria-expanded={opened} aria-controls="filters">
            {lesser === 0 ? 'Filters' : `Filters (${lesser})`}
          </Button>
          {clear}
        </Group>
        <Box id="filters" {...(opened ? {} : { visibleFrom: 'sm' as const })}>
          <SimpleGrid cols={{ base: 1, xs: 2, sm: 3, lg: 6 }} spacing="sm" verticalSpacing="sm">
            <FilterText label="To" value={filters.to ?? ''} onApply={typed('to')} />
            <FilterText label="From" value={filters.from ?? ''} onApply={typed('from')} />
            <FilterText label="Subject" value={filters.subject ?? ''} onApply={typed('subject')} />
            <NativeSelect
              label="Account"
              value={filters.account ?? ''}
              data={[{ value: '', label: 'any' }, ...names]}
              onChange={(event) => onChange({ account: event.currentTarget.value }, false)}
            />
            <NativeSelect
              label="State"
              value={filters.state ?? ''}
              data={[
                { value: '', label: 'any' },
                ...states,
                ...(filters.state === undefined || states.includes(filters.state) ? [] : [filters.state]),
              ]}
              onChange={(event) => onChange({ state: event.currentTarget.value }, false)}
            />
            <FilterTime
              filters={filters}
              onApply={(times) => onChange({ since: undefined, until: undefined, ...times }, false)}
            />
          </SimpleGrid>
        </Box>
        {clear === null ? null : <Box visibleFrom="sm">{clear}</Box>}
      </Stack>
    </search>
  );
}
