/**
 * A mail's HTML in a frame that may do nothing: no flag is given to its sandbox, and the service sends it under a policy of its
 * own. Its width can be that of a phone.
 */
import { Group, SegmentedControl, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { CapturedMessage } from '../../../src/operations/inbox/schemas.ts';
import { path } from '../api/client';
import { ticketedUrl } from '../api/session';
import { Empty, Failure, Loading } from '../parts/states';

const PHONE_PX = 375;

interface HtmlViewProps {
  readonly mail: CapturedMessage;
  /** `phone`, or anything else for all the room there is. */
  readonly width: string | null;
  readonly onWidth: (width: string | null) => void;
}

export function HtmlView({ mail: { id, subject, html }, width, onWidth }: HtmlViewProps) {
  if (!html) return <Empty title="This mail has no HTML">It is plain text, under “Text”.</Empty>;
  return <Framed id={id} subject={subject} width={width} onWidth={onWidth} />;
}

type FramedProps = Pick<CapturedMessage, 'id' | 'subject'> & Omit<HtmlViewProps, 'mail'>;

function Framed({ id, subject, width, onWidth }: FramedProps) {
  // A frame sends no header: a ticket stands for the session, anew each time the frame is shown.
  const source = useQuery({
    queryKey: ['captured', id, 'frame'],
    queryFn: () => ticketedUrl(path`/inbox/${id}/html`),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (source.isPending) return <Loading />;
  if (source.isError) return <Failure error={source.error} retry={() => source.refetch()} />;
  const phone = width === 'phone';
  return (
    <>
      <Group justify="space-between" mb="xs" wrap="nowrap" align="flex-start">
        <Text size="sm" c="dimmed">
          Nothing is loaded from elsewhere; links do nothing here, their addresses are under “Text”.
        </Text>
        <SegmentedControl
          visibleFrom="md"
          style={{ flex: 'none' }}
          size="xs"
          aria-label="Width of the preview"
          value={phone ? 'phone' : 'full'}
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
        title={`HTML of the mail “${subject}”`}
        src={source.data}
        style={phone ? { maxWidth: PHONE_PX } : {}}
      />
    </>
  );
}
