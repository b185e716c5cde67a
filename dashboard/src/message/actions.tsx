/**
 * Retry and cancel, if the state of the message allows them. If another operator was first, the page shows the error of the service
 * and the new state.
 */
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { MessageDetails } from '../../../src/operations/messages/schemas.ts';
import { path, post } from '../api/client';
import { ConfirmDialog } from '../parts/confirm-dialog';

type Action = 'retry' | 'cancel';

const DONE: Readonly<Record<Action, string>> = { retry: 'The message is due now', cancel: 'The message is cancelled' };

export function MessageActions({ message }: { readonly message: MessageDetails }) {
  const { id, to, state } = message;
  const queries = useQueryClient();
  const [confirming, setConfirming] = useState<Action | null>(null);
  const act = useMutation({
    mutationFn: (action: Action) => post(path`/messages/${id}/${action}`),
    onSuccess: (_answer, action) => {
      setConfirming(null);
      notifications.show({ message: DONE[action], closeButtonProps: { 'aria-label': 'Close' } });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['messages'] }),
  });
  const open = state === 'queued' || state === 'uncertain';
  const confirm = (action: Action) => {
    act.reset();
    setConfirming(action);
  };
  return (
    <>
      {open ? (
        <Group gap="xs">
          <Button
            variant="default"
            loading={act.isPending && confirming === null}
            // The recipient may get an uncertain message twice.
            onClick={() => (state === 'uncertain' ? confirm('retry') : act.mutate('retry'))}
          >
            Retry now
          </Button>
          <Button variant="default" onClick={() => confirm('cancel')}>
            Cancel…
          </Button>
        </Group>
      ) : null}
      {act.isError && confirming === null ? (
        <Text role="alert" c="var(--mantine-color-error)" w="100%" className="wrap">
          {act.error.message}
        </Text>
      ) : null}
      <ConfirmDialog
        opened={confirming === 'cancel'}
        title="Cancel this message?"
        action="Cancel message"
        dismissal="Go back"
        busy={act.isPending}
        disabled={act.isError}
        error={act.error}
        onConfirm={() => act.mutate('cancel')}
        onClose={() => setConfirming(null)}
      >
        {state === 'uncertain' ? (
          <>
            The message is not sent again. It is not known whether the next hop accepted it, so{' '}
            <span className="wrap">{to}</span> may have received it.
          </>
        ) : (
          <>
            The message will not be sent to <span className="wrap">{to}</span>.
          </>
        )}{' '}
        You cannot undo this.
      </ConfirmDialog>
      <ConfirmDialog
        opened={confirming === 'retry'}
        title="Send the message again?"
        action="Send again"
        busy={act.isPending}
        disabled={act.isError}
        error={act.error}
        onConfirm={() => act.mutate('retry')}
        onClose={() => setConfirming(null)}
      >
        It is not known whether the next hop accepted the message, so <span className="wrap">{to}</span> may receive it
        twice.
      </ConfirmDialog>
    </>
  );
}
