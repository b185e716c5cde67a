/** Why one address is suppressed: every list that has it, since when, for what, and the message that caused it. */
import { Anchor, Button, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { SuppressedAddress } from '../../../src/operations/suppressions/schemas.ts';
import { path } from '../api/client';
import { Notice } from '../parts/notice';
import { Failure, Loading } from '../parts/states';
import { exact, When } from '../parts/when';
import { listName, SERVICE } from './list-name';
import { useSuppressed } from './queries';
import { REASONS, ReasonMark } from './reason-mark';
import { RemoveButton } from './remove';

export function Why({ address, onClose }: { readonly address: string; readonly onClose: () => void }) {
  const found = useSuppressed(address);
  return (
    <Paper withBorder p="md" mb="md" component="section" aria-labelledby="why">
      <Group justify="space-between" align="flex-start" mb="sm" wrap="nowrap">
        <Title order={2} size="h4" id="why" className="wrap">
          Why {address} {found.data?.suppressed === false ? 'is not suppressed' : 'is suppressed'}
        </Title>
        <Button variant="default" size="compact-sm" onClick={onClose} style={{ flex: 'none' }}>
          Close
        </Button>
      </Group>
      {found.isPending ? <Loading /> : null}
      {found.isError ? <Failure error={found.error} retry={found.refetch} /> : null}
      {found.data === undefined ? null : <Answer found={found.data} />}
    </Paper>
  );
}

function Answer({ found: { address, lists } }: { readonly found: SuppressedAddress }) {
  if (lists.length === 0) return <Text>It is on no list: every account may send to it.</Text>;
  const everywhere = lists.some(({ list }) => list === SERVICE);
  return (
    <Stack>
      {lists.map(({ list, reason, source, at }) => (
        <Group key={list} justify="space-between" align="flex-start" gap="sm">
          <Stack gap={4} style={{ flex: '1 1 16rem' }}>
            <Group gap="xs">
              <Text fw={600} className="wrap">
                List of {listName(list)}
              </Text>
              <ReasonMark reason={reason} />
            </Group>
            <Text>
              {REASONS[reason]} Since <When at={at} /> ({exact(at)}).
            </Text>
            {source === null ? (
              <Text c="dimmed">No message is named as the cause.</Text>
            ) : (
              <Text className="wrap">
                Caused by{' '}
                <Anchor component={Link} underline="always" href={path`/messages/${source}`}>
                  message {source}
                </Anchor>
              </Text>
            )}
          </Stack>
          <RemoveButton list={list} address={address} />
        </Group>
      ))}
      <Notice
        tone={everywhere ? 'bad' : 'quiet'}
        title={everywhere ? 'No account may send to it' : 'Other accounts may send to it'}
      >
        {everywhere
          ? 'It is on the list of the whole service. Taken off the list of one account alone, it still gets no mail.'
          : 'The list of the whole service (*) does not have it.'}
      </Notice>
    </Stack>
  );
}
