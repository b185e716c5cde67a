/** Dialogs that create and rotate a key. `onCreated` receives the new key, which can be shown only once. */
import { NativeSelect, Text } from '@mantine/core';
import { useState } from 'react';
import type { CreatedKey, KeyEntry, RotatedKey } from '../../../src/operations/keys.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import {
  CredentialFields,
  hasCredentialFieldError,
  NEW_CREDENTIAL,
  toCredentialInput,
} from '../credentials/credential-fields';
import { FormDialog } from '../parts/form-dialog';

interface NewKeyDialogProps {
  readonly onCreated: (newKey: CreatedKey | RotatedKey) => void;
  readonly onClose: () => void;
}

export function CreateKeyDialog({ account, onCreated, onClose }: NewKeyDialogProps & { readonly account: string }) {
  const [values, setValues] = useState(NEW_CREDENTIAL);
  const create = useApiMutation(
    () => post<CreatedKey>(path`/accounts/${account}/keys`, toCredentialInput(values)),
    ['accounts'],
  );
  return (
    <FormDialog
      opened
      title={`Create a key for ${account}`}
      action="Create key"
      busy={create.isPending}
      disabled={values.name.trim() === ''}
      error={create.error}
      hasFieldError={hasCredentialFieldError(create.error)}
      onSubmit={() => create.mutate(undefined, { onSuccess: onCreated })}
      onClose={onClose}
    >
      <CredentialFields
        values={values}
        description="Such as the name of the program that uses the key"
        error={create.error}
        onChange={setValues}
      />
    </FormDialog>
  );
}

/** The periods for which the old key can remain valid. */
const GRACE_PERIODS = [
  { value: '0s', label: 'Stops immediately' },
  { value: '1h', label: '1 hour' },
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
  { value: '30d', label: '30 days' },
];

export function RotateKeyDialog({ oldKey, onCreated, onClose }: NewKeyDialogProps & { readonly oldKey: KeyEntry }) {
  const [grace, setGrace] = useState('24h');
  const rotate = useApiMutation(() => post<RotatedKey>(path`/keys/${oldKey.id}/rotate`, { grace }), ['accounts']);
  return (
    <FormDialog
      opened
      title={`Rotate ${oldKey.name} (${oldKey.prefix}…)`}
      action="Create new key"
      busy={rotate.isPending}
      error={rotate.error}
      onSubmit={() => rotate.mutate(undefined, { onSuccess: onCreated })}
      onClose={onClose}
    >
      <Text>
        A new key with the name of the old key is created. The old key remains valid for the period below, so that you
        can configure the clients with the new key.
      </Text>
      <NativeSelect
        label="Lifetime of the old key"
        data={GRACE_PERIODS}
        value={grace}
        onChange={(event) => setGrace(event.currentTarget.value)}
        data-autofocus
      />
    </FormDialog>
  );
}
