/** A table of accounts: state, limits, and bounce and complaint rates of the last 7 days. */
import { Anchor, Button, Group, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { ThresholdUsage } from '../../../src/model/account.ts';
import type { AccountDetails } from '../../../src/operations/accounts/schemas.ts';
import { path } from '../api/client';
import { formatNumber, formatPercent } from '../parts/number';
import { StatusBadge } from '../parts/status-badge';

/** The number of rows that are shown initially, because a phone renders a thousand rows slowly. */
const MAX_INITIAL_ROWS = 200;

export function AccountTable({ accounts }: { readonly accounts: readonly AccountDetails[] }) {
  const [showAll, setShowAll] = useState(false);
  const shownAccounts = showAll ? accounts : accounts.slice(0, MAX_INITIAL_ROWS);
  return (
    <>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Account</Table.Th>
            <Table.Th scope="col" visibleFrom="sm">
              State
            </Table.Th>
            <Table.Th scope="col" visibleFrom="xs">
              Volume
            </Table.Th>
            <Table.Th scope="col" visibleFrom="md">
              Rate
            </Table.Th>
            <Table.Th scope="col" visibleFrom="md">
              Throttle
            </Table.Th>
            <Table.Th scope="col" ta="right" visibleFrom="sm">
              Messages, 7 days
            </Table.Th>
            <Table.Th scope="col" ta="right">
              Bounced
            </Table.Th>
            <Table.Th scope="col" ta="right">
              Complained
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shownAccounts.map((account) => (
            <Row key={account.name} account={account} />
          ))}
        </Table.Tbody>
      </Table>
      {shownAccounts.length < accounts.length ? (
        <Group justify="center" my="md">
          <Button variant="default" onClick={() => setShowAll(true)}>
            Show all {formatNumber(accounts.length)}
          </Button>
        </Group>
      ) : null}
    </>
  );
}

function Row({ account }: { readonly account: AccountDetails }) {
  const { name, volume, volumeLeft, volumeUsed, rate, throttle, reputation } = account;
  const [bounces, complaints] = reputation.thresholds;
  const state = <AccountBadge account={account} />;
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor inherit component={Link} href={path`/accounts/${name}`} className="wrap">
          {name}
        </Anchor>
        <Text component="div" hiddenFrom="sm" mt={4}>
          {state}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">{state}</Table.Td>
      <Table.Td visibleFrom="xs">
        {volume === null
          ? `unlimited, ${formatNumber(volumeUsed)} used`
          : `${formatNumber(volumeLeft ?? 0)} of ${formatNumber(volume)} left`}
      </Table.Td>
      <Table.Td visibleFrom="md">{rate ?? 'none'}</Table.Td>
      <Table.Td visibleFrom="md">{throttle ?? 'none'}</Table.Td>
      <Table.Td ta="right" visibleFrom="sm">
        {formatNumber(reputation.emails)}
      </Table.Td>
      <Table.Td ta="right">
        <Rate threshold={bounces} emails={reputation.emails} />
      </Table.Td>
      <Table.Td ta="right">
        <Rate threshold={complaints} emails={reputation.emails} />
      </Table.Td>
    </Table.Tr>
  );
}

/** Shows whether the account is locked, close to a threshold that locks it, or active. */
export function AccountBadge({ account }: { readonly account: Pick<AccountDetails, 'state' | 'reputation'> }) {
  if (account.state === 'locked') return <StatusBadge tone="error">locked</StatusBadge>;
  return account.reputation.status === 'good' ? (
    <StatusBadge tone="success">active</StatusBadge>
  ) : (
    <StatusBadge tone="warning">near lock</StatusBadge>
  );
}

/** Shows a rate. A rate of at least half of the threshold is bold, so that its meaning does not depend on color. */
function Rate({ threshold, emails }: { readonly threshold: ThresholdUsage | undefined; readonly emails: number }) {
  if (threshold === undefined || emails === 0 || threshold.count === 0) return <>0</>;
  return (
    <Text span inherit fw={threshold.usage >= 0.5 ? 700 : 400} style={{ whiteSpace: 'nowrap' }}>
      {formatPercent(threshold.count / emails)}
    </Text>
  );
}
