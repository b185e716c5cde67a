/** A filter chip, and the fields for choosing the values of a filter. A click on the chip opens the fields. */
import { Checkbox, CloseButton, Group, Popover, Radio, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatLabel } from '../messages/labels';

interface FilterChipProps {
  readonly label: string;
  /** The description of the active filter; undefined or empty if the filter is not set. */
  readonly value: string | undefined;
  /** Absent for a filter that always has a value. */
  readonly onClear?: () => void;
  readonly children: ReactNode;
}

/** The chip of an active filter is filled, shows the values, and has a button that removes the filter. */
export function FilterChip({ label, value = '', onClear, children }: FilterChipProps) {
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
      {isActive && onClear !== undefined ? (
        <CloseButton size="xs" radius="xl" aria-label={`Remove the filter ${label}`} onClick={onClear} />
      ) : null}
    </Group>
  );
}

interface FilterValuesProps {
  readonly label: string;
  readonly values: readonly string[];
  /** The chosen values, separated by commas. */
  readonly chosenText: string | undefined;
  readonly onChange: (values: readonly string[]) => void;
  /** True if the values are names, which are shown unchanged. */
  readonly isRaw?: boolean;
}

/**
 * The checkboxes that select the values of one filter. An unknown value in the URL also has a checkbox, so that
 * the operator can remove the value.
 */
export function FilterValues({ label, values, chosenText, onChange, isRaw = false }: FilterValuesProps) {
  const chosenValues = splitList(chosenText);
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

interface FilterChoiceProps {
  readonly label: string;
  readonly options: readonly { readonly value: string; readonly label: string }[];
  /** The label of the option that sets no value, such as `All accounts`. */
  readonly anyLabel: string;
  readonly value: string | undefined;
  readonly onChange: (value: string) => void;
}

/** The radio buttons that select one value of a filter, or no value. */
export function FilterChoice({ label, options, anyLabel, value = '', onChange }: FilterChoiceProps) {
  return (
    <Radio.Group label={label} value={value} onChange={onChange}>
      <Stack gap={6} mt={6}>
        {[{ value: '', label: anyLabel }, ...options].map((option) => (
          <Radio key={option.value} size="sm" value={option.value} label={option.label} />
        ))}
      </Stack>
    </Radio.Group>
  );
}

/** Returns the values of a comma-separated list. */
export function splitList(text: string | undefined): string[] {
  return (text ?? '').split(',').filter((value) => value !== '');
}
