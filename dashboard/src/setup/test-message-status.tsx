/** Shows the state of a test message, with links to the message. */
import { Anchor, Group, Loader, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef } from 'react';
import { Link } from 'wouter';
import type { FoundMessage, MessageDetails, MessagePage } from '../../../src/operations/message-details.ts';
import { get, path } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { isDeferred } from '../messages/message-state';
import { StateBadge } from '../parts/state-badge';

type StatusMessage = Pick<FoundMessage, 'id' | 'to' | 'state' | 'deferred'>;

interface StatusProps {
  readonly isCaptured: boolean;
}

/** Waits until a new message is accepted, and then shows its state. */
export function FirstMessageStatus({ isCaptured }: StatusProps) {
  const initialId = useRef<string | null | undefined>(undefined);
  const refetchInterval = usePollingInterval();
  const newestQuery = useQuery({
    queryKey: ['messages', null, 'newest'],
    queryFn: async () => (await get<MessagePage>('/messages', { limit: 1 })).messages[0] ?? null,
    refetchInterval,
  });
  if (newestQuery.isSuccess && initialId.current === undefined) initialId.current = newestQuery.data?.id ?? null;
  const message =
    newestQuery.data !== null && newestQuery.data?.id !== initialId.current ? newestQuery.data : undefined;
  return <Status message={message} isCaptured={isCaptured} />;
}

/** Shows the state of the message with the id `id`. */
export function SentMessageStatus({ id, isCaptured }: StatusProps & { readonly id: string }) {
  const refetchInterval = usePollingInterval();
  const messageQuery = useQuery({
    queryKey: ['messages', id, 'test'],
    queryFn: () => get<MessageDetails>(path`/messages/${id}`),
    refetchInterval,
  });
  const message = messageQuery.data;
  if (message === undefined) return <Status message={undefined} isCaptured={isCaptured} />;
  return <Status message={{ ...message, deferred: isDeferred(message) }} isCaptured={isCaptured} />;
}

function Status({ message, isCaptured }: StatusProps & { readonly message: StatusMessage | undefined }) {
  return (
    <Group gap="xs" role="status" aria-live="polite">
      {message === undefined ? (
        <>
          <Loader size="xs" aria-hidden />
          <Text inherit>Waiting for your message…</Text>
        </>
      ) : (
        <>
          <Text className="wrap">
            Your message to <b>{message.to}</b> has arrived:
          </Text>
          <StateBadge state={message.state} isDeferred={message.deferred} />
          {isCaptured && message.state === 'delivered' ? (
            <Anchor component={Link} href={`/inbox/${message.id}`}>
              Show in the inbox
            </Anchor>
          ) : null}
          <Anchor component={Link} href={`/messages/${message.id}`}>
            Show details
          </Anchor>
        </>
      )}
    </Group>
  );
}
