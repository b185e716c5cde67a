/** The result of an import: counts, and the first invalid rows. */
import { Button, Group, ScrollArea, Stack, Table, Text } from '@mantine/core';
import type { ImportResult as Result } from '../../../src/operations/suppressions.ts';
import { formatCount, formatNumber } from '../parts/number';
import { formatListOwner } from './list-owner';

interface ImportResultProps {
  readonly list: string;
  readonly result: Result;
  readonly onClose: () => void;
}

export function ImportResult({ list, result, onClose }: ImportResultProps) {
  const { read, added, known, skipped, skippedCount, excluded, reasons, format, dryRun } = result;
  const reasonCounts = reasons.map(({ reason, count }) => `${formatNumber(count)} ${reason}`).join(', ');
  const invalidCount = skippedCount - excluded.reduce((sum, { count }) => sum + count, 0);
  return (
    <Stack>
      <Text role="status">
        Read {formatCount(read, 'row')}
        {format === null ? '' : ` (${format})`} for the suppression list of {formatListOwner(list)}:{' '}
        {dryRun ? (
          <strong>{reasonCounts === '' ? 'no address' : reasonCounts}, nothing was added</strong>
        ) : (
          <>
            <strong>{formatNumber(added)} added</strong>, {formatNumber(known)} already on the list
          </>
        )}
        , {formatNumber(skippedCount)} skipped.
      </Text>
      {excluded.length === 0 ? null : (
        <Text>
          Skipped because they suppress no recipient:{' '}
          {excluded.map(({ kind, count }) => `${formatNumber(count)} ${kind}`).join(', ')}
        </Text>
      )}
      {skipped.length === 0 ? null : (
        <>
          <Text fw={600}>
            {invalidCount > skipped.length ? `The first ${skipped.length} invalid rows` : 'Invalid rows'}
          </Text>
          <ScrollArea.Autosize mah="40vh" viewportProps={{ tabIndex: 0, 'aria-label': 'Invalid rows' }}>
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
