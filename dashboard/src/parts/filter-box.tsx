/** A text field that filters a list while the operator types. The key `/` moves the focus to the field. */
import { TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';

interface FilterBoxProps {
  readonly label: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** True in a row of filters, where the label is shown inside the field. */
  readonly isInline?: boolean;
}

export function FilterBox({ label, placeholder, value, onChange, isInline = false }: FilterBoxProps) {
  return (
    <TextInput
      type="search"
      {...(isInline
        ? { 'aria-label': label, leftSection: <IconSearch size={15} stroke={1.6} aria-hidden /> }
        : { label })}
      placeholder={placeholder ?? (isInline ? label : '')}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      onKeyDown={(event) => {
        // The keyboard shortcuts of the list have no effect while this field has the focus, so Enter removes the focus.
        if (event.key === 'Enter' && isInline) event.currentTarget.blur();
      }}
      autoComplete="off"
      spellCheck={false}
      data-search
      className={isInline ? 'filter-text' : ''}
      {...(isInline ? {} : { style: { flex: '1 1 14rem' }, maw: '28rem' })}
    />
  );
}
