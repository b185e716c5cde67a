/** The inbox of `capture:`: the list beside the mail, on a phone the list and then the mail. New mail appears by itself. */
import { Text, VisuallyHidden } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import type { InboxPage as Page } from '../../../src/operations/inbox/schemas.ts';
import { get } from '../api/client';
import { usePolling } from '../api/live-state';
import { MailList } from '../inbox/mail-list';
import { MailReader } from '../inbox/mail-reader';
import '../inbox/inbox.css';
import { FirstMail } from '../parts/first-mail';
import { PageHead } from '../parts/page-head';
import { Empty, Failure, Loading } from '../parts/states';
import type { PageProps } from './index';

export function InboxPage({ parameters: { id }, session }: PageProps) {
  const refetchInterval = usePolling();
  const list = useInfiniteQuery({
    queryKey: ['inbox', 'list'],
    queryFn: ({ pageParam }) => get<Page>('/inbox', { limit: 50, before: pageParam }),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
    refetchInterval,
    enabled: session.transport === 'capture',
  });
  const mails = list.data?.pages.flatMap(({ messages }) => messages) ?? [];
  const newest = mails[0];
  const fresh = useArrived(newest?.id, list.isSuccess);

  // The first mail of all is what somebody waits for; nothing else is being read.
  const [, navigate] = useLocation();
  const empty = list.isSuccess && newest === undefined;
  const wasEmpty = useRef(false);
  useEffect(() => {
    if (wasEmpty.current && newest !== undefined && id === undefined)
      navigate(`/inbox/${newest.id}`, { replace: true });
    wasEmpty.current = empty;
  }, [empty, newest, id, navigate]);

  if (session.transport !== 'capture')
    return (
      <>
        <PageHead title="Inbox" />
        <Empty title="There is no inbox">
          Mail is sent by <code>{session.transport}:</code>. With <code>POSTRIDER_TRANSPORT=capture:</code> it is caught
          here instead, and nothing leaves.
        </Empty>
      </>
    );
  return (
    <>
      <PageHead title="Inbox" />
      <VisuallyHidden role="status" aria-live="polite">
        {fresh && newest !== undefined ? `New mail to ${newest.to}: ${newest.subject}` : ''}
      </VisuallyHidden>
      {list.isPending ? <Loading /> : null}
      {list.isError && newest === undefined ? <Failure error={list.error} retry={() => list.refetch()} /> : null}
      {empty && id === undefined ? (
        <>
          <Empty title="No mail yet">What the service sends is caught here; nothing leaves.</Empty>
          <FirstMail session={session} />
        </>
      ) : null}
      {newest === undefined && id === undefined ? null : (
        <div className="inbox" data-reading={id !== undefined}>
          <MailList
            mails={mails}
            shown={id}
            more={list.hasNextPage ? () => void list.fetchNextPage() : null}
            busy={list.isFetchingNextPage}
          />
          <section className="inbox-mail" aria-label="Mail">
            {id === undefined ? (
              <Text c="dimmed">Choose a mail to read it here.</Text>
            ) : (
              <MailReader key={id} id={id} />
            )}
          </section>
        </div>
      )}
    </>
  );
}

/** True once there is another newest mail than when the list was first seen. */
function useArrived(newest: string | undefined, known: boolean): boolean {
  const first = useRef<string | null | undefined>(undefined);
  if (known && first.current === undefined) first.current = newest ?? null;
  return known && newest !== undefined && newest !== first.current;
}
