/**
 * A row of a list with two lines per row (`table.list`). Keyboard shortcuts move the focus to the row
 * (use-row-keys.ts), and a click opens the row. A click on a control or a selection of text does not open the row.
 */
import type { MouseEvent, ReactNode } from 'react';

interface ListRowProps {
  readonly id: string;
  /** True for the row that was chosen with the keyboard. */
  readonly isCurrent: boolean;
  /** True for the row whose details the page shows. */
  readonly isSelected?: boolean;
  readonly onOpen: () => void;
  readonly children: ReactNode;
}

export function ListRow({ id, isCurrent, isSelected = false, onOpen, children }: ListRowProps) {
  const openRow = (event: MouseEvent) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest('a, button, input, label, summary') != null || String(window.getSelection()) !== '') return;
    onOpen();
  };
  return (
    <tr
      data-row={id}
      tabIndex={-1}
      className="openable"
      {...(isCurrent ? { 'aria-current': true, 'data-current': true } : {})}
      {...(isSelected ? { 'data-selected': true } : {})}
      onClick={openRow}
    >
      {children}
    </tr>
  );
}

interface ListHeadProps {
  /** The headings of the columns. The column of the actions has an empty heading. */
  readonly columns: readonly string[];
  /** The number of rightmost columns that contain figures. */
  readonly figureColumnCount?: number;
}

export function ListHead({ columns, figureColumnCount = 0 }: ListHeadProps) {
  return (
    <thead>
      <tr>
        {columns.map((column, index) =>
          column === '' ? (
            <th key="actions" scope="col">
              <span className="unseen">Actions</span>
            </th>
          ) : (
            <th key={column} scope="col" {...(index >= columns.length - figureColumnCount ? { className: 'end' } : {})}>
              {column}
            </th>
          ),
        )}
      </tr>
    </thead>
  );
}
