/**
 * Filters messages by the time of acceptance: a range up to now, or two dates. The dates are in the time zone of the
 * dashboard.
 */
import { NativeSelect, TextInput } from '@mantine/core';
import { formatZone, toUtcTime, toZonedTime } from '../parts/time';
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
  const zoneName = formatZone(new Date().toISOString());
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
              ? { since: truncateToMinute(new Date(Date.now() - DAY_MS).toISOString()) }
              : { since: value },
          )
        }
      />
      {hasDates ? (
        <>
          <DateTimeField
            label={`Since (${zoneName})`}
            value={since}
            onChange={(iso) => onApply({ since: iso, until: until ?? '' })}
          />
          <DateTimeField
            label={`Until (${zoneName})`}
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
      value={toInputText(value ?? '')}
      onChange={({ currentTarget }) => onChange(toIsoTime(currentTarget.value))}
    />
  );
}

/**
 * Returns the time in the chosen zone, in the format of the input field, such as `2026-11-21T08:40`. Returns an empty
 * string if the text is not a date.
 */
function toInputText(text: string): string {
  return Number.isNaN(Date.parse(text)) ? '' : toZonedTime(text).slice(0, 16);
}

function toIsoTime(inputText: string): string {
  return inputText === '' ? '' : truncateToMinute(toUtcTime(inputText));
}

/** Truncates a UTC time to whole minutes. The result has the format `2026-11-21T08:40:00Z`. */
function truncateToMinute(iso: string): string {
  return `${iso.slice(0, 16)}:00Z`;
}
