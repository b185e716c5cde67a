/** The keys of an account, with the actions on them. */
import { Button, Group, Stack, Switch, Table, Text, Title } from '@mantine/core';
import { useState } from 'react';
import type { CreatedKey, KeyEntry, RotatedKey } from '../../../src/operations/keys/schemas.ts';
import { useUrlState } from '../api/url-state';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { StatusBadge } from '../parts/status-badge';
import { CreateKeyDialog, RevokeKeyDialog, RotateKeyDialog } from './key-dialogs';
import { NewKeyDialog } from './new-key-dialog';
import { useKeys } from './queries';

type OpenDialog =
  | { readonly kind: 'create' }
  | { readonly kind: 'rotate'; readonly key: KeyEntry }
  | { readonly kind: 'revoke'; readonly key: KeyEntry }
  | { readonly kind: 'made'; readonly showNewKey: CreatedKey | RotatedKey };

export function Keys({ account }: { readonly account: string }) {
  const keys = useKeys(account);
  const [urlState, setUrlState] = useUrlState();
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const showAll = urlState.get('keys') === 'all';
  const allKeys = keys.data ?? [];
  const active = allKeys.filter(({ state }) => state === 'active');
  const shownKeys = showAll ? allKeys : active;
  const closeDialog = () => setDialog(null);
  const showNewKey = (key: CreatedKey | RotatedKey) => setDialog({ kind: 'made', showNewKey: key });
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2} size="h4">
          Keys
        </Title>
        <Button onClick={() => setDialog({ kind: 'create' })}>Create key</Button>
      </Group>
      {allKeys.length > active.length ? (
        <Switch
          label={`Also show expired and revoked keys (${allKeys.length - active.length})`}
          checked={showAll}
          onChange={(event) => setUrlState({ keys: event.currentTarget.checked ? 'all' : null }, true)}
        />
      ) : null}
      {keys.isPending ? <Loading /> : null}
      {keys.isError ? <ErrorAlert error={keys.error} retry={keys.refetch} /> : null}
      {keys.isSuccess && shownKeys.length === 0 ? (
        <EmptyState title="No active keys">Create a key to send with this account.</EmptyState>
      ) : null}
      {shownKeys.length === 0 ? null : <KeyTable keys={shownKeys} onAction={setDialog} />}
      {dialog?.kind === 'create' ? (
        <CreateKeyDialog account={account} onMade={showNewKey} onClose={closeDialog} />
      ) : null}
      {dialog?.kind === 'rotate' ? (
        <RotateKeyDialog rotated={dialog.key} onMade={showNewKey} onClose={closeDialog} />
      ) : null}
      {dialog?.kind === 'revoke' ? <RevokeKeyDialog revoked={dialog.key} onClose={closeDialog} /> : null}
      {dialog?.kind === 'made' ? <NewKeyDialog made={dialog.showNewKey} onStored={closeDialog} /> : null}
    </Stack>
  );
}

function KeyTable({
  keys,
  onAction,
}: {
  readonly keys: readonly KeyEntry[];
  readonly onAction: (dialog: OpenDialog) => void;
}) {
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Key</Table.Th>
          <Table.Th scope="col" visibleFrom="xs">
            State
          </Table.Th>
          <Table.Th scope="col" visibleFrom="sm">
            Last used
          </Table.Th>
          <Table.Th scope="col" visibleFrom="md">
            Created
          </Table.Th>
          <Table.Th scope="col" visibleFrom="md">
            Expires
          </Table.Th>
          <Table.Th scope="col">
            <span className="unseen">Actions</span>
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {keys.map((key) => (
          <Table.Tr key={key.id}>
            <Table.Td>
              <Text inherit className="wrap">
                {key.name}
              </Text>
              <Text size="sm" c="dimmed" ff="monospace" style={{ whiteSpace: 'nowrap' }}>
                {key.prefix}…
              </Text>
              {key.state === 'active' ? null : (
                <Text component="div" hiddenFrom="xs">
                  <StatusBadge tone="neutral">{key.state}</StatusBadge>
                </Text>
              )}
              <Text size="sm" c="dimmed" hiddenFrom="sm">
                {key.lastUsed === null ? (
                  'never used'
                ) : (
                  <>
                    used <RelativeTime at={key.lastUsed} />
                  </>
                )}
              </Text>
            </Table.Td>
            <Table.Td visibleFrom="xs">
              <StatusBadge tone={key.state === 'active' ? 'success' : 'neutral'}>{key.state}</StatusBadge>
            </Table.Td>
            <Table.Td visibleFrom="sm">{key.lastUsed === null ? 'never' : <RelativeTime at={key.lastUsed} />}</Table.Td>
            <Table.Td visibleFrom="md">
              <RelativeTime at={key.created} />
            </Table.Td>
            <Table.Td visibleFrom="md">{key.expires === null ? 'never' : <RelativeTime at={key.expires} />}</Table.Td>
            <Table.Td>
              {key.state === 'active' ? (
                <Group gap="xs" justify="flex-end">
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
              ) : null}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
