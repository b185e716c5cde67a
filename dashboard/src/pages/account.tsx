/** The account page: limits, reputation, keys, domains, and the actions on the account. */
import { Anchor, Button, Tabs } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AccountDetails } from '../../../src/operations/accounts.ts';
import { AccountBadge } from '../accounts/account-table';
import { Keys } from '../accounts/keys';
import { LimitGauges } from '../accounts/limit-gauges';
import { LimitsDialog } from '../accounts/limits-dialog';
import { LockButton } from '../accounts/lock';
import { useAccount } from '../accounts/queries';
import { Senders } from '../accounts/senders';
import { useUrlState } from '../api/url-state';
import { AccountDomains } from '../domains/account-domains';
import { Callout } from '../parts/callout';
import { LoadError } from '../parts/load-error';
import { PageHead } from '../parts/page-head';
import { Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { formatTime } from '../parts/time';
import type { PageProps } from './index';

const LIST_LINK = { href: '/accounts', text: 'Accounts' };
const TABS = ['limits', 'keys', 'domains', 'senders'] as const;

export function AccountPage({ parameters }: PageProps) {
  const name = parameters.name ?? '';
  const account = useAccount(name);
  if (account.data === undefined) {
    return (
      <>
        <PageHead title={name} parent={LIST_LINK} />
        {account.isError ? (
          <LoadError
            error={account.error}
            retry={account.refetch}
            title="No account has this name"
            href="/accounts"
            link="Show all accounts"
          />
        ) : (
          <Loading />
        )}
      </>
    );
  }
  return <AccountContent account={account.data} />;
}

function AccountContent({ account }: { readonly account: AccountDetails }) {
  const { name } = account;
  const [urlState, setUrlState] = useUrlState();
  const [isLimitsDialogOpen, setIsLimitsDialogOpen] = useState(false);
  const tab = TABS.find((candidate) => candidate === urlState.get('tab')) ?? 'limits';
  return (
    <>
      <PageHead
        title={name}
        parent={LIST_LINK}
        badge={<AccountBadge account={account} />}
        secondary={
          <span className="sentence">
            created <RelativeTime at={account.created} /> ·{' '}
            <Anchor component={Link} href={`/messages?account=${encodeURIComponent(name)}`} inherit>
              Messages
            </Anchor>{' '}
            ·{' '}
            <Anchor component={Link} href={`/suppressions?list=${encodeURIComponent(name)}`} inherit>
              Suppressions
            </Anchor>{' '}
            ·{' '}
            <Anchor
              component={Link}
              href={`/deliverability?${new URLSearchParams({ account: name, range: '7d' }).toString()}`}
              inherit
            >
              Mailbox providers
            </Anchor>
          </span>
        }
      >
        <Button variant="default" onClick={() => setIsLimitsDialogOpen(true)}>
          Edit limits
        </Button>
        <LockButton account={account} />
      </PageHead>
      {account.state === 'locked' ? <LockedNote account={account} /> : null}
      {account.state === 'active' && account.warning !== null ? (
        <Callout tone="warning" title="Close to a threshold that locks the account">
          {account.warning}
        </Callout>
      ) : null}
      <Tabs value={tab} onChange={(next) => setUrlState({ tab: next === 'limits' ? null : next })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="limits">Limits</Tabs.Tab>
          <Tabs.Tab value="keys">Keys</Tabs.Tab>
          <Tabs.Tab value="domains">Domains</Tabs.Tab>
          <Tabs.Tab value="senders">Senders</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="limits">
          <LimitGauges account={account} />
        </Tabs.Panel>
        <Tabs.Panel value="keys">
          <Keys account={name} />
        </Tabs.Panel>
        <Tabs.Panel value="domains">
          <AccountDomains account={name} />
        </Tabs.Panel>
        <Tabs.Panel value="senders">
          <Senders account={name} />
        </Tabs.Panel>
      </Tabs>
      {isLimitsDialogOpen ? <LimitsDialog account={account} onClose={() => setIsLimitsDialogOpen(false)} /> : null}
    </>
  );
}

function LockedNote({ account: { reason, lockedAt } }: { readonly account: AccountDetails }) {
  return (
    <Callout tone="error" title="Locked: keys are refused, queued messages wait">
      <div className="wrap">{reason}</div>
      {lockedAt === null ? null : (
        <div>
          Locked <RelativeTime at={lockedAt} /> ({formatTime(lockedAt)}). The reason contains the counts of that time;
          the counts below are current.
        </div>
      )}
    </Callout>
  );
}
