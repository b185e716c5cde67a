/** One captured message: HTML, text, header fields, source. */
import { Anchor, Group, Tabs, Text, Title } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { Link, useSearchParams } from 'wouter';
import type { CapturedMessage } from '../../../src/operations/inbox/schemas.ts';
import { get, path } from '../api/client';
import { DownloadLink } from '../parts/download';
import { ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { formatUtc } from '../parts/time';
import { HtmlView } from './html-view';
import { HeadersView, SourceView, TextView } from './text-views';

const VIEWS = ['html', 'text', 'headers', 'source'] as const;
type View = (typeof VIEWS)[number];
const TITLES: Readonly<Record<View, string>> = { html: 'HTML', text: 'Text', headers: 'Headers', source: 'Source' };

export function CapturedReader({ id }: { readonly id: string }) {
  // A captured message does not change, so it has no topic of live updates.
  const captured = useQuery({
    queryKey: ['captured', id],
    queryFn: () => get<CapturedMessage>(path`/inbox/${id}`),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <>
      <Anchor component={Link} href="/inbox" hiddenFrom="md" display="inline-block" mb="sm">
        Back to the inbox
      </Anchor>
      {captured.isPending ? <Loading /> : null}
      {captured.isError ? <ErrorAlert error={captured.error} retry={() => captured.refetch()} /> : null}
      {captured.data === undefined ? null : <CapturedContent message={captured.data} />}
    </>
  );
}

function CapturedContent({ message }: { readonly message: CapturedMessage }) {
  const { id, at, to, from, returnPath, subject, bytes } = message;
  const [parameters, setParameters] = useSearchParams();
  const requestedView = parameters.get('view');
  const view = VIEWS.find((candidate) => candidate === requestedView) ?? (message.html ? 'html' : 'text');
  // On a narrow screen the list and its focused link are hidden, so the title receives the focus.
  const isNarrow = useMediaQuery('(max-width: 61.99em)', false, { getInitialValueInEffect: false });
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isNarrow) title.current?.focus();
  }, [isNarrow]);
  const setParameter = (name: string, value: string | null) =>
    setParameters((before) => {
      if (value === null) before.delete(name);
      else before.set(name, value);
      return before;
    });
  return (
    <article>
      <Title order={2} size="h3" className="wrap" ref={title} tabIndex={-1} style={{ outline: 'none' }}>
        {subject === '' ? '(no subject)' : subject}
      </Title>
      <dl className="facts">
        <Fact name="from">{from === '' ? '(no sender)' : from}</Fact>
        <Fact name="to">{to}</Fact>
        {returnPath === from ? null : <Fact name="return path">{returnPath === '' ? '<>' : returnPath}</Fact>}
      </dl>
      <Group gap="md" mb="sm">
        <Text size="sm" c="dimmed">
          {formatUtc(at)}, <RelativeTime at={at} />, {formatSize(bytes)}
        </Text>
        <Anchor component={Link} href={`/messages/${id}`} size="sm">
          History
        </Anchor>
        <DownloadLink apiPath={path`/inbox/${id}/source`} name={`${id}.eml`} />
      </Group>
      <Tabs value={view} onChange={(value) => setParameter('view', value)} keepMounted={false}>
        <Tabs.List aria-label="View">
          {VIEWS.map((candidate) => (
            <Tabs.Tab key={candidate} value={candidate}>
              {TITLES[candidate]}
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

function Fact({ name, children }: { readonly name: string; readonly children: string }) {
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
