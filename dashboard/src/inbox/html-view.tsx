/**
 * The HTML of a captured message in a sandboxed frame without any permission. The service sends it with a separate content security
 * policy. The operator can set the frame to the width of a phone.
 */
import { Group, SegmentedControl, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { CapturedMessage } from '../../../src/operations/inbox/schemas.ts';
import { path } from '../api/client';
import { createTicketedUrl } from '../api/session';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';

const PHONE_WIDTH_PX = 375;

interface HtmlViewProps {
  readonly message: CapturedMessage;
  /** The width of the frame: `phone`, or null for the full width. */
  readonly width: string | null;
  readonly onWidth: (width: string | null) => void;
}

export function HtmlView({ message: { id, subject, html }, width, onWidth }: HtmlViewProps) {
  if (!html) return <EmptyState title="This message has no HTML">Its text is under “Text”.</EmptyState>;
  return <HtmlFrame id={id} subject={subject} width={width} onWidth={onWidth} />;
}

type HtmlFrameProps = Pick<CapturedMessage, 'id' | 'subject'> & Omit<HtmlViewProps, 'message'>;

function HtmlFrame({ id, subject, width, onWidth }: HtmlFrameProps) {
  // A frame sends no session header, so each display of the frame needs a new ticket.
  const source = useQuery({
    queryKey: ['captured', id, 'frame'],
    queryFn: () => createTicketedUrl(path`/inbox/${id}/html`),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (source.isPending) return <Loading />;
  if (source.isError) return <ErrorAlert error={source.error} retry={() => source.refetch()} />;
  const isPhoneWidth = width === 'phone';
  return (
    <>
      <Group justify="space-between" mb="xs" wrap="nowrap" align="flex-start">
        <Text size="sm" c="dimmed">
          Remote content is not loaded, and links are disabled. Their addresses are under “Text”.
        </Text>
        <SegmentedControl
          visibleFrom="md"
          style={{ flex: 'none' }}
          size="xs"
          aria-label="Width of the preview"
          value={isPhoneWidth ? 'phone' : 'full'}
          onChange={(value) => onWidth(value === 'phone' ? value : null)}
          data={[
            { value: 'full', label: 'Full width' },
            { value: 'phone', label: 'Phone' },
          ]}
        />
      </Group>
      <iframe
        className="inbox-frame"
        sandbox=""
        referrerPolicy="no-referrer"
        title={`HTML of the message “${subject}”`}
        src={source.data}
        style={isPhoneWidth ? { maxWidth: PHONE_WIDTH_PX } : {}}
      />
    </>
  );
}
