/**
 * The inbox of the capture transport: a list and the selected message, and the rules that answer delivery attempts. New
 * messages appear without a reload.
 */
import { Button, Tabs, Text, VisuallyHidden } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { Link, useLocation } from 'wouter';
import type { InboxPage as Page } from '../../../src/operations/inbox.ts';
import { get } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { useUrlState } from '../api/url-state';
import { CapturedList } from '../inbox/captured-list';
import { CapturedReader } from '../inbox/captured-reader';
import { Rules, useInboxRules } from '../inbox/rules';
import { Callout } from '../parts/callout';
import { Card } from '../parts/card';
import { KeyHint } from '../parts/key-hint';
import { NewRowsButton } from '../parts/new-rows-button';
import { formatCount } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { useSteadyRows } from '../parts/steady-rows';
import { TextFilter } from '../parts/text-filter';
import { TestMessage } from '../setup/test-message';
import type { PageProps } from './index';
import '../inbox/inbox.css';

export function InboxPage({ parameters: { id }, session }: PageProps) {
  const [urlState, setUrlState] = useUrlState();
  const [, navigate] = useLocation();
  const isCapturing = session.transport === 'capture';
  const rules = useInboxRules(isCapturing);
  const activeRules = (rules.data ?? []).filter(({ status }) => status === 'active');
  if (!isCapturing)
    return (
      <>
        <PageHead title="Inbox" />
        <EmptyState title="No inbox">
          The transport is <code>{session.transport}:</code>. With <code>POSTRIDER_TRANSPORT=capture:</code> messages
          are captured here and not sent.
        </EmptyState>
      </>
    );
  const tab = id === undefined && urlState.get('tab') === 'rules' ? 'rules' : 'messages';
  return (
    <>
      <PageHead title="Inbox" secondary="captured here, not sent" />
      <Tabs
        value={tab}
        onChange={(next) =>
          id === undefined
            ? setUrlState({ tab: next === 'rules' ? next : null })
            : navigate(`/inbox${next === 'rules' ? '?tab=rules' : ''}`)
        }
        keepMounted={false}
      >
        <Tabs.List mb="md" aria-label="Inbox">
          <Tabs.Tab value="messages">Messages</Tabs.Tab>
          <Tabs.Tab value="rules" rightSection={<ActiveRuleCount value={activeRules.length} />}>
            Rules
          </Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="messages">
          {activeRules.length === 0 ? null : (
            <div className="inbox-callout">
              <Callout
                tone="info"
                title={`${formatCount(activeRules.length, 'active rule')} for the next delivery attempts`}
                action={
                  <Button component={Link} href="/inbox?tab=rules" variant="default" size="xs">
                    Show rules
                  </Button>
                }
              >
                {activeRules
                  .slice(0, 3)
                  .map(({ match, answer: { summary } }) => `${match}: ${summary}`)
                  .join(' · ')}
                {activeRules.length > 3 ? ' · …' : ''}
              </Callout>
            </div>
          )}
          <Messages id={id} session={session} />
        </Tabs.Panel>
        <Tabs.Panel value="rules">
          <Rules />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

function ActiveRuleCount({ value }: { readonly value: number }) {
  return value === 0 ? null : (
    <span className="inbox-count">
      {value}
      <VisuallyHidden> active</VisuallyHidden>
    </span>
  );
}

function Messages({ id, session }: { readonly id: string | undefined } & Pick<PageProps, 'session'>) {
  const refetchInterval = usePollingInterval();
  const [urlState, setUrlState] = useUrlState();
  const search = urlState.get('q') ?? '';
  const messagePages = useInfiniteQuery({
    queryKey: ['inbox', 'list', search],
    queryFn: ({ pageParam }) => get<Page>('/inbox', { limit: 50, before: pageParam, search }),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
    refetchInterval,
  });
  const latestMessages = messagePages.data?.pages.flatMap((page) => page.messages);
  const { rows: messages, newCount, showNew } = useSteadyRows(latestMessages, search);
  const newestMessage = latestMessages?.[0];
  const hasNewMessage = useHasNewMessage(newestMessage?.id, messagePages.isSuccess);

  // The first message that arrives in an empty inbox opens automatically, unless a message is already selected.
  const [, navigate] = useLocation();
  const isEmpty = messagePages.isSuccess && newestMessage === undefined && search === '';
  const wasEmpty = useRef(false);
  useEffect(() => {
    if (wasEmpty.current && newestMessage !== undefined && id === undefined)
      navigate(`/inbox/${newestMessage.id}`, { replace: true });
    wasEmpty.current = isEmpty;
  }, [isEmpty, newestMessage, id, navigate]);

  return (
    <>
      <VisuallyHidden role="status" aria-live="polite">
        {hasNewMessage && newestMessage !== undefined
          ? `New message to ${newestMessage.to}: ${newestMessage.subject}`
          : ''}
      </VisuallyHidden>
      {messagePages.isPending ? <Loading /> : null}
      {messagePages.isError && newestMessage === undefined ? (
        <ErrorAlert error={messagePages.error} retry={() => messagePages.refetch()} />
      ) : null}
      {isEmpty && id === undefined ? (
        <div className="stack">
          <EmptyState title="No messages">Messages are captured here and not sent.</EmptyState>
          <Card title="Send a test message">
            <TestMessage session={session} isFirst />
          </Card>
        </div>
      ) : null}
      {messagePages.data === undefined || (isEmpty && id === undefined) ? null : (
        <div className="inbox" data-reading={id !== undefined}>
          <div className="inbox-side">
            <div className="inbox-search">
              <TextFilter
                label="Search the inbox"
                placeholder="Recipient, sender or subject"
                value={search}
                onApply={(q) => setUrlState({ q }, true)}
                isMain
                isInline
              />
              <div className="key-hints" aria-hidden="true">
                <KeyHint>/</KeyHint> search <KeyHint>j</KeyHint> <KeyHint>k</KeyHint> move <KeyHint>Enter</KeyHint> open
              </div>
            </div>
            <NewRowsButton count={newCount} noun="message" onShow={showNew} />
            <CapturedList
              messages={messages}
              selectedId={id}
              loadMore={messagePages.hasNextPage ? () => void messagePages.fetchNextPage() : null}
              isLoadingMore={messagePages.isFetchingNextPage}
              isSearch={search !== ''}
            />
          </div>
          <section className="inbox-message" aria-label="Message">
            {id === undefined ? (
              <div className="card empty inbox-unselected">
                <Text c="dimmed">Select a message.</Text>
              </div>
            ) : (
              <CapturedReader key={id} id={id} />
            )}
          </section>
        </div>
      )}
    </>
  );
}

/** Returns true if the newest message differs from the newest message of the first response. */
function useHasNewMessage(newestId: string | undefined, isLoaded: boolean): boolean {
  const firstKnownId = useRef<string | null | undefined>(undefined);
  if (isLoaded && firstKnownId.current === undefined) firstKnownId.current = newestId ?? null;
  return isLoaded && newestId !== undefined && newestId !== firstKnownId.current;
}
