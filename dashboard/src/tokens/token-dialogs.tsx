/** Dialogs that create and revoke a token. `onMade` receives the new token, which is shown once. */
import { Switch, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { CreatedToken, RevokedToken, TokenEntry } from '../../../src/operations/tokens/schemas.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';
import { RelativeTime } from '../parts/relative-time';

interface CreateTokenDialogProps {
  readonly onMade: (made: CreatedToken) => void;
  readonly onClose: () => void;
}

export function CreateTokenDialog({ onMade, onClose }: CreateTokenDialogProps) {
  const [name, setName] = useState('');
  const [expires, setExpires] = useState('');
  const [readOnly, setReadOnly] = useState(false);
  const create = useApiMutation(
    () =>
      post<CreatedToken>('/tokens', {
        name: name.trim(),
        readOnly,
        ...(expires.trim() === '' ? {} : { expires: expires.trim() }),
      }),
    ['tokens'],
  );
  const [nameError, expiresError] = [findFieldError(create.error, 'name'), findFieldError(create.error, 'expires')];
  return (
    <FormDialog
      opened
      title="Create a token"
      action="Create token"
      busy={create.isPending}
      disabled={name.trim() === ''}
      error={create.error}
      hasFieldError={nameError !== null || expiresError !== null}
      onSubmit={() => create.mutate(undefined, { onSuccess: onMade })}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="The name is the actor in the audit log, such as the program that uses the token."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={nameError}
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
        error={expiresError}
        autoComplete="off"
      />
      <Switch
        label="Read only"
        description="The token can read everything and change nothing."
        checked={readOnly}
        onChange={(event) => setReadOnly(event.currentTarget.checked)}
      />
    </FormDialog>
  );
}

export function RevokeTokenDialog({ token, onClose }: { readonly token: TokenEntry; readonly onClose: () => void }) {
  const revoke = useApiMutation(
    () => post<RevokedToken>(path`/tokens/${token.id}/revoke`),
    ['tokens'],
    ({ name }) => `Revoked ${name}.`,
  );
  return (
    <ConfirmDialog
      opened
      title={`Revoke ${token.name} (${token.prefix}…)?`}
      action="Revoke token"
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Text>Every later request with this token is refused. You cannot restore a revoked token.</Text>
      <Text mt="sm">
        {token.lastUsed === null ? (
          'The token has never been used.'
        ) : (
          <>
            The token was last used <RelativeTime at={token.lastUsed} />.
          </>
        )}
      </Text>
    </ConfirmDialog>
  );
}
