/** A list of accounts: state with its reason, limits, and bounce and complaint rates of the last 7 days. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { ThresholdUsage } from '../../../src/model/account.ts';
import type { AccountDetails } from '../../../src/operations/accounts.ts';
import { path } from '../api/client';
import { ListHead, ListRow } from '../parts/list-row';
import { formatNumber, formatPercent } from '../parts/number';
import { StatusBadge } from '../parts/status-badge';
import { useRowKeys } from '../parts/use-row-keys';

/** The number of rows shown initially. A phone renders a thousand rows slowly. */
const MAX_INITIAL_ROWS = 200;

export function AccountTable({ accounts }: { readonly accounts: readonly AccountDetails[] }) {
  const [, navigate] = useLocation();
  const [showAll, setShowAll] = useState(false);
  const shownAccounts = showAll ? accounts : accounts.slice(0, MAX_INITIAL_ROWS);
  const openAccount = (name: string) => navigate(path`/accounts/${name}`);
  const currentName = useRowKeys({ ids: shownAccounts.map(({ name }) => name), onOpen: openAccount });
  return (
    <div className="card flush">
      <table className="list">
        <caption className="unseen">Accounts</caption>
        <ListHead
          columns={['State', 'Account', 'Volume', 'Messages, 7 days', 'Bounced', 'Complained']}
          figureColumnCount={4}
        />
        <tbody>
          {shownAccounts.map((account) => (
            <ListRow
              key={account.name}
              id={account.name}
              isCurrent={currentName === account.name}
              onOpen={() => openAccount(account.name)}
            >
              <AccountCells account={account} />
            </ListRow>
          ))}
        </tbody>
      </table>
      {shownAccounts.length < accounts.length ? (
        <div className="list-foot">
          <span>{formatNumber(accounts.length - shownAccounts.length)} more</span>
          <Button variant="default" size="xs" onClick={() => setShowAll(true)}>
            Show all {formatNumber(accounts.length)}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function AccountCells({ account }: { readonly account: AccountDetails }) {
  const { name, volume, volumeLeft, volumeUsed, reputation } = account;
  const [bounces, complaints] = reputation.thresholds;
  return (
    <>
      <td>
        <AccountBadge account={account} />
      </td>
      <td className="fill">
        <div className="two-lines">
          <Link href={path`/accounts/${name}`}>{name}</Link>
          <span>{describeAccount(account)}</span>
        </div>
      </td>
      <td className="end" data-label="Volume">
        {volume === null
          ? `${formatNumber(volumeUsed)} used`
          : `${formatNumber(volumeLeft ?? 0)} of ${formatNumber(volume)} left`}
      </td>
      <td className="end" data-label="7 days">
        {formatNumber(reputation.emails)}
      </td>
      <td className="end" data-label="Bounced">
        <Rate threshold={bounces} emails={reputation.emails} />
      </td>
      <td className="end" data-label="Complained">
        <Rate threshold={complaints} emails={reputation.emails} />
      </td>
    </>
  );
}

/** Returns the reason for the lock; without a lock the warning; without a warning the limits. */
function describeAccount({ reason, warning, state, volume, rate, throttle }: AccountDetails): string {
  if (state === 'locked') return reason ?? 'locked';
  if (warning !== null) return warning;
  const limits = [
    ...(volume === null ? [] : ['limited volume']),
    ...(rate === null ? [] : [`rate ${rate}`]),
    ...(throttle === null ? [] : [`throttle ${throttle}`]),
  ];
  return limits.length === 0 ? 'no limits' : limits.join(' · ');
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

/** Shows a rate. A rate of at least half of the threshold is bold. */
function Rate({ threshold, emails }: { readonly threshold: ThresholdUsage | undefined; readonly emails: number }) {
  if (threshold === undefined || emails === 0 || threshold.count === 0) return <>0</>;
  const text = formatPercent(threshold.count / emails);
  return <span className="nowrap">{threshold.usage >= 0.5 ? <b>{text}</b> : text}</span>;
}
