/** The inbox of the capture transport: a list and the selected message. New messages appear without a reload. */
import { Text, VisuallyHidden } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import type { InboxPage as Page } from '../../../src/operations/inbox/schemas.ts';
import { get } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { CapturedList } from '../inbox/captured-list';
import { CapturedReader } from '../inbox/captured-reader';
import '../inbox/inbox.css';
import { Card } from '../parts/card';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { TestMessage } from '../setup/test-message';
import type { PageProps } from './index';

export function InboxPage({ parameters: { id }, session }: PageProps) {
  const refetchInterval = usePollingInterval();
  const list = useInfiniteQuery({
    queryKey: ['inbox', 'list'],
    queryFn: ({ pageParam }) => get<Page>('/inbox', { limit: 50, before: pageParam }),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
    refetchInterval,
    enabled: session.transport === 'capture',
  });
  const messages = list.data?.pages.flatMap(({ messages }) => messages) ?? [];
  const newest = messages[0];
  const hasNewMessage = useHasNewMessage(newest?.id, list.isSuccess);

  // The first message opens automatically if the inbox was empty and no message is selected.
  const [, navigate] = useLocation();
  const isEmpty = list.isSuccess && newest === undefined;
  const wasEmpty = useRef(false);
  useEffect(() => {
    if (wasEmpty.current && newest !== undefined && id === undefined)
      navigate(`/inbox/${newest.id}`, { replace: true });
    wasEmpty.current = isEmpty;
  }, [isEmpty, newest, id, navigate]);

  if (session.transport !== 'capture')
    return (
      <>
        <PageHead title="Inbox" />
        <EmptyState title="No inbox">
          The transport is <code>{session.transport}:</code>. With <code>POSTRIDER_TRANSPORT=capture:</code> messages
          are captured here and not sent.
        </EmptyState>
      </>
    );
  return (
    <>
      <PageHead title="Inbox" />
      <VisuallyHidden role="status" aria-live="polite">
        {hasNewMessage && newest !== undefined ? `New message to ${newest.to}: ${newest.subject}` : ''}
      </VisuallyHidden>
      {list.isPending ? <Loading /> : null}
      {list.isError && newest === undefined ? <ErrorAlert error={list.error} retry={() => list.refetch()} /> : null}
      {isEmpty && id === undefined ? (
        <div className="stack">
          <EmptyState title="No messages">Messages are captured here and not sent.</EmptyState>
          <Card title="Send a test message">
            <TestMessage session={session} />
          </Card>
        </div>
      ) : null}
      {newest === undefined && id === undefined ? null : (
        <div className="inbox" data-reading={id !== undefined}>
          <CapturedList
            messages={messages}
            selectedId={id}
            loadMore={list.hasNextPage ? () => void list.fetchNextPage() : null}
            busy={list.isFetchingNextPage}
          />
          <section className="inbox-message" aria-label="Message">
            {id === undefined ? <Text c="dimmed">Select a message.</Text> : <CapturedReader key={id} id={id} />}
          </section>
        </div>
      )}
    </>
  );
}

/** Returns true once the newest message differs from the newest message of the first response. */
function useHasNewMessage(newest: string | undefined, isLoaded: boolean): boolean {
  const firstKnown = useRef<string | null | undefined>(undefined);
  if (isLoaded && firstKnown.current === undefined) firstKnown.current = newest ?? null;
  return isLoaded && newest !== undefined && newest !== firstKnown.current;
}
