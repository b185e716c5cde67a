/** The keys of an account, with buttons to create, rotate and revoke keys. */
import { Button, Group, Stack, Title } from '@mantine/core';
import { useState } from 'react';
import type { CreatedKey, KeyEntry, RotatedKey } from '../../../src/operations/keys.ts';
import { path } from '../api/client';
import { CredentialList } from '../credentials/credential-list';
import { RevokeDialog } from '../credentials/revoke-dialog';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { CreateKeyDialog, RotateKeyDialog } from './key-dialogs';
import { NewKeyDialog } from './new-key-dialog';
import { useKeys } from './queries';

type OpenDialog =
  | { readonly kind: 'create' }
  | { readonly kind: 'rotate'; readonly key: KeyEntry }
  | { readonly kind: 'revoke'; readonly key: KeyEntry }
  | { readonly kind: 'created'; readonly newKey: CreatedKey | RotatedKey };

export function Keys({ account }: { readonly account: string }) {
  const keys = useKeys(account);
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const closeDialog = () => setDialog(null);
  const showNewKey = (key: CreatedKey | RotatedKey) => setDialog({ kind: 'created', newKey: key });
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2} size="h4">
          Keys
        </Title>
        <Button onClick={() => setDialog({ kind: 'create' })}>Create key</Button>
      </Group>
      {keys.isPending ? <Loading /> : null}
      {keys.isError ? <ErrorAlert error={keys.error} retry={keys.refetch} /> : null}
      {keys.data === undefined ? null : (
        <div>
          <CredentialList
            noun="keys"
            credentials={keys.data}
            emptyState={<EmptyState title="No active keys">Create a key to send with this account.</EmptyState>}
            renderActions={(key) => <KeyActions keyEntry={key} onAction={setDialog} />}
          />
        </div>
      )}
      {dialog?.kind === 'create' ? (
        <CreateKeyDialog account={account} onCreated={showNewKey} onClose={closeDialog} />
      ) : null}
      {dialog?.kind === 'rotate' ? (
        <RotateKeyDialog oldKey={dialog.key} onCreated={showNewKey} onClose={closeDialog} />
      ) : null}
      {dialog?.kind === 'revoke' ? (
        <RevokeDialog
          noun="key"
          credential={dialog.key}
          apiPath={path`/keys/${dialog.key.id}/revoke`}
          topic="accounts"
          consequence="Within one second every request with this key is refused with 401."
          onClose={closeDialog}
        />
      ) : null}
      {dialog?.kind === 'created' ? <NewKeyDialog newKey={dialog.newKey} onStored={closeDialog} /> : null}
    </Stack>
  );
}

interface KeyActionsProps {
  readonly keyEntry: KeyEntry;
  readonly onAction: (dialog: OpenDialog) => void;
}

function KeyActions({ keyEntry: key, onAction }: KeyActionsProps) {
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap">
      <Button
        size="compact-sm"
        variant="default"
        aria-label={`Rotate ${key.name} ${key.prefix}`}
        onClick={() => onAction({ kind: 'rotate', key })}
      >
        Rotate
      </Button>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={`Revoke ${key.name} ${key.prefix}`}
        onClick={() => onAction({ kind: 'revoke', key })}
      >
        Revoke
      </Button>
    </Group>
  );
}
