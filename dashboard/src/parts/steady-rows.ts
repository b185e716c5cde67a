/**
 * Keeps the rows of a live list in place. Live updates change and remove shown rows, but insert no row above or between
 * the shown rows: new rows are counted until the operator asks for them. A shown row remains shown even if new rows
 * displace it from the end of the page.
 */
import { useRef, useState } from 'react';

interface Row {
  readonly id: string | number;
}

interface SteadyRows<R extends Row> {
  readonly rows: readonly R[];
  /** The number of rows of the newest response that are not shown. */
  readonly newCount: number;
}

/**
 * Merges the newest response into the shown rows. Both are in the order of the list. The function has no side effects.
 */
export function mergeRows<R extends Row>(shownRows: readonly R[], latestRows: readonly R[]): SteadyRows<R> {
  if (shownRows.length === 0 || latestRows.length === 0) return { rows: latestRows, newCount: 0 };
  const latestById = new Map(latestRows.map((row) => [row.id, row]));
  const lastFoundRow = shownRows.findLast(({ id }) => latestById.has(id));
  // New rows displaced every shown row from the page.
  if (lastFoundRow === undefined) return { rows: shownRows, newCount: latestRows.length };
  const lastFoundRowIndex = shownRows.indexOf(lastFoundRow);
  const shownIds = new Set(shownRows.map(({ id }) => id));
  const endIndex = latestRows.findIndex(({ id }) => id === lastFoundRow.id);
  const keptRows = shownRows.flatMap((row, index) => latestById.get(row.id) ?? (index > lastFoundRowIndex ? row : []));
  const olderRows = lastFoundRowIndex === shownRows.length - 1 ? latestRows.slice(endIndex + 1) : [];
  const newCount = latestRows.slice(0, endIndex).filter(({ id }) => !shownIds.has(id)).length;
  return { rows: [...keptRows, ...olderRows], newCount };
}

/**
 * Merges the newest response like `mergeRows`, but removes no row: a shown row remains shown even if its state no
 * longer matches the filter of the list. The rows are sorted by id in descending order. The function has no side
 * effects.
 */
export function mergeFilteredRows<R extends Row>(shownRows: readonly R[], latestRows: readonly R[]): SteadyRows<R> {
  const lastShownRow = shownRows.at(-1);
  if (lastShownRow === undefined) return { rows: latestRows, newCount: 0 };
  const latestById = new Map(latestRows.map((row) => [row.id, row]));
  const shownIds = new Set(shownRows.map(({ id }) => id));
  return {
    rows: [
      ...shownRows.map((row) => latestById.get(row.id) ?? row),
      ...latestRows.filter(({ id }) => id < lastShownRow.id),
    ],
    newCount: latestRows.filter(({ id }) => id > lastShownRow.id && !shownIds.has(id)).length,
  };
}

/**
 * Returns the rows to show. `listKey` identifies the list, such as its filter and its page: if `listKey` changes, a new
 * list begins. `latestRows` are the rows of the newest response, or undefined while the rows of the list load.
 */
export function useSteadyRows<R extends Row>(
  latestRows: readonly R[] | undefined,
  listKey: string,
  merge: (shownRows: readonly R[], latestRows: readonly R[]) => SteadyRows<R> = mergeRows,
): SteadyRows<R> & { readonly showNew: () => void } {
  const [, setShownCount] = useState(0);
  const shownList = useRef<{ readonly key: string; readonly rows: readonly R[] } | null>(null);
  const shownRows = shownList.current?.key === listKey ? shownList.current.rows : [];
  const mergedRows = latestRows === undefined ? { rows: shownRows, newCount: 0 } : merge(shownRows, latestRows);
  if (latestRows !== undefined) shownList.current = { key: listKey, rows: mergedRows.rows };
  return {
    ...mergedRows,
    showNew: () => {
      shownList.current = null;
      // The rows are in a ref. A change of the ref causes no rendering; the change of the state renders the list again.
      setShownCount((count) => count + 1);
    },
  };
}
