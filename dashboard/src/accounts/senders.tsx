/** The names and the Reply-To of the senders of an account. */
import { Button, Group, Stack, Table, TextInput, Title } from '@mantine/core';
import { useState } from 'react';
import type { SenderEntry } from '../../../src/operations/senders.ts';
import { path, post, remove } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { FormDialog } from '../parts/form-dialog';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { useSenders } from './queries';

type SenderFields = Pick<SenderEntry, 'sender'> & { readonly name: string; readonly replyTo: string };

export function Senders({ account }: { readonly account: string }) {
  const senders = useSenders(account);
  const [edited, setEdited] = useState<SenderFields | null>(null);
  const removal = useApiMutation(
    (sender: string) => remove(path`/accounts/${account}/senders/${sender}`),
    ['accounts'],
    () => 'Removed the sender.',
  );
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2} size="h4">
          Senders
        </Title>
        <Button onClick={() => setEdited({ sender: '', name: '', replyTo: '' })}>Name a sender</Button>
      </Group>
      {senders.isPending ? <Loading /> : null}
      {senders.isError ? <ErrorAlert error={senders.error} retry={senders.refetch} /> : null}
      {removal.isError ? <ErrorAlert error={removal.error} /> : null}
      {senders.data?.length === 0 ? (
        <EmptyState title="No names">Messages leave with the bare address of the request.</EmptyState>
      ) : null}
      {senders.data === undefined || senders.data.length === 0 ? null : (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Sender</Table.Th>
              <Table.Th>Name</Table.Th>
              <Table.Th>Reply-To</Table.Th>
              <Table.Th />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {senders.data.map(({ sender, name, replyTo }) => (
              <Table.Tr key={sender}>
                <Table.Td className="wrap">{sender}</Table.Td>
                <Table.Td className="wrap">{name}</Table.Td>
                <Table.Td className="wrap">{replyTo}</Table.Td>
                <Table.Td>
                  <Group gap="xs" justify="flex-end" wrap="nowrap">
                    <Button
                      size="compact-sm"
                      variant="default"
                      aria-label={`Change ${sender}`}
                      onClick={() => setEdited({ sender, name: name ?? '', replyTo: replyTo ?? '' })}
                    >
                      Change
                    </Button>
                    <Button
                      size="compact-sm"
                      variant="default"
                      aria-label={`Remove ${sender}`}
                      onClick={() => removal.mutate(sender)}
                    >
                      Remove
                    </Button>
                  </Group>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {edited === null ? null : <SenderDialog account={account} initial={edited} onClose={() => setEdited(null)} />}
    </Stack>
  );
}

const FIELDS: readonly (readonly [name: keyof SenderFields, label: string, description: string])[] = [
  ['sender', 'Sender', 'An address, a domain such as @example.com, or its subdomains: @*.example.com'],
  ['name', 'Name', 'Such as Acme Billing'],
  ['replyTo', 'Reply-To', 'The address that receives replies'],
];

interface SenderDialogProps {
  readonly account: string;
  readonly initial: SenderFields;
  readonly onClose: () => void;
}

function SenderDialog({ account, initial, onClose }: SenderDialogProps) {
  const [fields, setFields] = useState(initial);
  const save = useApiMutation(
    () => post<SenderEntry>(path`/accounts/${account}/senders`, fields),
    ['accounts'],
    () => `Changed ${fields.sender}.`,
  );
  return (
    <FormDialog
      opened
      title={`Sender of ${account}`}
      action="Save"
      busy={save.isPending}
      disabled={fields.sender.trim() === ''}
      error={save.error}
      onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      {FIELDS.map(([name, label, description]) => (
        <TextInput
          key={name}
          label={label}
          description={description}
          value={fields[name]}
          readOnly={name === 'sender' && initial.sender !== ''}
          onChange={(event) => setFields({ ...fields, [name]: event.currentTarget.value })}
          autoComplete="off"
          spellCheck={false}
        />
      ))}
    </FormDialog>
  );
}
