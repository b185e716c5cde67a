/** Filters messages by the time of acceptance: a range up to now, or two dates. All times are UTC. */
import { NativeSelect, TextInput } from '@mantine/core';
import type { Filters } from './filters';
import { TIME_RANGES } from './filters';

const DAY_MS = 86_400_000;
const CUSTOM_DATES = 'dates';

interface TimeFilterProps {
  readonly filters: Filters;
  readonly onApply: (times: Pick<Filters, 'since' | 'until'>) => void;
}

export function TimeFilter({ filters: { since, until }, onApply }: TimeFilterProps) {
  const range = TIME_RANGES.find(({ value }) => value === since);
  const hasDates = until !== undefined || (since !== undefined && range === undefined);
  return (
    <>
      <NativeSelect
        label="Accepted"
        value={hasDates ? CUSTOM_DATES : (since ?? '')}
        data={[{ value: '', label: 'at any time' }, ...TIME_RANGES, { value: CUSTOM_DATES, label: 'between dates' }]}
        onChange={({ currentTarget: { value } }) =>
          onApply(
            value === CUSTOM_DATES
              ? { since: toIsoTime(toLocalInput(new Date(Date.now() - DAY_MS).toISOString())) }
              : { since: value },
          )
        }
      />
      {hasDates ? (
        <>
          <DateTimeField
            label="Since (UTC)"
            value={since}
            onChange={(iso) => onApply({ since: iso, until: until ?? '' })}
          />
          <DateTimeField
            label="Until (UTC)"
            value={until}
            onChange={(iso) => onApply({ since: since ?? '', until: iso })}
          />
        </>
      ) : null}
    </>
  );
}

interface DateTimeFieldProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (iso: string) => void;
}

function DateTimeField({ label, value, onChange }: DateTimeFieldProps) {
  return (
    <TextInput
      type="datetime-local"
      label={label}
      value={toLocalInput(value ?? '')}
      onChange={({ currentTarget }) => onChange(toIsoTime(currentTarget.value))}
    />
  );
}

/** Returns `2026-11-21T08:40`, the format of the input field; empty if the text is not a date. */
function toLocalInput(text: string): string {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString().slice(0, 16);
}

function toIsoTime(local: string): string {
  return local === '' ? '' : `${local.slice(0, 16)}:00Z`;
}
