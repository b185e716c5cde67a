/** Accounts as a list: state, limits, and the rates of 7 days. */
import { Anchor, Button, Group, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { ThresholdUsage } from '../../../src/model/account.ts';
import type { AccountDetails } from '../../../src/operations/accounts/schemas.ts';
import { path } from '../api/client';
import { Mark } from '../parts/mark';
import { grouped, percentage } from '../parts/number';

/** Drawn at first; a page of a thousand rows is slow on a phone. */
const FIRST = 200;

export function AccountTable({ accounts }: { readonly accounts: readonly AccountDetails[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? accounts : accounts.slice(0, FIRST);
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
              Emails, 7 days
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
          {shown.map((account) => (
            <Row key={account.name} account={account} />
          ))}
        </Table.Tbody>
      </Table>
      {shown.length < accounts.length ? (
        <Group justify="center" my="md">
          <Button variant="default" onClick={() => setAll(true)}>
            Show all {grouped(accounts.length)}
          </Button>
        </Group>
      ) : null}
    </>
  );
}

function Row({ account }: { readonly account: AccountDetails }) {
  const { name, volume, volumeLeft, volumeUsed, rate, throttle, reputation } = account;
  const [bounces, complaints] = reputation.thresholds;
  const state = <AccountMark account={account} />;
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
          ? `unlimited, ${grouped(volumeUsed)} used`
          : `${grouped(volumeLeft ?? 0)} of ${grouped(volume)} left`}
      </Table.Td>
      <Table.Td visibleFrom="md">{rate ?? 'none'}</Table.Td>
      <Table.Td visibleFrom="md">{throttle ?? 'none'}</Table.Td>
      <Table.Td ta="right" visibleFrom="sm">
        {grouped(reputation.emails)}
      </Table.Td>
      <Table.Td ta="right">
        <Share measure={bounces} emails={reputation.emails} />
      </Table.Td>
      <Table.Td ta="right">
        <Share measure={complaints} emails={reputation.emails} />
      </Table.Td>
    </Table.Tr>
  );
}

/** Locked, near a threshold, or as it should be. */
export function AccountMark({ account }: { readonly account: Pick<AccountDetails, 'state' | 'reputation'> }) {
  if (account.state === 'locked') return <Mark tone="bad">locked</Mark>;
  return account.reputation.status === 'good' ? (
    <Mark tone="good">active</Mark>
  ) : (
    <Mark tone="waiting">near its limit</Mark>
  );
}

/** Bold where half of what locks is reached, so that it is not told by colour alone. */
function Share({ measure, emails }: { readonly measure: ThresholdUsage | undefined; readonly emails: number }) {
  if (measure === undefined || emails === 0 || measure.count === 0) return <>0</>;
  return (
    <Text span inherit fw={measure.usage >= 0.5 ? 700 : 400} style={{ whiteSpace: 'nowrap' }}>
      {percentage(measure.count / emails)}
    </Text>
  );
}
