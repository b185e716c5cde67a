/**
 * The keyboard shortcuts of a list: `j` makes the next row the current row, and `k` the previous row. `Enter` opens the
 * current row, and `x` selects it. The frame handles `/`, which moves the focus to the search field. The keys are
 * ignored while a field or a dialog has the focus.
 */
import { useEffect, useRef, useState } from 'react';

interface RowKeys {
  readonly ids: readonly string[];
  readonly onOpen: (id: string) => void;
  /** Absent for a list whose rows cannot be selected. */
  readonly onSelect?: (id: string) => void;
}

/** Returns the id of the current row, or null. */
export function useRowKeys({ ids, onOpen, onSelect = () => undefined }: RowKeys): string | null {
  const [currentId, setCurrent] = useState<string | null>(null);
  const latestValues = useRef({ ids, onOpen, onSelect, current: currentId });
  latestValues.current = { ids, onOpen, onSelect, current: currentId };

  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target instanceof Element ? event.target : null;
      if (target?.closest('input, textarea, select, [contenteditable], [role="dialog"]') != null) return;
      const { ids: rows, current: row } = latestValues.current;
      if (event.key === 'j' || event.key === 'k') {
        const index = row === null ? -1 : rows.indexOf(row);
        const nextIndex = event.key === 'j' ? Math.min(index + 1, rows.length - 1) : Math.max(index - 1, 0);
        const id = rows[nextIndex];
        if (id === undefined) return;
        event.preventDefault();
        setCurrent(id);
        document.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`)?.focus();
        return;
      }
      // Enter and x act on the current row. Enter on a link or a button activates that control.
      if (row === null || !rows.includes(row)) return;
      if (event.key === 'x') {
        event.preventDefault();
        latestValues.current.onSelect(row);
      } else if (event.key === 'Enter' && target?.closest('a, button') == null) {
        event.preventDefault();
        latestValues.current.onOpen(row);
      }
    }
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
  return currentId !== null && ids.includes(currentId) ? currentId : null;
}
