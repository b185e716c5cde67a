/** What became of the rows of an import, and the first of those that were skipped. */
import { Button, Group, ScrollArea, Stack, Table, Text } from '@mantine/core';
import type { ImportResult as Result } from '../../../src/operations/suppressions/schemas.ts';
import { counted, grouped } from '../parts/number';
import { listName } from './list-name';

interface ImportResultProps {
  readonly list: string;
  readonly result: Result;
  readonly onClose: () => void;
}

export function ImportResult({ list, result, onClose }: ImportResultProps) {
  const { read, added, known, skipped, skippedCount } = result;
  return (
    <Stack>
      <Text role="status">
        Read {counted(read, 'row')} for {listName(list)}: <strong>{grouped(added)} added</strong>, {grouped(known)}{' '}
        known before, {grouped(skippedCount)} skipped.
      </Text>
      {skipped.length === 0 ? null : (
        <>
          <Text fw={600}>
            {skippedCount > skipped.length
              ? `The first ${skipped.length} rows that were skipped`
              : 'Rows that were skipped'}
          </Text>
          <ScrollArea.Autosize mah="40vh" viewportProps={{ tabIndex: 0, 'aria-label': 'Rows that were skipped' }}>
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th scope="col">Line</Table.Th>
                  <Table.Th scope="col">Why</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {skipped.map(({ line, reason }) => (
                  <Table.Tr key={line}>
                    <Table.Td>{grouped(line)}</Table.Td>
                    <Table.Td className="wrap">{reason}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollArea.Autosize>
        </>
      )}
      <Group justify="flex-end">
        <Button onClick={onClose} data-autofocus>
          Close
        </Button>
      </Group>
    </Stack>
  );
}
