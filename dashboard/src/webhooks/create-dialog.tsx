/** Creates an endpoint. Its signing secret is then shown once. */
import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { DEFAULT_WEBHOOK_EVENT_TYPES, type WebhookEventType } from '../../../src/model/webhook.ts';
import type { WebhookSecret } from '../../../src/operations/webhooks/schemas.ts';
import { useAccounts } from '../accounts/queries';
import { post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';
import { EventSelect } from './event-select';
import { toEventsParameter } from './event-text';

interface CreateWebhookDialogProps {
  readonly onMade: (made: WebhookSecret) => void;
  readonly onClose: () => void;
}

export function CreateWebhookDialog({ onMade, onClose }: CreateWebhookDialogProps) {
  const accounts = useAccounts();
  const [url, setUrl] = useState('');
  const [name, setName] = useState('');
  const [account, setAccount] = useState<string | null>(null);
  const [events, setEvents] = useState<readonly WebhookEventType[]>(DEFAULT_WEBHOOK_EVENT_TYPES);
  const create = useApiMutation(
    () =>
      post<WebhookSecret>('/webhooks', {
        url: url.trim(),
        events: toEventsParameter(events),
        ...(account === null ? {} : { account }),
        ...(name.trim() === '' ? {} : { name: name.trim() }),
      }),
    ['webhooks'],
  );
  const findError = (field: string) => findFieldError(create.error, field);
  const hasFieldError = ['url', 'account', 'name', 'events'].some((field) => findError(field) !== null);
  return (
    <FormDialog
      opened
      title="Create an endpoint"
      action="Create endpoint"
      size="lg"
      busy={create.isPending}
      disabled={url.trim() === '' || events.length === 0}
      error={create.error}
      hasFieldError={hasFieldError}
      onSubmit={() => create.mutate(undefined, { onSuccess: onMade })}
      onClose={onClose}
    >
      <TextInput
        label="URL"
        description="It receives a signed POST request for each event."
        placeholder="https://app.example.com/webhooks"
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
        error={findError('url')}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <TextInput
        label="Name"
        description="A label, such as the name of the application"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={findError('name')}
        maxLength={64}
        autoComplete="off"
      />
      <Select
        label="Account"
        description="The endpoint receives the events of this account only. You cannot change it later."
        placeholder="Every account"
        data={(accounts.data ?? []).map((entry) => entry.name)}
        value={account}
        onChange={setAccount}
        error={findError('account') ?? accounts.error?.message}
        searchable
        clearable
        clearButtonProps={{ 'aria-label': 'Every account' }}
        limit={50}
        nothingFoundMessage="No account has this name"
      />
      <EventSelect selected={events} onChange={setEvents} error={findError('events')} />
    </FormDialog>
  );
}
