/** Waits for the newest message to be another than when it began to wait, and says so, with the ways to it. */
import { Anchor, Group, Loader, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef } from 'react';
import { Link } from 'wouter';
import type { MessagePage } from '../../../src/operations/messages/schemas.ts';
import { get } from '../api/client';
import { usePolling } from '../api/live-state';
import { StateBadge } from './state-badge';

export function FirstArrival({ captured }: { readonly captured: boolean }) {
  const before = useRef<string | null | undefined>(undefined);
  const refetchInterval = usePolling();
  const newest = useQuery({
    queryKey: ['messages', null, 'newest'],
    queryFn: async () => (await get<MessagePage>('/messages', { limit: 1 })).messages[0] ?? null,
    refetchInterval,
  });
  if (newest.isSuccess && before.current === undefined) before.current = newest.data?.id ?? null;
  const mail = newest.data !== null && newest.data?.id !== before.current ? newest.data : undefined;
  return (
    <Group gap="xs" role="status" aria-live="polite">
      {mail === undefined ? (
        <>
          <Loader size="xs" aria-hidden />
          <Text>Waiting for your first mail…</Text>
        </>
      ) : (
        <>
          <Text className="wrap">
            Your mail to <b>{mail.to}</b> is here:
          </Text>
          <StateBadge state={mail.state} />
          {captured && mail.state === 'delivered' ? (
            <Anchor component={Link} href={`/inbox/${mail.id}`}>
              See it in the inbox
            </Anchor>
          ) : null}
          <Anchor component={Link} href={`/messages/${mail.id}`}>
            See what happened to it
          </Anchor>
        </>
      )}
    </Group>
  );
}
