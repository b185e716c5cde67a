/** An account's keys: which there are, how they are used, and what can be done to them. */
import { Button, Group, Stack, Switch, Table, Text, Title } from '@mantine/core';
import { useState } from 'react';
import type { KeyEntry, MadeKey, RotatedKey } from '../../../src/operations/keys/schemas.ts';
import { useAddress } from '../api/address';
import { Mark } from '../parts/mark';
import { Empty, Failure, Loading } from '../parts/states';
import { When } from '../parts/when';
import { CreateKeyDialog, RevokeKeyDialog, RotateKeyDialog } from './key-dialogs';
import { NewKeyDialog } from './new-key-dialog';
import { useKeys } from './queries';

type Doing =
  | { readonly kind: 'create' }
  | { readonly kind: 'rotate'; readonly of: KeyEntry }
  | { readonly kind: 'revoke'; readonly of: KeyEntry }
  | { readonly kind: 'made'; readonly made: MadeKey | RotatedKey };

export function Keys({ account }: { readonly account: string }) {
  const keys = useKeys(account);
  const [address, setAddress] = useAddress();
  const [doing, setDoing] = useState<Doing | null>(null);
  const all = address.get('keys') === 'all';
  const found = keys.data ?? [];
  const working = found.filter(({ state }) => state === 'active');
  const shown = all ? found : working;
  const stop = () => setDoing(null);
  const made = (key: MadeKey | RotatedKey) => setDoing({ kind: 'made', made: key });
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2} size="h4">
          Keys
        </Title>
        <Button onClick={() => setDoing({ kind: 'create' })}>Create key</Button>
      </Group>
      {found.length > working.length ? (
        <Switch
          label={`Show expired and revoked keys too (${found.length - working.length})`}
          checked={all}
          onChange={(event) => setAddress({ keys: event.currentTarget.checked ? 'all' : null }, true)}
        />
      ) : null}
      {keys.isPending ? <Loading /> : null}
      {keys.isError ? <Failure error={keys.error} retry={keys.refetch} /> : null}
      {keys.isSuccess && shown.length === 0 ? (
        <Empty title="No key works">Without a key no program can send for this account.</Empty>
      ) : null}
      {shown.length === 0 ? null : <KeyTable keys={shown} onDo={setDoing} />}
      {doing?.kind === 'create' ? <CreateKeyDialog account={account} onMade={made} onClose={stop} /> : null}
      {doing?.kind === 'rotate' ? <RotateKeyDialog rotated={doing.of} onMade={made} onClose={stop} /> : null}
      {doing?.kind === 'revoke' ? <RevokeKeyDialog revoked={doing.of} onClose={stop} /> : null}
      {doing?.kind === 'made' ? <NewKeyDialog made={doing.made} onStored={stop} /> : null}
    </Stack>
  );
}

function KeyTable({ keys, onDo }: { readonly keys: readonly KeyEntry[]; readonly onDo: (doing: Doing) => void }) {
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
                  <Mark tone="quiet">{key.state}</Mark>
                </Text>
              )}
              <Text size="sm" c="dimmed" hiddenFrom="sm">
                {key.lastUsed === null ? (
                  'never used'
                ) : (
                  <>
                    used <When at={key.lastUsed} />
                  </>
                )}
              </Text>
            </Table.Td>
            <Table.Td visibleFrom="xs">
              <Mark tone={key.state === 'active' ? 'good' : 'quiet'}>{key.state}</Mark>
            </Table.Td>
            <Table.Td visibleFrom="sm">{key.lastUsed === null ? 'never' : <When at={key.lastUsed} />}</Table.Td>
            <Table.Td visibleFrom="md">
              <When at={key.created} />
            </Table.Td>
            <Table.Td visibleFrom="md">{key.expires === null ? 'never' : <When at={key.expires} />}</Table.Td>
            <Table.Td>
              {key.state === 'active' ? (
                <Group gap="xs" justify="flex-end">
                  <Button
                    size="compact-sm"
                    variant="default"
                    aria-label={`Rotate ${key.name} ${key.prefix}`}
                    onClick={() => onDo({ kind: 'rotate', of: key })}
                  >
                    Rotate
                  </Button>
                  <Button
                    size="compact-sm"
                    variant="default"
                    aria-label={`Revoke ${key.name} ${key.prefix}`}
                    onClick={() => onDo({ kind: 'revoke', of: key })}
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
