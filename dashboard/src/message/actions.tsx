/**
 * The actions retry, cancel and resend, which are shown if the state of the message allows them. If another operator
 * has already changed the message, the page shows the error of the service and the new state.
 */
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { MessageDetails } from '../../../src/operations/message-details.ts';
import { path, post } from '../api/client';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { FormDialog } from '../parts/form-dialog';
import { SourceButtons } from './source-buttons';

type Action = 'retry' | 'cancel' | 'resend';

const SUCCESS_TEXTS: Readonly<Record<Action, string>> = {
  retry: 'The message is due now',
  cancel: 'The message is cancelled',
  resend: 'The message was submitted again',
};

export function MessageActions({ message }: { readonly message: MessageDetails }) {
  const { id, to, state, ended, message: body } = message;
  const queryClient = useQueryClient();
  const [, navigate] = useLocation();
  const [dialogAction, setDialogAction] = useState<Action | null>(null);
  const changeMessage = useMutation({
    mutationFn: (action: Action) => post<{ readonly id: string }>(path`/messages/${id}/${action}`),
    onSuccess: (answer, action) => {
      setDialogAction(null);
      if (action === 'resend') navigate(`/messages/${answer.id}`);
      notifications.show({ message: SUCCESS_TEXTS[action], closeButtonProps: { 'aria-label': 'Close' } });
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['messages'] }),
  });
  const canChange = state === 'queued' || state === 'uncertain';
  const canResend = ended !== null && body !== null;
  const openDialog = (action: Action) => {
    changeMessage.reset();
    setDialogAction(action);
  };
  return (
    <>
      {canChange ? (
        <Group gap="xs">
          <Button
            variant="default"
            loading={changeMessage.isPending && dialogAction === null}
            // Asks for confirmation, because the recipient may receive an uncertain message twice.
            onClick={() => (state === 'uncertain' ? openDialog('retry') : changeMessage.mutate('retry'))}
          >
            Retry now
          </Button>
          <Button variant="default" onClick={() => openDialog('cancel')}>
            Cancel…
          </Button>
        </Group>
      ) : null}
      {body === null ? null : <SourceButtons message={message} />}
      {canResend ? (
        <Button variant="default" onClick={() => openDialog('resend')}>
          Resend…
        </Button>
      ) : null}
      {changeMessage.isError && dialogAction === null ? (
        <Text role="alert" c="var(--mantine-color-error)" w="100%" className="wrap">
          {changeMessage.error.message}
        </Text>
      ) : null}
      <ConfirmDialog
        opened={dialogAction === 'cancel'}
        title="Cancel this message?"
        action="Cancel message"
        dismissal="Go back"
        busy={changeMessage.isPending}
        disabled={changeMessage.isError}
        error={changeMessage.error}
        onConfirm={() => changeMessage.mutate('cancel')}
        onClose={() => setDialogAction(null)}
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
      <FormDialog
        opened={dialogAction === 'resend'}
        title="Resend this message?"
        action="Resend message"
        busy={changeMessage.isPending}
        disabled={changeMessage.isError}
        error={changeMessage.error}
        onSubmit={() => changeMessage.mutate('resend')}
        onClose={() => setDialogAction(null)}
      >
        <Text component="div">
          The same content is submitted to <span className="wrap">{to}</span> as a new message. It counts toward the
          volume of the account. The recipient may receive it twice.
        </Text>
      </FormDialog>
      <ConfirmDialog
        opened={dialogAction === 'retry'}
        title="Send the message again?"
        action="Send again"
        busy={changeMessage.isPending}
        disabled={changeMessage.isError}
        error={changeMessage.error}
        onConfirm={() => changeMessage.mutate('retry')}
        onClose={() => setDialogAction(null)}
      >
        It is not known whether the next hop accepted the message, so <span className="wrap">{to}</span> may receive it
        twice.
      </ConfirmDialog>
    </>
  );
}
