/** The addresses of a suppression list, each with its reason and the message that caused the entry. */
import { Anchor, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { SuppressionEntry } from '../../../src/operations/suppressions/schemas.ts';
import { path } from '../api/client';
import { RelativeTime } from '../parts/relative-time';
import { ReasonBadge } from './reason-badge';
import { RemoveSuppressionButton } from './remove-button';

interface SuppressionTableProps {
  readonly list: string;
  readonly entries: readonly SuppressionEntry[];
  readonly onSelect: (address: string) => void;
}

export function SuppressionTable({ list, entries, onSelect }: SuppressionTableProps) {
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Address</Table.Th>
          <Table.Th scope="col" visibleFrom="xs">
            Reason
          </Table.Th>
          <Table.Th scope="col" visibleFrom="sm">
            Since
          </Table.Th>
          <Table.Th scope="col" visibleFrom="md">
            Message
          </Table.Th>
          <Table.Th scope="col">
            <span className="unseen">Actions</span>
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {entries.map(({ address, reason, source, at }) => (
          <Table.Tr key={address}>
            <Table.Td>
              <Anchor
                inherit
                component="button"
                type="button"
                ta="left"
                className="wrap"
                onClick={() => onSelect(address)}
              >
                {address}
              </Anchor>
              <Text component="div" hiddenFrom="xs" mt={4} size="sm">
                <ReasonBadge reason={reason} /> <RelativeTime at={at} />
              </Text>
            </Table.Td>
            <Table.Td visibleFrom="xs">
              <ReasonBadge reason={reason} />
            </Table.Td>
            <Table.Td visibleFrom="sm">
              <RelativeTime at={at} />
            </Table.Td>
            <Table.Td visibleFrom="md">
              {source === null ? (
                <Text span inherit c="dimmed">
                  none
                </Text>
              ) : (
                <Anchor
                  inherit
                  component={Link}
                  href={path`/messages/${source}`}
                  ff="monospace"
                  size="sm"
                  className="wrap"
                >
                  {source}
                </Anchor>
              )}
            </Table.Td>
            <Table.Td ta="right">
              <RemoveSuppressionButton list={list} address={address} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
