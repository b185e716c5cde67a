/** Changes the URL, the name and the events of an endpoint. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import type { WebhookEntry } from '../../../src/operations/webhooks/schemas.ts';
import { patch, path } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';
import { EventSelect } from './event-select';
import { toEventsParameter } from './event-text';

export function EditWebhookDialog({
  webhook,
  onClose,
}: {
  readonly webhook: WebhookEntry;
  readonly onClose: () => void;
}) {
  const [url, setUrl] = useState(webhook.url);
  const [name, setName] = useState(webhook.name ?? '');
  const [events, setEvents] = useState(webhook.events);
  const eventsParameter = toEventsParameter(events);
  // Only changed members are sent, so that the dialog does not undo the change of another operator to other members.
  const change = {
    ...(url.trim() === webhook.url ? {} : { url: url.trim() }),
    ...(name.trim() === (webhook.name ?? '') ? {} : { name: name.trim() }),
    ...(eventsParameter === toEventsParameter(webhook.events) ? {} : { events: eventsParameter }),
  };
  const update = useApiMutation(
    () => patch<WebhookEntry>(path`/webhooks/${webhook.id}`, change),
    ['webhooks'],
    ({ id }) => `Changed ${id}. Attempts from now on use the new values.`,
  );
  const findError = (field: string) => findFieldError(update.error, field);
  const hasFieldError = ['url', 'name', 'events'].some((field) => findError(field) !== null);
  return (
    <FormDialog
      opened
      title={`Edit ${webhook.id}`}
      action="Save changes"
      size="lg"
      busy={update.isPending}
      disabled={url.trim() === '' || events.length === 0 || Object.keys(change).length === 0}
      error={update.error}
      hasFieldError={hasFieldError}
      onSubmit={() => update.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <TextInput
        label="URL"
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
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={findError('name')}
        maxLength={64}
        autoComplete="off"
      />
      <EventSelect selected={events} onChange={(types) => setEvents([...types])} error={findError('events')} />
    </FormDialog>
  );
}
