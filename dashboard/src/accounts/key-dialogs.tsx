/** Dialogs that create, rotate and revoke a key. `onMade` receives the new key, which is shown once. */
import { NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { CreatedKey, KeyEntry, RotatedKey } from '../../../src/operations/keys/schemas.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { FormDialog } from '../parts/form-dialog';
import { RelativeTime } from '../parts/relative-time';

interface NewKeyDialogProps {
  readonly onMade: (made: CreatedKey | RotatedKey) => void;
  readonly onClose: () => void;
}

export function CreateKeyDialog({ account, onMade, onClose }: NewKeyDialogProps & { readonly account: string }) {
  const [name, setName] = useState('');
  const [expires, setExpires] = useState('');
  const create = useApiMutation(
    () =>
      post<CreatedKey>(path`/accounts/${account}/keys`, {
        name: name.trim(),
        ...(expires.trim() === '' ? {} : { expires: expires.trim() }),
      }),
    ['accounts'],
  );
  return (
    <FormDialog
      opened
      title={`Create a key for ${account}`}
      action="Create key"
      busy={create.isPending}
      disabled={name.trim() === ''}
      error={create.error}
      onSubmit={() => create.mutate(undefined, { onSuccess: onMade })}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="Such as the name of the program that uses the key"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        maxLength={64}
        autoComplete="off"
        required
        data-autofocus
      />
      <TextInput
        label="Expires"
        description="A date (UTC), or a duration such as 90d. Empty: never."
        value={expires}
        onChange={(event) => setExpires(event.currentTarget.value)}
        autoComplete="off"
      />
    </FormDialog>
  );
}

/** The grace periods of the old key. */
const GRACE_PERIODS = [
  { value: '0s', label: 'Stops immediately' },
  { value: '1h', label: '1 hour' },
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
  { value: '30d', label: '30 days' },
];

export function RotateKeyDialog({ rotated, onMade, onClose }: NewKeyDialogProps & { readonly rotated: KeyEntry }) {
  const [grace, setGrace] = useState('24h');
  const rotate = useApiMutation(() => post<RotatedKey>(path`/keys/${rotated.id}/rotate`, { grace }), ['accounts']);
  return (
    <FormDialog
      opened
      title={`Rotate ${rotated.name} (${rotated.prefix}…)`}
      action="Create new key"
      busy={rotate.isPending}
      error={rotate.error}
      onSubmit={() => rotate.mutate(undefined, { onSuccess: onMade })}
      onClose={onClose}
    >
      <Text>
        A new key with the same name is created. The old key remains valid for the period below, so that you can
        configure the clients.
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

export function RevokeKeyDialog({ revoked, onClose }: { readonly revoked: KeyEntry; readonly onClose: () => void }) {
  const revoke = useApiMutation(
    () => post(path`/keys/${revoked.id}/revoke`),
    ['accounts'],
    () => `Revoked ${revoked.name} (${revoked.prefix}…).`,
  );
  return (
    <ConfirmDialog
      opened
      title={`Revoke ${revoked.name} (${revoked.prefix}…)?`}
      action="Revoke key"
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Stack>
        <Text>
          Within one second every request with this key is refused with 401. You cannot restore a revoked key.
        </Text>
        <Text>
          {revoked.lastUsed === null ? (
            'The key has never been used.'
          ) : (
            <>
              The key was last used <RelativeTime at={revoked.lastUsed} />.
            </>
          )}
        </Text>
      </Stack>
    </ConfirmDialog>
  );
}
