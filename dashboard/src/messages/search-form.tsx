/**
 * The two search fields, and the filters as chips. A changed value is stored in the URL and applied without a button.
 */
import { Button, Group, Stack } from '@mantine/core';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../../../src/model/failure.ts';
import { STATES } from '../../../src/model/message.ts';
import { useAccounts } from '../accounts/queries';
import { FilterChip, FilterValues, splitList } from '../parts/filter-chip';
import { KeyHints } from '../parts/key-hint';
import { TextFilter } from '../parts/text-filter';
import { type FilterName, type Filters, SEARCHABLE_PROVIDERS, TIME_RANGES } from './filters';
import { TimeFilter } from './time-filter';

export type FilterChange = Readonly<Partial<Record<FilterName, string | undefined>>>;

interface SearchFormProps {
  readonly filters: Filters;
  readonly routes: readonly string[];
  /**
   * Called with the changed filters. `typed` is true for text fields, whose changes add no entry to the history of the
   * browser.
   */
  readonly onChange: (changed: FilterChange, typed: boolean) => void;
  readonly onClear: () => void;
}

export function SearchForm({ filters, routes, onChange, onClear }: SearchFormProps) {
  const accounts = useAccounts();
  const applyText = (name: FilterName) => (text: string) => onChange({ [name]: text }, true);
  const clearFilters = (...names: readonly FilterName[]) =>
    onChange(Object.fromEntries(names.map((name) => [name, undefined])), false);
  const accountNames = [...new Set([...(accounts.data ?? []).map(({ name }) => name), ...splitList(filters.account)])];
  const changeList = (name: FilterName) => (values: readonly string[]) => onChange({ [name]: values.join(',') }, false);
  return (
    <search aria-label="Messages">
      <Stack gap="sm" mb="md">
        <div className="search-fields">
          <TextFilter
            label="Search"
            placeholder="Address, words of the subject, or message id"
            value={filters.q ?? ''}
            onApply={applyText('q')}
            isMain
            isInline
          />
          <TextFilter
            label="Words of the reply"
            placeholder="Words of the last reply, such as mailbox full"
            value={filters.reply ?? ''}
            onApply={applyText('reply')}
            isInline
            {...(filters.reply === undefined
              ? {}
              : {
                  description:
                    'Replies to delivered messages are searched only if the filter State includes delivered.',
                })}
          />
        </div>
        <Group gap="xs">
          <FilterChip label="State" value={filters.state} onClear={() => clearFilters('state')}>
            <FilterValues
              label="State"
              values={[...STATES, 'deferred']}
              chosenText={filters.state}
              onChange={changeList('state')}
            />
          </FilterChip>
          <FilterChip label="Account" value={filters.account} onClear={() => clearFilters('account')}>
            <FilterValues
              label="Account"
              values={accountNames}
              chosenText={filters.account}
              onChange={changeList('account')}
              isRaw
            />
          </FilterChip>
          <FilterChip
            label="Reason"
            value={joinValues([filters.class, filters.category, filters.code])}
            onClear={() => clearFilters('class', 'category', 'code')}
          >
            <Stack gap="sm">
              <TextFilter
                label="Reply code"
                placeholder="550 or 5.1.1"
                value={filters.code ?? ''}
                onApply={applyText('code')}
              />
              <FilterValues
                label="Class of failure"
                values={FAILURE_CLASSES}
                chosenText={filters.class}
                onChange={changeList('class')}
              />
              <FilterValues
                label="Category of failure"
                values={FAILURE_CATEGORIES}
                chosenText={filters.category}
                onChange={changeList('category')}
              />
            </Stack>
          </FilterChip>
          <FilterChip
            label="Recipient"
            value={joinValues([filters.to, filters.domain])}
            onClear={() => clearFilters('to', 'domain')}
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
          </FilterChip>
          <FilterChip
            label="Mailbox provider"
            value={filters.mailboxProvider}
            onClear={() => clearFilters('mailboxProvider')}
          >
            <FilterValues
              label="Mailbox provider"
              values={SEARCHABLE_PROVIDERS}
              chosenText={filters.mailboxProvider}
              onChange={changeList('mailboxProvider')}
            />
          </FilterChip>
          {routes.length > 1 || filters.route !== undefined ? (
            <FilterChip label="Route" value={filters.route} onClear={() => clearFilters('route')}>
              <FilterValues
                label="Route"
                values={routes}
                chosenText={filters.route}
                onChange={changeList('route')}
                isRaw
              />
            </FilterChip>
          ) : null}
          <FilterChip
            label="Content"
            value={joinValues([filters.from, filters.subject])}
            onClear={() => clearFilters('from', 'subject')}
          >
            <Stack gap="sm">
              <TextFilter label="From" value={filters.from ?? ''} onApply={applyText('from')} />
              <TextFilter label="Subject" value={filters.subject ?? ''} onApply={applyText('subject')} />
            </Stack>
          </FilterChip>
          <FilterChip label="Time" value={describeTimeRange(filters)} onClear={() => clearFilters('since', 'until')}>
            <Stack gap="sm">
              <TimeFilter
                filters={filters}
                onApply={(times) => onChange({ since: undefined, until: undefined, ...times }, false)}
              />
            </Stack>
          </FilterChip>
          {Object.keys(filters).length === 0 ? null : (
            <Button variant="subtle" size="compact-sm" onClick={onClear}>
              Clear all filters
            </Button>
          )}
          <KeyHints openLabel="open" canSelect />
        </Group>
      </Stack>
    </search>
  );
}

function joinValues(values: readonly (string | undefined)[]): string {
  return values.filter((value) => value !== undefined && value !== '').join(', ');
}

function describeTimeRange({ since, until }: Filters): string {
  if (until !== undefined) return 'between dates';
  if (since === undefined) return '';
  return TIME_RANGES.find(({ value }) => value === since)?.label ?? `since ${since.slice(0, 16)}`;
}
