/** Addresses of a list, each with its reason and the message that caused it. */
import { Anchor, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { SuppressionEntry } from '../../../src/operations/suppressions/schemas.ts';
import { path } from '../api/client';
import { When } from '../parts/when';
import { ReasonMark } from './reason-mark';
import { RemoveButton } from './remove';

interface ListTableProps {
  readonly list: string;
  readonly entries: readonly SuppressionEntry[];
  readonly onWhy: (address: string) => void;
}

export function ListTable({ list, entries, onWhy }: ListTableProps) {
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
            Caused by
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
                onClick={() => onWhy(address)}
              >
                {address}
              </Anchor>
              <Text component="div" hiddenFrom="xs" mt={4} size="sm">
                <ReasonMark reason={reason} /> <When at={at} />
              </Text>
            </Table.Td>
            <Table.Td visibleFrom="xs">
              <ReasonMark reason={reason} />
            </Table.Td>
            <Table.Td visibleFrom="sm">
              <When at={at} />
            </Table.Td>
            <Table.Td visibleFrom="md">
              {source === null ? (
                <Text span inherit c="dimmed">
                  no message
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
              <RemoveButton list={list} address={address} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
