/** Waits until a new message is accepted, then links to it. */
import { Anchor, Group, Loader, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef } from 'react';
import { Link } from 'wouter';
import type { MessagePage } from '../../../src/operations/messages/schemas.ts';
import { get } from '../api/client';
import { usePollingInterval } from '../api/live-connection';
import { StateBadge } from '../parts/state-badge';

export function TestMessageStatus({ captured }: { readonly captured: boolean }) {
  const initialId = useRef<string | null | undefined>(undefined);
  const refetchInterval = usePollingInterval();
  const newest = useQuery({
    queryKey: ['messages', null, 'newest'],
    queryFn: async () => (await get<MessagePage>('/messages', { limit: 1 })).messages[0] ?? null,
    refetchInterval,
  });
  if (newest.isSuccess && initialId.current === undefined) initialId.current = newest.data?.id ?? null;
  const message = newest.data !== null && newest.data?.id !== initialId.current ? newest.data : undefined;
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
          <StateBadge state={message.state} deferred={message.deferred} />
          {captured && message.state === 'delivered' ? (
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
