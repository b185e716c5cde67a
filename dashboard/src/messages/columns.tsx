/** The columns of the message list. The operator chooses the columns, and the browser stores the choice. */
import { Button, Checkbox, Popover, Stack } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';

export const COLUMNS = ['reason', 'from', 'route', 'account', 'attempts', 'accepted', 'updated'] as const;
export type Column = (typeof COLUMNS)[number];

export const COLUMN_LABELS: Readonly<Record<Column, string>> = {
  reason: 'Reason',
  from: 'Sender',
  route: 'Route',
  account: 'Account',
  attempts: 'Attempts',
  accepted: 'Accepted',
  updated: 'Updated',
};

const DEFAULT_COLUMNS: readonly Column[] = ['reason', 'route', 'account', 'attempts', 'updated'];

/** With one route, all messages have the same. */
export function listAvailableColumns(routes: readonly string[]): readonly Column[] {
  return COLUMNS.filter((column) => column !== 'route' || routes.length > 1);
}

/** Returns the chosen ones of the available columns in a fixed order, and the function that changes the choice. */
export function useColumns(
  available: readonly Column[],
): readonly [readonly Column[], (columns: readonly string[]) => void] {
  const [stored, setStored] = useLocalStorage<readonly string[]>({
    key: 'postrider-message-columns',
    defaultValue: DEFAULT_COLUMNS,
    getInitialValueInEffect: false,
  });
  const chosenColumns: readonly string[] = Array.isArray(stored) ? stored : DEFAULT_COLUMNS;
  return [available.filter((column) => chosenColumns.includes(column)), setStored];
}

export function ColumnChooser({
  available,
  columns,
  onChange,
}: {
  readonly available: readonly Column[];
  readonly columns: readonly Column[];
  readonly onChange: (columns: readonly string[]) => void;
}) {
  return (
    <Popover position="bottom-end" trapFocus returnFocus>
      <Popover.Target>
        <Button variant="default">Columns</Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Checkbox.Group label="Columns" value={[...columns]} onChange={onChange}>
          <Stack gap="xs" mt="xs">
            {available.map((column) => (
              <Checkbox key={column} value={column} label={COLUMN_LABELS[column]} />
            ))}
          </Stack>
        </Checkbox.Group>
      </Popover.Dropdown>
    </Popover>
  );
}
