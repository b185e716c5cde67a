/** The page of a message: state, explanation, timeline, body, and the actions on it. */
import { Anchor, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { MessageDetails } from '../../../src/operations/messages/schemas.ts';
import { ApiError, get, path } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { MessageActions } from '../message/actions';
import { MessageBody } from '../message/body';
import { Explanation } from '../message/explanation';
import { Outcome } from '../message/outcome';
import { Timeline } from '../message/timeline';
import { Copyable } from '../parts/copyable';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { StateBadge } from '../parts/state-badge';
import { formatUtc } from '../parts/time';
import type { PageProps } from '.';

export function MessagePage({ parameters, session }: PageProps) {
  const id = parameters.id ?? '';
  const refetchInterval = usePollingInterval();
  const message = useQuery({
    queryKey: ['messages', id],
    queryFn: () => get<MessageDetails>(path`/messages/${id}`),
    refetchInterval: ({ state }) => (state.data === undefined ? false : refetchInterval),
  });
  if (message.data !== undefined) return <Message message={message.data} captured={session.transport === 'capture'} />;
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

function Message({ message, captured }: { readonly message: MessageDetails; readonly captured: boolean }) {
  const { state, to, from, subject, account, id, at, ended, confirmedAt } = message;
  return (
    <>
      <PageHead title={subject.trim() === '' ? '(blank subject)' : subject}>
        <MessageActions message={message} />
      </PageHead>
      <Stack gap="lg">
        <Outcome message={message} />
        <dl className="facts head">
          <Fact name="state">
            <StateBadge
              state={state}
              deferred={state === 'queued' && message.attempts.at(-1)?.outcome === 'deferred'}
            />
          </Fact>
          <Fact name="to">{to}</Fact>
          <Fact name="from">{from}</Fact>
          <Fact name="account">
            {account === null ? (
              'deleted'
            ) : (
              <Anchor component={Link} href={`/accounts/${encodeURIComponent(account)}`} inherit>
                {account}
              </Anchor>
            )}
          </Fact>
          <Fact name="accepted">{formatUtc(at)}</Fact>
          {ended === null ? null : <Fact name="ended">{formatUtc(ended)}</Fact>}
          {confirmedAt === null ? null : <Fact name="confirmed">{formatUtc(confirmedAt)}</Fact>}
          {message.resendOf === null ? null : (
            <Fact name="resend of">
              <Anchor component={Link} href={`/messages/${message.resendOf}`} inherit>
                {message.resendOf}
              </Anchor>
            </Fact>
          )}
          <Fact name="id">
            <Copyable value={id} label="id" />
          </Fact>
        </dl>
        <Explanation message={message} />
        <Timeline message={message} />
        <MessageBody
          message={message}
          inInbox={captured && message.attempts.some(({ outcome }) => outcome === 'delivered')}
        />
      </Stack>
    </>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
