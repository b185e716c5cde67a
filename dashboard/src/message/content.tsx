/**
 * The content as the client submitted it. HTML has three views: the rendered HTML in a sandboxed frame, the plain text
 * that the service derives from the HTML, and the source.
 */
import { Button, SegmentedControl, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { isHtml } from '../../../src/message/html-detection.ts';
import type { MessageDetails } from '../../../src/operations/message-details.ts';
import { path } from '../api/client';
import { Card } from '../parts/card';
import { HtmlFrame } from '../parts/html-frame';
import { ErrorAlert, Loading } from '../parts/page-states';

/** The number of characters shown initially. A body may have a million characters. */
const MAX_INITIAL_CHARS = 20_000;

const VIEWS = [
  { value: 'html', label: 'HTML' },
  { value: 'text', label: 'Text' },
  { value: 'source', label: 'Source' },
] as const;
type View = (typeof VIEWS)[number]['value'];

export function MessageContent({ message, inInbox }: { readonly message: MessageDetails; readonly inInbox: boolean }) {
  const [view, setView] = useState<View>('html');
  const { id, subject, message: text } = message;
  const hasHtml = text !== null && isHtml(text);
  return (
    <Card
      title="Content"
      {...(inInbox ? { link: { href: `/inbox/${id}`, text: 'Show in the inbox' } } : {})}
      {...(hasHtml
        ? {
            aside: (
              <SegmentedControl
                size="xs"
                aria-label="View of the content"
                value={view}
                onChange={(value) => setView(VIEWS.find((candidate) => candidate.value === value)?.value ?? 'html')}
                data={[...VIEWS]}
              />
            ),
          }
        : {})}
    >
      {text === null ? <Text c="dimmed">The body was erased (POSTRIDER_KEEP_BODY).</Text> : null}
      {text !== null && !hasHtml ? <LongText text={text} /> : null}
      {text !== null && hasHtml ? <HtmlContent id={id} subject={subject} html={text} view={view} /> : null}
    </Card>
  );
}

interface HtmlContentProps {
  readonly id: string;
  readonly subject: string;
  readonly html: string;
  readonly view: View;
}

function HtmlContent({ id, subject, html, view }: HtmlContentProps) {
  switch (view) {
    case 'html':
      return (
        <>
          <HtmlFrame
            apiPath={path`/messages/${id}/html`}
            title={`HTML of the message “${subject}”`}
            className="content-frame"
          />
          <Text size="xs" c="dimmed" mt={6}>
            Remote content is not loaded, and links are disabled.
          </Text>
        </>
      );
    case 'text':
      return <DerivedText id={id} html={html} />;
    case 'source':
      return <LongText text={html} />;
  }
}

/** The plain text that the service derives from the HTML. The code of the conversion is loaded on demand. */
function DerivedText({ id, html }: { readonly id: string; readonly html: string }) {
  const text = useQuery({
    queryKey: ['derived-text', id],
    queryFn: async () => (await import('../../../src/message/html-text.ts')).convertHtmlToText(html),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (text.isPending) return <Loading />;
  if (text.isError) return <ErrorAlert error={text.error} retry={() => text.refetch()} />;
  return <LongText text={text.data} />;
}

function LongText({ text }: { readonly text: string }) {
  const [showAll, setShowAll] = useState(false);
  return (
    <>
      <pre className="source sunken">{showAll ? text : text.slice(0, MAX_INITIAL_CHARS)}</pre>
      {showAll || text.length <= MAX_INITIAL_CHARS ? null : (
        <Button mt="xs" variant="default" onClick={() => setShowAll(true)}>
          Show all
        </Button>
      )}
    </>
  );
}
