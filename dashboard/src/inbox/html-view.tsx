/** The HTML of a captured message in a sandboxed frame. The operator can set the frame to the width of a phone. */
import { Group, SegmentedControl, Text } from '@mantine/core';
import type { CapturedMessage } from '../../../src/operations/inbox.ts';
import { path } from '../api/client';
import { HtmlFrame } from '../parts/html-frame';
import { EmptyState } from '../parts/page-states';

const PHONE_WIDTH_PX = 375;

interface HtmlViewProps {
  readonly message: CapturedMessage;
  /** The width of the frame: `phone`, or null for the full width. */
  readonly width: string | null;
  readonly onWidth: (width: string | null) => void;
}

export function HtmlView({ message: { id, subject, html }, width, onWidth }: HtmlViewProps) {
  if (!html) return <EmptyState title="This message has no HTML">Its plain text is under “Text”.</EmptyState>;
  const isPhoneWidth = width === 'phone';
  return (
    <>
      <Group justify="space-between" mb="xs" wrap="nowrap" align="flex-start">
        <Text size="sm" c="dimmed">
          Remote content is not loaded, and links are disabled. The addresses of the links are under “Text”.
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
      <HtmlFrame
        apiPath={path`/inbox/${id}/html`}
        title={`HTML of the message “${subject}”`}
        className="inbox-frame"
        {...(isPhoneWidth ? { maxWidthPx: PHONE_WIDTH_PX } : {})}
      />
    </>
  );
}
