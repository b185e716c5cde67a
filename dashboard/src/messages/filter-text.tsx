/** A filter that is typed: it applies itself when the typing pauses, and at once on Enter. */
import { TextInput } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';

const PAUSE_MS = 300;

interface FilterTextProps {
  readonly label: string;
  readonly value: string;
  readonly onApply: (text: string) => void;
  readonly placeholder?: string;
  readonly description?: ReactNode;
}

export function FilterText({ label, value, onApply, placeholder, description }: FilterTextProps) {
  const [draft, setDraft] = useState(value);
  const applied = useRef(value);
  const apply = useRef(onApply);
  apply.current = onApply;

  // The address has changed by something other than this field: a link, the browser's back, the button that clears.
  useEffect(() => {
    if (value === applied.current) return;
    applied.current = value;
    setDraft(value);
  }, [value]);

  useEffect(() => {
    if (draft.trim() === applied.current) return undefined;
    const timer = setTimeout(() => {
      applied.current = draft.trim();
      apply.current(draft.trim());
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft]);

  return (
    <TextInput
      label={label}
      value={draft}
      placeholder={placeholder ?? ''}
      description={description}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => setDraft(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter') return;
        applied.current = draft.trim();
        apply.current(draft.trim());
      }}
    />
  );
}
