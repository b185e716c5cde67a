/** A text field that filters a list while the operator types. */
import { TextInput } from '@mantine/core';

interface FilterBoxProps {
  readonly label: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function FilterBox({ label, placeholder, value, onChange }: FilterBoxProps) {
  return (
    <TextInput
      type="search"
      label={label}
      {...(placeholder === undefined ? {} : { placeholder })}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      autoComplete="off"
      spellCheck={false}
      style={{ flex: '1 1 14rem' }}
      maw="28rem"
    />
  );
}
