/** Filters by the time of acceptance: a range up to now, or two dates. All times are UTC. */
import { NativeSelect, TextInput } from '@mantine/core';
import type { Filters } from './filters';
import { TIME_RANGES } from './filters';

const DAY_MS = 86_400_000;
const DATES = 'dates';

interface TimeFilterProps {
  readonly filters: Filters;
  readonly onApply: (times: Pick<Filters, 'since' | 'until'>) => void;
}

export function TimeFilter({ filters: { since, until }, onApply }: TimeFilterProps) {
  const span = TIME_RANGES.find(({ value }) => value === since);
  const dates = until !== undefined || (since !== undefined && span === undefined);
  return (
    <>
      <NativeSelect
        label="Accepted"
        value={dates ? DATES : (since ?? '')}
        data={[{ value: '', label: 'at any time' }, ...TIME_RANGES, { value: DATES, label: 'between dates' }]}
        onChange={({ currentTarget: { value } }) =>
          onApply(
            value === DATES ? { since: isoOf(localOf(new Date(Date.now() - DAY_MS).toISOString())) } : { since: value },
          )
        }
      />
      {dates ? (
        <>
          <Moment
            label="Since (UTC)"
            value={since}
            onChange={(moment) => onApply({ since: moment, until: until ?? '' })}
          />
          <Moment
            label="Until (UTC)"
            value={until}
            onChange={(moment) => onApply({ since: since ?? '', until: moment })}
          />
        </>
      ) : null}
    </>
  );
}

interface MomentProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (iso: string) => void;
}

function Moment({ label, value, onChange }: MomentProps) {
  return (
    <TextInput
      type="datetime-local"
      label={label}
      value={localOf(value ?? '')}
      onChange={({ currentTarget }) => onChange(isoOf(currentTarget.value))}
    />
  );
}

/** `2026-11-21T08:40`, the format of the input field; empty if the text is not a date. */
function localOf(text: string): string {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString().slice(0, 16);
}

function isoOf(local: string): string {
  return local === '' ? '' : `${local.slice(0, 16)}:00Z`;
}
