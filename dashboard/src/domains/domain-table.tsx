/** A table of domains: state, DNS records found, time of the last check. */
import { Anchor, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { DomainDetails } from '../../../src/operations/domains/schemas.ts';
import { path } from '../api/client';
import { RelativeTime } from '../parts/relative-time';
import { DomainBadge, formatFoundRecords } from './domain-badge';

export function DomainTable({
  domains,
  oneAccount = false,
}: {
  readonly domains: readonly DomainDetails[];
  readonly oneAccount?: boolean;
}) {
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Domain</Table.Th>
          <Table.Th scope="col">State</Table.Th>
          {oneAccount ? null : (
            <Table.Th scope="col" visibleFrom="sm">
              Account
            </Table.Th>
          )}
          <Table.Th scope="col" visibleFrom="xs">
            Records
          </Table.Th>
          <Table.Th scope="col" visibleFrom="sm">
            Subdomains
          </Table.Th>
          <Table.Th scope="col" visibleFrom="sm">
            Last check
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {domains.map((domain) => (
          <Table.Tr key={domain.domain}>
            <Table.Td>
              <Anchor inherit component={Link} href={path`/domains/${domain.domain}`} className="wrap">
                {domain.domain}
              </Anchor>
              {domain.unicode === domain.domain ? null : (
                <Text size="sm" c="dimmed" className="wrap">
                  {domain.unicode}
                </Text>
              )}
              <Text size="sm" c="dimmed" hiddenFrom="xs">
                {formatFoundRecords(domain)}
              </Text>
            </Table.Td>
            <Table.Td>
              <DomainBadge status={domain.status} />
            </Table.Td>
            {oneAccount ? null : (
              <Table.Td visibleFrom="sm">
                <Anchor inherit component={Link} href={path`/accounts/${domain.account}`} className="wrap">
                  {domain.account}
                </Anchor>
              </Table.Td>
            )}
            <Table.Td visibleFrom="xs">{formatFoundRecords(domain)}</Table.Td>
            <Table.Td visibleFrom="sm">{domain.subdomains ? 'allowed' : 'not allowed'}</Table.Td>
            <Table.Td visibleFrom="sm">
              {domain.checked === null ? 'never' : <RelativeTime at={domain.checked} />}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
