/** A text filter. The text is applied after a pause in typing, or immediately when the operator presses Enter. */
import { TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';

const DEBOUNCE_MS = 300;

interface TextFilterProps {
  readonly label: string;
  readonly value: string;
  readonly onApply: (text: string) => void;
  readonly placeholder?: string;
  readonly description?: ReactNode;
  /** True for the field that the key `/` focuses. */
  readonly isMain?: boolean;
  /** True in a row of filters, where the label is not shown. */
  readonly isInline?: boolean;
}

export function TextFilter(props: TextFilterProps) {
  const { label, value, onApply, placeholder, description, isMain = false, isInline = false } = props;
  const [draft, setDraft] = useState(value);
  const appliedText = useRef(value);
  const latestOnApply = useRef(onApply);
  latestOnApply.current = onApply;

  // The value may also be changed by a link, the Back button, or the button that clears the filters.
  useEffect(() => {
    if (value === appliedText.current) return;
    appliedText.current = value;
    setDraft(value);
  }, [value]);

  useEffect(() => {
    if (draft.trim() === appliedText.current) return undefined;
    const timer = setTimeout(() => {
      appliedText.current = draft.trim();
      latestOnApply.current(draft.trim());
    }, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [draft]);

  return (
    <TextInput
      {...(isInline
        ? {
            type: 'search',
            'aria-label': label,
            leftSection: <IconSearch size={15} stroke={1.6} aria-hidden />,
            className: 'filter-text',
          }
        : { label })}
      value={draft}
      placeholder={placeholder ?? ''}
      description={description}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => setDraft(event.currentTarget.value)}
      {...(isMain ? { 'data-search': true } : {})}
      onKeyDown={(event) => {
        if (event.key !== 'Enter') return;
        appliedText.current = draft.trim();
        latestOnApply.current(draft.trim());
        // The keyboard shortcuts of the list have no effect while this field has the focus, so Enter removes the focus.
        if (isInline) event.currentTarget.blur();
      }}
    />
  );
}
