/** Changes the URL, the name and the events of an endpoint. */
import { useState } from 'react';
import type { WebhookEntry } from '../../../src/operations/webhooks.ts';
import { patch, path } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { FormDialog } from '../parts/form-dialog';
import { EndpointFields, type EndpointValues, hasEndpointFieldError, isComplete } from './endpoint-fields';
import { toEventsParameter } from './event-text';

export function EditWebhookDialog({
  webhook,
  onClose,
}: {
  readonly webhook: WebhookEntry;
  readonly onClose: () => void;
}) {
  const [values, setValues] = useState<EndpointValues>({
    url: webhook.url,
    name: webhook.name ?? '',
    events: webhook.events,
  });
  const [url, name, events] = [values.url.trim(), values.name.trim(), toEventsParameter(values.events)];
  // Only the changed members are sent, so that a change which another operator makes to the remaining members is kept.
  const changedMembers = {
    ...(url === webhook.url ? {} : { url }),
    ...(name === (webhook.name ?? '') ? {} : { name }),
    ...(events === toEventsParameter(webhook.events) ? {} : { events }),
  };
  const update = useApiMutation(
    () => patch<WebhookEntry>(path`/webhooks/${webhook.id}`, changedMembers),
    ['webhooks'],
    ({ id }) => `Changed ${id}. Attempts that begin from now on use the new values.`,
  );
  return (
    <FormDialog
      opened
      title={`Edit ${webhook.id}`}
      action="Save changes"
      size="lg"
      busy={update.isPending}
      disabled={!isComplete(values) || Object.keys(changedMembers).length === 0}
      error={update.error}
      hasFieldError={hasEndpointFieldError(update.error)}
      onSubmit={() => update.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <EndpointFields values={values} error={update.error} onChange={setValues} />
    </FormDialog>
  );
}
