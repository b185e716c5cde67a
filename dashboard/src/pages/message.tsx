/** The message page: outcome, timeline, details, content, explanation, and the actions on the message. */
import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { MessageDetails } from '../../../src/operations/message-details.ts';
import { ApiError, get, path } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { MessageActions } from '../message/actions';
import { MessageContent } from '../message/content';
import { Explanation } from '../message/explanation';
import { Outcome } from '../message/outcome';
import { Timeline } from '../message/timeline';
import { isDeferred } from '../messages/message-state';
import { Card, Entry } from '../parts/card';
import { CopyIcon } from '../parts/copyable';
import { formatNumber } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { StateBadge } from '../parts/state-badge';
import { formatTime } from '../parts/time';
import type { PageProps } from '.';

export function MessagePage({ parameters, session }: PageProps) {
  const id = parameters.id ?? '';
  const refetchInterval = usePollingInterval();
  const message = useQuery({
    queryKey: ['messages', id],
    queryFn: () => get<MessageDetails>(path`/messages/${id}`),
    refetchInterval: ({ state }) => (state.data === undefined ? false : refetchInterval),
  });
  if (message.data !== undefined) return <Message message={message.data} session={session} />;
  return (
    <>
      <PageHead title="Message" />
      {message.isPending ? <Loading /> : <MessageNotFound error={message.error} retry={() => message.refetch()} />}
    </>
  );
}

function MessageNotFound({ error, retry }: { readonly error: unknown; readonly retry: () => unknown }) {
  const status = error instanceof ApiError ? error.status : 0;
  if (status !== 400 && status !== 404) return <ErrorAlert error={error} retry={retry} />;
  return (
    <EmptyState title={status === 404 ? 'No message has this id' : 'This is not a message id'}>
      <Anchor component={Link} href="/messages">
        Search messages
      </Anchor>
    </EmptyState>
  );
}

function Message({ message, session }: Pick<PageProps, 'session'> & { readonly message: MessageDetails }) {
  const { state, subject, id } = message;
  const isCapturing = session.transport === 'capture';
  return (
    <>
      <PageHead
        title={subject.trim() === '' ? '(blank subject)' : subject}
        parent={{ href: '/messages', text: 'Messages' }}
        crumb={
          <>
            {id} <CopyIcon value={id} label="id" />
          </>
        }
        badge={<StateBadge state={state} isDeferred={isDeferred(message)} isHeld={message.held !== null} />}
      >
        <MessageActions message={message} />
      </PageHead>
      <div className="stack">
        <Outcome message={message} />
        <div className="columns wide-side">
          <div className="stack">
            <Timeline message={message} routes={session.routes} />
            <MessageContent
              key={`content ${id}`}
              message={message}
              inInbox={isCapturing && message.attempts.some(({ outcome }) => outcome === 'delivered')}
            />
          </div>
          <div className="stack">
            <Details key={id} message={message} />
            <Explanation message={message} />
          </div>
        </div>
      </div>
    </>
  );
}

function Details({ message }: { readonly message: MessageDetails }) {
  const { to, from, account, at, ended, confirmedAt, attemptCount, resendOf } = message;
  return (
    <Card title="Details">
      <dl className="record">
        <Entry name="To">{to}</Entry>
        <Entry name="From">{from}</Entry>
        <Entry name="Account">
          {account === null ? (
            'deleted'
          ) : (
            <Anchor component={Link} href={`/accounts/${encodeURIComponent(account)}`} inherit>
              {account}
            </Anchor>
          )}
        </Entry>
        <Entry name="Attempts">{formatNumber(attemptCount)}</Entry>
        <Entry name="Accepted">{formatTime(at)}</Entry>
        {ended === null ? null : <Entry name="Ended">{formatTime(ended)}</Entry>}
        {confirmedAt === null ? null : <Entry name="Confirmed">{formatTime(confirmedAt)}</Entry>}
        {resendOf === null ? null : (
          <Entry name="Resend of">
            <Anchor component={Link} href={`/messages/${resendOf}`} inherit>
              {resendOf}
            </Anchor>
          </Entry>
        )}
      </dl>
      {message.message === null ? null : (
        <p className="card-note">
          The raw source is composed for each download with the current settings and keys. The source equals the
          transmitted bytes if the settings and keys have not changed since the last attempt.
        </p>
      )}
    </Card>
  );
}
