/** Creates an endpoint. `onCreated` receives its signing secret, which is shown only once. */
import { Select } from '@mantine/core';
import { useState } from 'react';
import { DEFAULT_WEBHOOK_EVENT_TYPES } from '../../../src/model/webhook.ts';
import type { WebhookSecret } from '../../../src/operations/webhooks.ts';
import { useAccounts } from '../accounts/queries';
import { post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';
import { EndpointFields, type EndpointValues, hasEndpointFieldError, isComplete } from './endpoint-fields';
import { toEventsParameter } from './event-text';

interface CreateWebhookDialogProps {
  readonly onCreated: (webhookSecret: WebhookSecret) => void;
  readonly onClose: () => void;
}

export function CreateWebhookDialog({ onCreated, onClose }: CreateWebhookDialogProps) {
  const accounts = useAccounts();
  const [values, setValues] = useState<EndpointValues>({ url: '', name: '', events: DEFAULT_WEBHOOK_EVENT_TYPES });
  const [account, setAccount] = useState<string | null>(null);
  const name = values.name.trim();
  const create = useApiMutation(
    () =>
      post<WebhookSecret>('/webhooks', {
        url: values.url.trim(),
        events: toEventsParameter(values.events),
        ...(account === null ? {} : { account }),
        ...(name === '' ? {} : { name }),
      }),
    ['webhooks'],
  );
  return (
    <FormDialog
      opened
      title="Create an endpoint"
      action="Create endpoint"
      size="lg"
      busy={create.isPending}
      disabled={!isComplete(values)}
      error={create.error}
      hasFieldError={hasEndpointFieldError(create.error)}
      onSubmit={() => create.mutate(undefined, { onSuccess: onCreated })}
      onClose={onClose}
    >
      <EndpointFields values={values} error={create.error} onChange={setValues}>
        <Select
          label="Account"
          description="The endpoint receives the events of this account only. You cannot change it later."
          placeholder="Every account"
          data={(accounts.data ?? []).map((entry) => entry.name)}
          value={account}
          onChange={setAccount}
          error={findFieldError(create.error, 'account') ?? accounts.error?.message}
          searchable
          clearable
          clearButtonProps={{ 'aria-label': 'Every account' }}
          limit={50}
          nothingFoundMessage="No account has this name"
        />
      </EndpointFields>
    </FormDialog>
  );
}
