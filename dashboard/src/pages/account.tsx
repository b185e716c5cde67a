/** One account: limits and reputation, keys, domains; what can be done to it. */
import { Anchor, Button, Group, Tabs, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AccountDetails } from '../../../src/operations/accounts/schemas.ts';
import { AccountMark } from '../accounts/account-table';
import { Keys } from '../accounts/keys';
import { LimitGauges } from '../accounts/limit-gauges';
import { LimitsDialog } from '../accounts/limits-dialog';
import { LockButton } from '../accounts/lock';
import { useAccount } from '../accounts/queries';
import { useAddress } from '../api/address';
import { DomainsOf } from '../domains/domains-of';
import { Absent } from '../parts/absent';
import { Notice } from '../parts/notice';
import { PageHead } from '../parts/page-head';
import { Loading } from '../parts/states';
import { exact, When } from '../parts/when';
import type { PageProps } from './index';

const TABS = ['limits', 'keys', 'domains'] as const;

export function AccountPage({ parameters }: PageProps) {
  const name = parameters.name ?? '';
  const account = useAccount(name);
  if (account.data === undefined) {
    return (
      <>
        <PageHead title={`Account ${name}`} />
        {account.isError ? (
          <Absent
            error={account.error}
            retry={account.refetch}
            title="There is no account of this name"
            href="/accounts"
            link="See all accounts"
          />
        ) : (
          <Loading />
        )}
      </>
    );
  }
  return <Shown account={account.data} />;
}

function Shown({ account }: { readonly account: AccountDetails }) {
  const { name } = account;
  const [address, setAddress] = useAddress();
  const [editing, setEditing] = useState(false);
  const tab = TABS.find((one) => one === address.get('tab')) ?? 'limits';
  return (
    <>
      <PageHead title={`Account ${name}`}>
        <Group gap="xs">
          <Button variant="default" onClick={() => setEditing(true)}>
            Edit limits
          </Button>
          <LockButton account={account} />
        </Group>
      </PageHead>
      <Group mb="md" gap="md">
        <AccountMark account={account} />
        <Text c="dimmed">
          Created <When at={account.created} />
        </Text>
        <Anchor component={Link} href={`/messages?account=${encodeURIComponent(name)}`}>
          Messages
        </Anchor>
        <Anchor component={Link} href={`/suppressions?list=${encodeURIComponent(name)}`}>
          Suppressions
        </Anchor>
      </Group>
      {account.state === 'locked' ? <Locked account={account} /> : null}
      {account.state === 'active' && account.warning !== null ? (
        <Notice tone="waiting" title="Half of what locks it is reached">
          {account.warning}
        </Notice>
      ) : null}
      <Tabs value={tab} onChange={(next) => setAddress({ tab: next === 'limits' ? null : next })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="limits">Limits</Tabs.Tab>
          <Tabs.Tab value="keys">Keys</Tabs.Tab>
          <Tabs.Tab value="domains">Domains</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="limits">
          <LimitGauges account={account} />
        </Tabs.Panel>
        <Tabs.Panel value="keys">
          <Keys account={name} />
        </Tabs.Panel>
        <Tabs.Panel value="domains">
          <DomainsOf account={name} />
        </Tabs.Panel>
      </Tabs>
      {editing ? <LimitsDialog account={account} onClose={() => setEditing(false)} /> : null}
    </>
  );
}

function Locked({ account: { reason, lockedAt } }: { readonly account: AccountDetails }) {
  return (
    <Notice tone="bad" title="Locked: its keys are refused, its queued mail is held back">
      <Text className="wrap">{reason}</Text>
      {lockedAt === null ? null : (
        <Text c="dimmed" size="sm">
          As it was when it was locked, <When at={lockedAt} /> ({exact(lockedAt)}); the counts below are those of now.
        </Text>
      )}
    </Notice>
  );
}
