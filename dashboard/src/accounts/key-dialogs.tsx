/** Makes, rotates and revokes a key. What makes one hands it on, to be shown once. */
import { NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { KeyEntry, MadeKey, RotatedKey } from '../../../src/operations/keys/schemas.ts';
import { useChange } from '../api/change';
import { path, post } from '../api/client';
import { Ask } from '../parts/ask';
import { FormDialog } from '../parts/form-dialog';
import { When } from '../parts/when';

interface MakingProps {
  readonly onMade: (made: MadeKey | RotatedKey) => void;
  readonly onClose: () => void;
}

export function CreateKeyDialog({ account, onMade, onClose }: MakingProps & { readonly account: string }) {
  const [name, setName] = useState('');
  const [expires, setExpires] = useState('');
  const create = useChange(
    () =>
      post<MadeKey>(path`/accounts/${account}/keys`, {
        name: name.trim(),
        ...(expires.trim() === '' ? {} : { expires: expires.trim() }),
      }),
    ['accounts'],
  );
  return (
    <FormDialog
      opened
      title={`Create a key of ${account}`}
      action="Create key"
      busy={create.isPending}
      disabled={name.trim() === ''}
      error={create.error}
      onSubmit={() => create.mutate(undefined, { onSuccess: onMade })}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="To tell keys apart, such as the program that uses it"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        maxLength={64}
        autoComplete="off"
        required
        data-autofocus
      />
      <TextInput
        label="Expires"
        description="A date (UTC) or a time from now such as 90d; never if left empty"
        value={expires}
        onChange={(event) => setExpires(event.currentTarget.value)}
        autoComplete="off"
      />
    </FormDialog>
  );
}

/** How long the old key goes on working. */
const GRACES = [
  { value: '0s', label: 'Not at all' },
  { value: '1h', label: '1 hour' },
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
  { value: '30d', label: '30 days' },
];

export function RotateKeyDialog({ rotated, onMade, onClose }: MakingProps & { readonly rotated: KeyEntry }) {
  const [grace, setGrace] = useState('24h');
  const rotate = useChange(() => post<RotatedKey>(path`/keys/${rotated.id}/rotate`, { grace }), ['accounts']);
  return (
    <FormDialog
      opened
      title={`Rotate ${rotated.name} (${rotated.prefix}…)`}
      action="Make the new key"
      busy={rotate.isPending}
      error={rotate.error}
      onSubmit={() => rotate.mutate(undefined, { onSuccess: onMade })}
      onClose={onClose}
    >
      <Text>
        A new key of the same name is made. The old one goes on working for a while, so that clients can be changed.
      </Text>
      <NativeSelect
        label="The old key works for"
        data={GRACES}
        value={grace}
        onChange={(event) => setGrace(event.currentTarget.value)}
        data-autofocus
      />
    </FormDialog>
  );
}

export function RevokeKeyDialog({ revoked, onClose }: { readonly revoked: KeyEntry; readonly onClose: () => void }) {
  const revoke = useChange(
    () => post(path`/keys/${revoked.id}/revoke`),
    ['accounts'],
    () => `Revoked ${revoked.name} (${revoked.prefix}…).`,
  );
  return (
    <Ask
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
          Within a second every request with it is refused with 401. A revoked key cannot be made to work again.
        </Text>
        <Text>
          {revoked.lastUsed === null ? (
            'It has never been used.'
          ) : (
            <>
              It was last used <When at={revoked.lastUsed} />.
            </>
          )}
        </Text>
      </Stack>
    </Ask>
  );
}
