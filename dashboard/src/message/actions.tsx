/**
 * Retry and cancel, where the state allows them. Whoever comes second hears the service's own line, and sees what the mail
 * request has become.
 */
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { MessageDetails } from '../../../src/operations/messages/schemas.ts';
import { path, post } from '../api/client';
import { Ask } from '../parts/ask';

type Action = 'retry' | 'cancel';

const DONE: Readonly<Record<Action, string>> = { retry: 'It is due now', cancel: 'It is cancelled' };

export function Actions({ message }: { readonly message: MessageDetails }) {
  const { id, to, state } = message;
  const queries = useQueryClient();
  const [asked, setAsked] = useState<Action | null>(null);
  const act = useMutation({
    mutationFn: (action: Action) => post(path`/messages/${id}/${action}`),
    onSuccess: (_answer, action) => {
      setAsked(null);
      notifications.show({ message: DONE[action], closeButtonProps: { 'aria-label': 'Close' } });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['messages'] }),
  });
  const open = state === 'queued' || state === 'uncertain';
  const ask = (action: Action) => {
    act.reset();
    setAsked(action);
  };
  return (
    <>
      {open ? (
        <Group gap="xs">
          <Button
            variant="default"
            loading={act.isPending && asked === null}
            // What nobody knows to have arrived may arrive twice.
            onClick={() => (state === 'uncertain' ? ask('retry') : act.mutate('retry'))}
          >
            Retry now
          </Button>
          <Button variant="default" onClick={() => ask('cancel')}>
            Cancel…
          </Button>
        </Group>
      ) : null}
      {act.isError && asked === null ? (
        <Text role="alert" c="var(--mantine-color-error)" w="100%" className="wrap">
          {act.error.message}
        </Text>
      ) : null}
      <Ask
        opened={asked === 'cancel'}
        title="Cancel this mail request?"
        action="Cancel the mail request"
        busy={act.isPending}
        disabled={act.isError}
        error={act.error}
        onConfirm={() => act.mutate('cancel')}
        onClose={() => setAsked(null)}
      >
        {state === 'uncertain' ? (
          <>
            It is not sent again. Whether the next hop has taken it is not known: <span className="wrap">{to}</span> may
            have it already.
          </>
        ) : (
          <>
            It will not be sent to <span className="wrap">{to}</span>.
          </>
        )}{' '}
        This cannot be undone.
      </Ask>
      <Ask
        opened={asked === 'retry'}
        title="Send it again?"
        action="Send it again"
        busy={act.isPending}
        disabled={act.isError}
        error={act.error}
        onConfirm={() => act.mutate('retry')}
        onClose={() => setAsked(null)}
      >
        Whether the next hop has taken it is not known: <span className="wrap">{to}</span> may get it twice.
      </Ask>
    </>
  );
}
