/** The actions on an endpoint: test, edit, enable or disable, rotate the secret, delete. */
import { Button, Group, NativeSelect, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { WebhookEntry, WebhookFigures, WebhookSecret } from '../../../src/operations/webhooks.ts';
import { path, post, remove } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { FormDialog } from '../parts/form-dialog';
import { formatCount } from '../parts/number';
import { ErrorAlert } from '../parts/page-states';
import { EditWebhookDialog } from './edit-dialog';
import { SigningSecretDialog } from './secret-dialog';
import { TestDialog } from './test-dialog';

type OpenDialog =
  | { readonly kind: 'test' | 'edit' | 'disable' | 'rotate' | 'delete' }
  | { readonly kind: 'created'; readonly webhookSecret: WebhookSecret; readonly previousSecretText: string };

interface EndpointActionsProps {
  readonly webhook: WebhookEntry;
  readonly figures: WebhookFigures | undefined;
}

export function EndpointActions({ webhook, figures }: EndpointActionsProps) {
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const closeDialog = () => setDialog(null);
  const isEnabled = webhook.status === 'enabled';
  const enableMutation = useApiMutation(
    () => post<WebhookEntry>(path`/webhooks/${webhook.id}/enable`),
    ['webhooks'],
    ({ id }) => `Enabled ${id}. Its pending deliveries are due now.`,
  );
  const disableMutation = useApiMutation(
    () => post<WebhookEntry>(path`/webhooks/${webhook.id}/disable`),
    ['webhooks'],
    ({ id }) => `Disabled ${id}. Its events are kept for 30 days.`,
  );
  return (
    <>
      <Group gap="xs">
        <Button
          disabled={!isEnabled}
          title={isEnabled ? undefined : 'Enable the endpoint first'}
          onClick={() => setDialog({ kind: 'test' })}
        >
          Send test
        </Button>
        {isEnabled ? (
          <Button variant="default" onClick={() => setDialog({ kind: 'disable' })}>
            Disable
          </Button>
        ) : (
          <Button variant="default" loading={enableMutation.isPending} onClick={() => enableMutation.mutate(undefined)}>
            Enable
          </Button>
        )}
        <Button variant="default" onClick={() => setDialog({ kind: 'edit' })}>
          Edit
        </Button>
        <Button variant="default" onClick={() => setDialog({ kind: 'rotate' })}>
          Rotate secret
        </Button>
        <Button variant="default" onClick={() => setDialog({ kind: 'delete' })}>
          Delete
        </Button>
      </Group>
      {enableMutation.error === null ? null : <ErrorAlert error={enableMutation.error} />}
      {dialog?.kind === 'test' ? <TestDialog webhook={webhook} onClose={closeDialog} /> : null}
      {dialog?.kind === 'edit' ? <EditWebhookDialog webhook={webhook} onClose={closeDialog} /> : null}
      {dialog?.kind === 'rotate' ? (
        <RotateDialog
          webhook={webhook}
          onCreated={(webhookSecret, previousSecretText) =>
            setDialog({ kind: 'created', webhookSecret, previousSecretText })
          }
          onClose={closeDialog}
        />
      ) : null}
      {dialog?.kind === 'created' ? (
        <SigningSecretDialog
          webhookSecret={dialog.webhookSecret}
          previousSecretText={dialog.previousSecretText}
          onStored={closeDialog}
        />
      ) : null}
      <ConfirmDialog
        opened={dialog?.kind === 'disable'}
        title={`Disable ${webhook.id}?`}
        action="Disable endpoint"
        busy={disableMutation.isPending}
        error={disableMutation.error}
        onConfirm={() => disableMutation.mutate(undefined, { onSuccess: closeDialog })}
        onClose={closeDialog}
      >
        No attempt begins while the endpoint is disabled. Its events are kept for 30 days and are sent when you enable
        it.
      </ConfirmDialog>
      <DeleteDialog webhook={webhook} figures={figures} opened={dialog?.kind === 'delete'} onClose={closeDialog} />
    </>
  );
}

/** The grace periods during which requests are also signed with the previous secret. */
const GRACE_PERIODS = [
  { value: '0s', label: 'Stops immediately', sentence: 'Requests are no longer signed with the previous secret.' },
  { value: '1h', label: '1 hour', sentence: 'For 1 hour, requests are also signed with the previous secret.' },
  { value: '24h', label: '24 hours', sentence: 'For 24 hours, requests are also signed with the previous secret.' },
  { value: '7d', label: '7 days', sentence: 'For 7 days, requests are also signed with the previous secret.' },
  { value: '30d', label: '30 days', sentence: 'For 30 days, requests are also signed with the previous secret.' },
];

interface RotateDialogProps {
  readonly webhook: WebhookEntry;
  readonly onCreated: (webhookSecret: WebhookSecret, previousSecretText: string) => void;
  readonly onClose: () => void;
}

function RotateDialog({ webhook, onCreated, onClose }: RotateDialogProps) {
  const [grace, setGrace] = useState('24h');
  const rotate = useApiMutation(
    () => post<WebhookSecret>(path`/webhooks/${webhook.id}/rotate`, { grace }),
    ['webhooks'],
  );
  const previousSecretText = GRACE_PERIODS.find(({ value }) => value === grace)?.sentence ?? '';
  return (
    <FormDialog
      opened
      title={`Rotate the signing secret of ${webhook.id}`}
      action="Create new secret"
      busy={rotate.isPending}
      error={rotate.error}
      onSubmit={() =>
        rotate.mutate(undefined, { onSuccess: (webhookSecret) => onCreated(webhookSecret, previousSecretText) })
      }
      onClose={onClose}
    >
      <Text>
        A new secret is created. During the period below, each request is signed with both secrets, so that the receiver
        accepts every request while you configure it.
      </Text>
      <NativeSelect
        label="Lifetime of the previous secret"
        data={GRACE_PERIODS.map(({ value, label }) => ({ value, label }))}
        value={grace}
        onChange={(event) => setGrace(event.currentTarget.value)}
        data-autofocus
      />
    </FormDialog>
  );
}

interface DeleteDialogProps extends EndpointActionsProps {
  readonly opened: boolean;
  readonly onClose: () => void;
}

function DeleteDialog({ webhook, figures, opened, onClose }: DeleteDialogProps) {
  const queryClient = useQueryClient();
  const [, navigate] = useLocation();
  const removal = useApiMutation(
    () => remove(path`/webhooks/${webhook.id}`),
    [],
    () => `Deleted ${webhook.id}.`,
  );
  const pendingCount = figures?.pending ?? 0;
  return (
    <ConfirmDialog
      opened={opened}
      title={`Delete ${webhook.id}?`}
      action="Delete endpoint"
      busy={removal.isPending}
      error={removal.error}
      onConfirm={() =>
        removal.mutate(undefined, {
          onSuccess: () => {
            navigate('/webhooks');
            // Only the list is reloaded, because the deleted endpoint must not be queried again.
            void queryClient.invalidateQueries({ queryKey: ['webhooks'], exact: true });
          },
        })
      }
      onClose={onClose}
    >
      <Text className="wrap">
        {webhook.url} receives no further request. Its secret and the list of its deliveries are removed.{' '}
        {pendingCount === 0
          ? ''
          : `${formatCount(pendingCount, 'pending delivery is', 'pending deliveries are')} not sent.`}
      </Text>
    </ConfirmDialog>
  );
}
