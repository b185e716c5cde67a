/**
 * Keeps the rows of a live list in place. Live updates change and remove shown rows, but insert no row above or between
 * the shown rows: new rows are counted until the operator asks for them. Rows that new rows displace from the end of
 * the page remain shown.
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

/** Merges the newest response into the shown rows. Both are in the order of the list. Pure. */
export function mergeRows<R extends Row>(shownRows: readonly R[], latest: readonly R[]): SteadyRows<R> {
  if (shownRows.length === 0 || latest.length === 0) return { rows: latest, newCount: 0 };
  const latestById = new Map(latest.map((row) => [row.id, row]));
  const lastFoundRow = shownRows.findLast(({ id }) => latestById.has(id));
  // Every shown row was displaced from the page.
  if (lastFoundRow === undefined) return { rows: shownRows, newCount: latest.length };
  const lastFoundRowIndex = shownRows.indexOf(lastFoundRow);
  const shownIds = new Set(shownRows.map(({ id }) => id));
  const end = latest.findIndex(({ id }) => id === lastFoundRow.id);
  const keptRows = shownRows.flatMap((row, index) => latestById.get(row.id) ?? (index > lastFoundRowIndex ? row : []));
  const olderRows = lastFoundRowIndex === shownRows.length - 1 ? latest.slice(end + 1) : [];
  const newCount = latest.slice(0, end).filter(({ id }) => !shownIds.has(id)).length;
  return { rows: [...keptRows, ...olderRows], newCount };
}

/**
 * Merges the newest response like `mergeRows`, but removes no row: a row whose state no longer matches the filter of the
 * list stays. The rows are sorted by id in descending order. Pure.
 */
export function mergeFilteredRows<R extends Row>(shownRows: readonly R[], latest: readonly R[]): SteadyRows<R> {
  const lastShownRow = shownRows.at(-1);
  if (lastShownRow === undefined) return { rows: latest, newCount: 0 };
  const latestById = new Map(latest.map((row) => [row.id, row]));
  const shownIds = new Set(shownRows.map(({ id }) => id));
  return {
    rows: [
      ...shownRows.map((row) => latestById.get(row.id) ?? row),
      ...latest.filter(({ id }) => id < lastShownRow.id),
    ],
    newCount: latest.filter(({ id }) => id > lastShownRow.id && !shownIds.has(id)).length,
  };
}

/**
 * Returns the rows to show. `latest` is the newest response, or undefined while the rows of `listKey` load. Another
 * `listKey`, such as another filter or page, begins a new list.
 */
export function useSteadyRows<R extends Row>(
  latest: readonly R[] | undefined,
  listKey: string,
  merge: (shownRows: readonly R[], latest: readonly R[]) => SteadyRows<R> = mergeRows,
): SteadyRows<R> & { readonly showNew: () => void } {
  const [, setShownCount] = useState(0);
  const shownList = useRef<{ readonly key: string; readonly rows: readonly R[] } | null>(null);
  const shownRows = shownList.current?.key === listKey ? shownList.current.rows : [];
  const mergedRows = latest === undefined ? { rows: shownRows, newCount: 0 } : merge(shownRows, latest);
  if (latest !== undefined) shownList.current = { key: listKey, rows: mergedRows.rows };
  return {
    ...mergedRows,
    showNew: () => {
      shownList.current = null;
      // The rows are in a ref, whose change causes no rendering. Setting the state renders the list again.
      setShownCount((count) => count + 1);
    },
  };
}
