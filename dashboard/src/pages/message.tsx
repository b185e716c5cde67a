/** One message: where it is and why, what happened to it, and what an operator can do. */
import { Anchor, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { MessageDetails } from '../../../src/operations/messages/schemas.ts';
import { ApiError, get, path } from '../api/client';
import { usePolling } from '../api/live-state';
import { Actions } from '../message/actions';
import { Body } from '../message/body';
import { Explanation } from '../message/explanation';
import { Timeline } from '../message/timeline';
import { Copyable } from '../parts/copy';
import { PageHead } from '../parts/page-head';
import { StateBadge } from '../parts/state-badge';
import { Empty, Failure, Loading } from '../parts/states';
import { exact } from '../parts/when';
import type { PageProps } from '.';

export function MessagePage({ parameters, session }: PageProps) {
  const id = parameters.id ?? '';
  const refetchInterval = usePolling();
  const shown = useQuery({
    queryKey: ['messages', id],
    queryFn: () => get<MessageDetails>(path`/messages/${id}`),
    refetchInterval: ({ state }) => (state.data === undefined ? false : refetchInterval),
  });
  if (shown.data !== undefined) return <Message message={shown.data} captured={session.transport === 'capture'} />;
  return (
    <>
      <PageHead title="Message" />
      {shown.isPending ? <Loading /> : <Absent error={shown.error} retry={() => shown.refetch()} />}
    </>
  );
}

function Absent({ error, retry }: { readonly error: unknown; readonly retry: () => unknown }) {
  const status = error instanceof ApiError ? error.status : 0;
  if (status !== 400 && status !== 404) return <Failure error={error} retry={retry} />;
  return (
    <Empty title={status === 404 ? 'There is no such mail request' : 'This is not the id of a mail request'}>
      <Anchor component={Link} href="/messages">
        Search the messages
      </Anchor>
    </Empty>
  );
}

function Message({ message, captured }: { readonly message: MessageDetails; readonly captured: boolean }) {
  const { state, to, from, subject, account, id, at, ended } = message;
  return (
    <>
      <PageHead title={subject.trim() === '' ? '(blank subject)' : subject}>
        <Actions message={message} />
      </PageHead>
      <Stack gap="lg">
        <dl className="facts head">
          <Fact name="state">
            <StateBadge state={state} />
          </Fact>
          <Fact name="to">{to}</Fact>
          <Fact name="from">{from}</Fact>
          <Fact name="account">
            {account === null ? (
              'gone'
            ) : (
              <Anchor component={Link} href={`/accounts/${encodeURIComponent(account)}`} inherit>
                {account}
              </Anchor>
            )}
          </Fact>
          <Fact name="accepted">{exact(at)}</Fact>
          {ended === null ? null : <Fact name="ended">{exact(ended)}</Fact>}
          <Fact name="id">
            <Copyable value={id} label="id" />
          </Fact>
        </dl>
        <Explanation message={message} />
        <Timeline message={message} />
        <Body message={message} inInbox={captured && message.attempts.some(({ outcome }) => outcome === 'delivered')} />
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
