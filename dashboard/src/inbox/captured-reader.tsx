/** One captured message: HTML, text, findings of the checks, header fields, source. */
import { Anchor, Button, Group, Tabs, Title } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef } from 'react';
import { Link, useSearchParams } from 'wouter';
import type { CapturedMessage } from '../../../src/operations/inbox.ts';
import { get, path } from '../api/client';
import { DownloadLink } from '../parts/download';
import { ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { formatTime } from '../parts/time';
import { ChecksView } from './checks-view';
import { HtmlView } from './html-view';
import { HeadersView, SourceView, TextView } from './text-views';

const VIEWS = ['html', 'text', 'checks', 'headers', 'source'] as const;
type View = (typeof VIEWS)[number];
const VIEW_TITLES: Readonly<Record<View, string>> = {
  html: 'HTML',
  text: 'Text',
  checks: 'Checks',
  headers: 'Headers',
  source: 'Source',
};

export function CapturedReader({ id }: { readonly id: string }) {
  // A captured message does not change, so it has no topic of live updates.
  const messageQuery = useQuery({
    queryKey: ['captured', id],
    queryFn: () => get<CapturedMessage>(path`/inbox/${id}`),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <>
      <Anchor component={Link} href="/inbox" hiddenFrom="md" display="inline-block" mb="sm">
        Back to the inbox
      </Anchor>
      {messageQuery.isPending ? <Loading /> : null}
      {messageQuery.isError ? <ErrorAlert error={messageQuery.error} retry={() => messageQuery.refetch()} /> : null}
      {messageQuery.data === undefined ? null : <CapturedContent message={messageQuery.data} />}
    </>
  );
}

function CapturedContent({ message }: { readonly message: CapturedMessage }) {
  const { id, at, to, from, returnPath, subject, bytes, checks } = message;
  const [parameters, setParameters] = useSearchParams();
  const requestedView = parameters.get('view');
  const view = VIEWS.find((candidate) => candidate === requestedView) ?? (message.html ? 'html' : 'text');
  // On a narrow screen the list and its focused link are hidden, so the title receives the focus.
  const isNarrow = useMediaQuery('(max-width: 61.99em)', false, { getInitialValueInEffect: false });
  const titleRef = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isNarrow) titleRef.current?.focus();
  }, [isNarrow]);
  const setParameter = (name: string, value: string | null) =>
    setParameters((before) => {
      if (value === null) before.delete(name);
      else before.set(name, value);
      return before;
    });
  return (
    <article className="card">
      <div className="inbox-title">
        <Title order={2} className="wrap" ref={titleRef} tabIndex={-1}>
          {subject === '' ? '(no subject)' : subject}
        </Title>
        <Group gap="xs" wrap="nowrap">
          <DownloadLink apiPath={path`/inbox/${id}/source`} name={`${id}.eml`} />
          <Button component={Link} href={`/messages/${id}`} variant="default" size="xs">
            History
          </Button>
        </Group>
      </div>
      <dl className="inbox-facts">
        <Fact name="To">{to}</Fact>
        <Fact name="From">{from === '' ? '(no sender)' : from}</Fact>
        {returnPath === from ? null : <Fact name="Return path">{returnPath === '' ? '<>' : returnPath}</Fact>}
        <Fact name="Captured">
          {formatTime(at)}, <RelativeTime at={at} />, {formatSize(bytes)}
        </Fact>
      </dl>
      <Tabs value={view} onChange={(value) => setParameter('view', value)} keepMounted={false}>
        <Tabs.List aria-label="View">
          {VIEWS.map((candidate) => (
            <Tabs.Tab
              key={candidate}
              value={candidate}
              rightSection={candidate === 'checks' ? <CheckCount checks={checks} /> : null}
            >
              {VIEW_TITLES[candidate]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="html" pt="sm">
          <HtmlView
            message={message}
            width={parameters.get('width')}
            onWidth={(value) => setParameter('width', value)}
          />
        </Tabs.Panel>
        <Tabs.Panel value="text" pt="sm">
          <TextView text={message.text} />
        </Tabs.Panel>
        <Tabs.Panel value="checks" pt="sm">
          <ChecksView message={message} />
        </Tabs.Panel>
        <Tabs.Panel value="headers" pt="sm">
          <HeadersView headers={message.headers} />
        </Tabs.Panel>
        <Tabs.Panel value="source" pt="sm">
          <SourceView id={id} />
        </Tabs.Panel>
      </Tabs>
    </article>
  );
}

/** The number of findings. It is red if one of them is an error. */
function CheckCount({ checks }: Pick<CapturedMessage, 'checks'>) {
  const hasError = checks.some(({ level }) => level === 'error');
  return (
    <span className={`inbox-count ${hasError ? 'tone-error' : checks.length > 0 ? 'tone-warning' : 'tone-success'}`}>
      {checks.length}
    </span>
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

function formatSize(bytes: number): string {
  return bytes < 10_000
    ? `${bytes.toLocaleString('en')} bytes`
    : `${Math.round(bytes / 1_000).toLocaleString('en')} kB`;
}
