/** The search field and the filters. Their values are in the URL and are applied without a button. */
import { Box, Button, Group, NativeSelect, SimpleGrid, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../../../src/model/failure.ts';
import { STATES } from '../../../src/model/message.ts';
import { useAccounts } from '../accounts/queries';
import type { FilterName, Filters } from './filters';
import { TextFilter } from './text-filter';
import { TimeFilter } from './time-filter';

export type FilterChange = Readonly<Partial<Record<FilterName, string | undefined>>>;

/** The filters by the last failure of a message. */
const FAILURE_FILTERS: readonly {
  readonly name: 'class' | 'category';
  readonly label: string;
  readonly values: readonly string[];
}[] = [
  { name: 'class', label: 'Class of failure', values: FAILURE_CLASSES },
  { name: 'category', label: 'Category of failure', values: FAILURE_CATEGORIES },
];

interface SearchFormProps {
  readonly filters: Filters;
  /**
   * Called with the changed filters. `typed` is true for text fields, whose changes add no entry to the history of the
   * browser.
   */
  readonly onChange: (changed: FilterChange, applyText: boolean) => void;
  readonly onClear: () => void;
}

export function SearchForm({ filters, onChange, onClear }: SearchFormProps) {
  const [opened, { toggle }] = useDisclosure();
  const accounts = useAccounts();
  const filterCount = Object.keys(filters).length;
  const hiddenCount = filterCount - (filters.q === undefined ? 0 : 1);
  const applyText = (name: FilterName) => (text: string) => onChange({ [name]: text }, true);
  const names = new Set([
    ...(accounts.data ?? []).map(({ name }) => name),
    ...(filters.account === undefined ? [] : [filters.account]),
  ]);
  const states: readonly string[] = STATES;
  const clearButton =
    filterCount === 0 ? null : (
      <Button variant="default" size="compact-sm" onClick={onClear}>
        Clear all filters
      </Button>
    );
  return (
    <search aria-label="Messages">
      <Stack gap="sm" mb="md">
        <TextFilter
          label="Search"
          placeholder="address, words of the subject, or message id"
          value={filters.q ?? ''}
          onApply={applyText('q')}
        />
        <Group hiddenFrom="sm" gap="sm">
          <Button variant="default" size="compact-sm" onClick={toggle} aria-expanded={opened} aria-controls="filters">
            {hiddenCount === 0 ? 'Filters' : `Filters (${hiddenCount})`}
          </Button>
          {clearButton}
        </Group>
        <Box id="filters" {...(opened ? {} : { visibleFrom: 'sm' as const })}>
          <SimpleGrid cols={{ base: 1, xs: 2, sm: 3, lg: 6 }} spacing="sm" verticalSpacing="sm">
            <TextFilter label="To" value={filters.to ?? ''} onApply={applyText('to')} />
            <TextFilter label="From" value={filters.from ?? ''} onApply={applyText('from')} />
            <TextFilter label="Subject" value={filters.subject ?? ''} onApply={applyText('subject')} />
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
            {FAILURE_FILTERS.map(({ name, label, values }) => (
              <NativeSelect
                key={name}
                label={label}
                value={filters[name] ?? ''}
                data={[
                  { value: '', label: 'any' },
                  ...values,
                  ...(filters[name] === undefined || values.includes(filters[name]) ? [] : [filters[name]]),
                ]}
                onChange={(event) => onChange({ [name]: event.currentTarget.value }, false)}
              />
            ))}
            <TimeFilter
              filters={filters}
              onApply={(times) => onChange({ since: undefined, until: undefined, ...times }, false)}
            />
          </SimpleGrid>
        </Box>
        {clearButton === null ? null : <Box visibleFrom="sm">{clearButton}</Box>}
      </Stack>
    </search>
  );
}
