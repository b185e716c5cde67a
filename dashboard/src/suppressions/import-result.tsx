/** The result of an import: counts, and the first skipped rows. */
import { Button, Group, ScrollArea, Stack, Table, Text } from '@mantine/core';
import type { ImportResult as Result } from '../../../src/operations/suppressions/schemas.ts';
import { formatCount, formatNumber } from '../parts/number';
import { formatListOwner } from './list-owner';

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
        Read {formatCount(read, 'row')} for the suppression list of {formatListOwner(list)}:{' '}
        <strong>{formatNumber(added)} added</strong>, {formatNumber(known)} already on the list,{' '}
        {formatNumber(skippedCount)} skipped.
      </Text>
      {skipped.length === 0 ? null : (
        <>
          <Text fw={600}>
            {skippedCount > skipped.length ? `The first ${skipped.length} skipped rows` : 'Skipped rows'}
          </Text>
          <ScrollArea.Autosize mah="40vh" viewportProps={{ tabIndex: 0, 'aria-label': 'Skipped rows' }}>
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th scope="col">Line</Table.Th>
                  <Table.Th scope="col">Reason</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {skipped.map(({ line, reason }) => (
                  <Table.Tr key={line}>
                    <Table.Td>{formatNumber(line)}</Table.Td>
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
