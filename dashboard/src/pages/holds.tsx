/** The page Holds: which messages are stopped, how many, and since when. Releases a hold. */
import { Button, Code } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { getMailboxProviderName } from '../../../src/model/mailbox-provider.ts';
import type { HoldEntry } from '../../../src/operations/holds.ts';
import { get, post } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { useApiMutation } from '../api/mutation';
import { AddHoldDialog } from '../holds/add-dialog';
import { formatNumber } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { StatusBadge, type Tone } from '../parts/status-badge';

export function HoldsPage() {
  const refetchInterval = usePollingInterval();
  const holds = useQuery({
    queryKey: ['holds'],
    queryFn: () => get<readonly HoldEntry[]>('/holds'),
    refetchInterval,
  });
  const [isDialogOpen, setIsDialogOpen] = useState(false);
  return (
    <>
      <PageHead title="Holds">
        <Button onClick={() => setIsDialogOpen(true)}>Add hold</Button>
      </PageHead>
      <p className="page-intro">
        A held message stays accepted and queued. It is not attempted, does not expire, and is due at once after the
        release.
      </p>
      {holds.isPending ? <Loading /> : null}
      {holds.isError ? <ErrorAlert error={holds.error} retry={holds.refetch} /> : null}
      {holds.data?.length === 0 ? (
        <EmptyState title="No holds">
          Add a hold here, or with <Code>postrider hold add --reason TEXT</Code>
        </EmptyState>
      ) : null}
      {holds.data === undefined || holds.data.length === 0 ? null : (
        <section className="card flush" aria-label="Holds">
          <table className="list">
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col">Messages and reason</th>
                <th scope="col" className="end">
                  Held
                </th>
                <th scope="col">Added</th>
                <th scope="col">Ends</th>
                <th scope="col" aria-label="Actions" />
              </tr>
            </thead>
            <tbody>
              {holds.data.map((hold) => (
                <HoldRow key={hold.id} hold={hold} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {isDialogOpen ? <AddHoldDialog onClose={() => setIsDialogOpen(false)} /> : null}
    </>
  );
}

const STATES: Readonly<Record<HoldEntry['state'], { readonly tone: Tone; readonly label: string }>> = {
  active: { tone: 'warning', label: 'Active' },
  released: { tone: 'neutral', label: 'Released' },
  ended: { tone: 'neutral', label: 'Ended' },
};

function HoldRow({ hold }: { readonly hold: HoldEntry }) {
  const { id, state, reason, by, held, created, until, ended } = hold;
  const release = useApiMutation(
    () => post<readonly HoldEntry[]>('/holds/release', { ids: String(id) }),
    ['holds', 'overview', 'messages'],
    () => `Released hold ${id}.`,
  );
  const endsAt = ended ?? until;
  return (
    <tr>
      <td>
        <StatusBadge tone={STATES[state].tone}>{STATES[state].label}</StatusBadge>
      </td>
      <td className="fill">
        <div className="two-lines">
          <span>{describeMessages(hold)}</span>
          <span>{reason}</span>
        </div>
        {release.isError ? <ErrorAlert error={release.error} /> : null}
      </td>
      <td className="end" data-label="Held">
        {state === 'active' ? formatNumber(held) : null}
      </td>
      <td data-label="Added">
        <RelativeTime at={created} /> by {by}
      </td>
      <td data-label="Ends">{endsAt === null ? 'at its release' : <RelativeTime at={endsAt} />}</td>
      <td className="end">
        {state === 'active' ? (
          <Button
            variant="default"
            size="compact-sm"
            aria-label={`Release hold ${id}`}
            loading={release.isPending}
            onClick={() => release.mutate(undefined)}
          >
            Release
          </Button>
        ) : null}
      </td>
    </tr>
  );
}

function describeMessages({ id, account, from, to, mailboxProvider }: HoldEntry): string {
  const filters = [
    account === null ? null : `account ${account}`,
    from === null ? null : `from ${from}`,
    to === null ? null : `to ${to}`,
    mailboxProvider === null ? null : `mailbox provider ${getMailboxProviderName(mailboxProvider)}`,
  ].filter((filter) => filter !== null);
  return `${id}: ${filters.length === 0 ? 'every message' : filters.join(', ')}`;
}
