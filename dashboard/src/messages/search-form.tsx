/** The search field and the filters, as chips. The values are in the URL and are applied without a button. */
import { Button, Checkbox, CloseButton, Group, Popover, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../../../src/model/failure.ts';
import { STATES } from '../../../src/model/message.ts';
import { useAccounts } from '../accounts/queries';
import { type FilterName, type Filters, TIME_RANGES } from './filters';
import { formatLabel } from './labels';
import { TextFilter } from './text-filter';
import { TimeFilter } from './time-filter';

export type FilterChange = Readonly<Partial<Record<FilterName, string | undefined>>>;

interface SearchFormProps {
  readonly filters: Filters;
  /**
   * Called with the changed filters. `typed` is true for text fields, whose changes add no entry to the history of the
   * browser.
   */
  readonly onChange: (changed: FilterChange, typed: boolean) => void;
  readonly onClear: () => void;
}

export function SearchForm({ filters, onChange, onClear }: SearchFormProps) {
  const accounts = useAccounts();
  const applyText = (name: FilterName) => (text: string) => onChange({ [name]: text }, true);
  const clear = (...names: readonly FilterName[]) =>
    onChange(Object.fromEntries(names.map((name) => [name, undefined])), false);
  const names = [...new Set([...(accounts.data ?? []).map(({ name }) => name), ...splitList(filters.account)])];
  const changeList = (name: FilterName) => (values: readonly string[]) => onChange({ [name]: values.join(',') }, false);
  return (
    <search aria-label="Messages">
      <Stack gap="sm" mb="md">
        <TextFilter
          label="Search"
          placeholder="address, words of the subject, or message id"
          value={filters.q ?? ''}
          onApply={applyText('q')}
          isMain
        />
        <Group gap="xs">
          <Chip label="State" value={filters.state} onClear={() => clear('state')}>
            <ValueList
              label="State"
              values={[...STATES, 'deferred']}
              chosen={filters.state}
              onChange={changeList('state')}
            />
          </Chip>
          <Chip label="Account" value={filters.account} onClear={() => clear('account')}>
            <ValueList label="Account" values={names} chosen={filters.account} onChange={changeList('account')} isRaw />
          </Chip>
          <Chip
            label="Reason"
            value={joinValues([filters.class, filters.category, filters.code, filters.reply])}
            onClear={() => clear('class', 'category', 'code', 'reply')}
          >
            <Stack gap="sm">
              <TextFilter
                label="Words of the reply"
                value={filters.reply ?? ''}
                onApply={applyText('reply')}
                description="Replies to delivered messages are searched only with the state delivered."
              />
              <TextFilter
                label="Reply code"
                placeholder="550 or 5.1.1"
                value={filters.code ?? ''}
                onApply={applyText('code')}
              />
              <ValueList
                label="Class of failure"
                values={FAILURE_CLASSES}
                chosen={filters.class}
                onChange={changeList('class')}
              />
              <ValueList
                label="Category of failure"
                values={FAILURE_CATEGORIES}
                chosen={filters.category}
                onChange={changeList('category')}
              />
            </Stack>
          </Chip>
          <Chip
            label="Recipient"
            value={joinValues([filters.to, filters.domain])}
            onClear={() => clear('to', 'domain')}
          >
            <Stack gap="sm">
              <TextFilter label="To" value={filters.to ?? ''} onApply={applyText('to')} />
              <TextFilter
                label="Recipient domain"
                placeholder="example.com"
                value={filters.domain ?? ''}
                onApply={applyText('domain')}
              />
            </Stack>
          </Chip>
          <Chip
            label="Content"
            value={joinValues([filters.from, filters.subject])}
            onClear={() => clear('from', 'subject')}
          >
            <Stack gap="sm">
              <TextFilter label="From" value={filters.from ?? ''} onApply={applyText('from')} />
              <TextFilter label="Subject" value={filters.subject ?? ''} onApply={applyText('subject')} />
            </Stack>
          </Chip>
          <Chip label="Time" value={describeTime(filters)} onClear={() => clear('since', 'until')}>
            <Stack gap="sm">
              <TimeFilter
                filters={filters}
                onApply={(times) => onChange({ since: undefined, until: undefined, ...times }, false)}
              />
            </Stack>
          </Chip>
          {Object.keys(filters).length === 0 ? null : (
            <Button variant="subtle" size="compact-sm" onClick={onClear}>
              Clear all filters
            </Button>
          )}
          <Text size="sm" c="dimmed" visibleFrom="lg" ml="auto">
            <kbd>/</kbd> search · <kbd>j</kbd> <kbd>k</kbd> move · <kbd>Enter</kbd> open · <kbd>x</kbd> select
          </Text>
        </Group>
      </Stack>
    </search>
  );
}

interface ChipProps {
  readonly label: string;
  /** The description of the active filter; undefined or empty if the filter is not set. */
  readonly value: string | undefined;
  readonly onClear: () => void;
  readonly children: ReactNode;
}

/** A filter that opens its fields. An active filter is filled, names its values, and has a button that removes it. */
function Chip({ label, value = '', onClear, children }: ChipProps) {
  const isActive = value !== '';
  return (
    <Group gap={0} wrap="nowrap" className="filter-chip" {...(isActive ? { 'data-active': true } : {})}>
      <Popover position="bottom-start" trapFocus returnFocus width={300}>
        <Popover.Target>
          <button type="button" className="filter-chip-label">
            {isActive ? `${label}: ${value.replaceAll(',', ', ')}` : label}
          </button>
        </Popover.Target>
        <Popover.Dropdown mah="70vh" style={{ overflowY: 'auto' }}>
          {children}
        </Popover.Dropdown>
      </Popover>
      {isActive ? (
        <CloseButton size="xs" radius="xl" aria-label={`Remove the filter ${label}`} onClick={onClear} />
      ) : null}
    </Group>
  );
}

interface ValueListProps {
  readonly label: string;
  readonly values: readonly string[];
  /** The chosen values, separated by commas. */
  readonly chosen: string | undefined;
  readonly onChange: (values: readonly string[]) => void;
  /** True if the values are names, which have no label. */
  readonly isRaw?: boolean;
}

/** Several values of one filter. A value of the URL that does not exist stays chosen, so that the error can be corrected. */
function ValueList({ label, values, chosen, onChange, isRaw = false }: ValueListProps) {
  const chosenValues = splitList(chosen);
  const shownValues = [...values, ...chosenValues.filter((value) => !values.includes(value))];
  return (
    <Checkbox.Group label={label} value={chosenValues} onChange={onChange}>
      <Stack gap={6} mt={6}>
        {shownValues.map((value) => (
          <Checkbox key={value} size="sm" value={value} label={isRaw ? value : formatLabel(value)} />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}

function splitList(text: string | undefined): string[] {
  return (text ?? '').split(',').filter((value) => value !== '');
}

function joinValues(values: readonly (string | undefined)[]): string {
  return values.filter((value) => value !== undefined && value !== '').join(', ');
}

function describeTime({ since, until }: Filters): string {
  if (until !== undefined) return 'between dates';
  if (since === undefined) return '';
  return TIME_RANGES.find(({ value }) => value === since)?.label ?? `since ${since.slice(0, 16)}`;
}
