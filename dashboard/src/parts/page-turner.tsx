/**
 * The footer of a list that the service returns page by page: a note, and buttons for the first page and the next page.
 */
import { Button, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { useUrlState } from '../api/url-state';

interface PageTurnerProps {
  /** The order of the list, such as `Newest first`, or the state of a search. */
  readonly note: ReactNode;
  /** The button for the first page; null on the first page. */
  readonly firstButton: { readonly label: string; readonly onTurn: () => void } | null;
  /** The button for the next page; null on the last page. */
  readonly nextButton: { readonly label: string; readonly onTurn: () => void } | null;
  /** True while the next page is loading. */
  readonly isLoading?: boolean;
}

export function PageTurner({ note, firstButton, nextButton, isLoading = false }: PageTurnerProps) {
  return (
    <div className="list-foot">
      <span role="status">{note}</span>
      <Group gap="xs">
        {firstButton === null ? null : (
          <Button variant="default" size="xs" onClick={firstButton.onTurn}>
            {firstButton.label}
          </Button>
        )}
        {nextButton === null ? null : (
          <Button variant="default" size="xs" loading={isLoading} onClick={nextButton.onTurn}>
            {nextButton.label}
          </Button>
        )}
      </Group>
    </div>
  );
}

/**
 * One page of a list. Each request asks for one row more than the page shows, so that the response indicates whether
 * older rows exist.
 */
export interface ListPage<Row> {
  readonly rows: readonly Row[];
  /** The id of the last row if there are older rows; otherwise null. */
  readonly olderPageStart: string | null;
}

/** Returns the page without the additional row. The additional row indicates that there are older rows. */
export function toListPage<Row extends { readonly id: string | number }>(
  rows: readonly Row[] | undefined,
  pageSize: number,
): ListPage<Row> {
  const shownRows = (rows ?? []).slice(0, pageSize);
  const lastRow = shownRows.at(-1);
  return {
    rows: shownRows,
    olderPageStart: (rows?.length ?? 0) > pageSize && lastRow !== undefined ? String(lastRow.id) : null,
  };
}

/**
 * Returns the id after which the next page begins; null if there are no older rows. If new rows displaced the last
 * shown row from `page`, the next page begins after the last shown row.
 */
export function findOlderPageStart<Row extends { readonly id: string | number }>(
  page: ListPage<Row>,
  shownRows: readonly Row[],
): string | null {
  const lastRow = shownRows.at(-1);
  if (lastRow === undefined || lastRow.id === page.rows.at(-1)?.id) return page.olderPageStart;
  return String(lastRow.id);
}

interface OlderPagesProps {
  /** The id after which the next page begins; null on the last page. */
  readonly olderPageStart: string | null;
  readonly note?: string;
  readonly isLoading?: boolean;
}

/** The footer of a list sorted by time. The query parameter `before` contains the position in the list. */
export function OlderPages({ olderPageStart, note = 'Newest first', isLoading = false }: OlderPagesProps) {
  const [urlState, setUrlState] = useUrlState();
  return (
    <PageTurner
      note={note}
      firstButton={urlState.has('before') ? { label: 'Newest', onTurn: () => setUrlState({ before: null }) } : null}
      nextButton={
        olderPageStart === null ? null : { label: 'Older', onTurn: () => setUrlState({ before: olderPageStart }) }
      }
      isLoading={isLoading}
    />
  );
}
