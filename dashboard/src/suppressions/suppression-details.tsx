/**
 * Explains why an address is suppressed: each list that contains it, with the reason, the time, and the message that
 * caused the entry.
 */
import { Anchor, Button, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { SuppressedAddress } from '../../../src/operations/suppressions.ts';
import { path } from '../api/client';
import { Callout } from '../parts/callout';
import { ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { formatTime } from '../parts/time';
import { formatListOwner, SERVICE_LIST } from './list-owner';
import { useSuppressionLookup } from './queries';
import { REASON_TEXTS, ReasonBadge } from './reason-badge';
import { RemoveSuppressionButton } from './remove-button';

export function SuppressionDetails({ address, onClose }: { readonly address: string; readonly onClose: () => void }) {
  const lookup = useSuppressionLookup(address);
  return (
    <Paper withBorder p="md" mb="md" component="section" aria-labelledby="suppression">
      <Group justify="space-between" align="flex-start" mb="sm" wrap="nowrap">
        <Title order={2} size="h4" id="suppression" className="wrap">
          {address} {lookup.data?.suppressed === false ? 'is not suppressed' : 'is suppressed'}
        </Title>
        <Button variant="default" size="compact-sm" onClick={onClose} style={{ flex: 'none' }}>
          Close
        </Button>
      </Group>
      {lookup.isPending ? <Loading /> : null}
      {lookup.isError ? <ErrorAlert error={lookup.error} retry={lookup.refetch} /> : null}
      {lookup.data === undefined ? null : <SuppressionEntries found={lookup.data} />}
    </Paper>
  );
}

function SuppressionEntries({ found: { address, lists } }: { readonly found: SuppressedAddress }) {
  if (lists.length === 0) return <Text>The address is on no suppression list. Every account can send to it.</Text>;
  const isOnServiceList = lists.some(({ list }) => list === SERVICE_LIST);
  return (
    <Stack>
      {lists.map(({ list, address: listed, reason, source, at, expires }) => (
        <Group key={`${list} ${listed}`} justify="space-between" align="flex-start" gap="sm">
          <Stack gap={4} style={{ flex: '1 1 16rem' }}>
            <Group gap="xs">
              <Text fw={600} className="wrap">
                Suppression list of {formatListOwner(list)}
                {listed === address ? null : ` (${listed})`}
              </Text>
              <ReasonBadge reason={reason} />
            </Group>
            <Text>
              {REASON_TEXTS[reason]} Since <RelativeTime at={at} /> ({formatTime(at)})
              {expires === null ? null : `, until ${formatTime(expires)}`}.
            </Text>
            {source === null ? (
              <Text c="dimmed">The entry names no message.</Text>
            ) : (
              <Text className="wrap">
                Caused by{' '}
                <Anchor component={Link} underline="always" href={path`/messages/${source}`}>
                  message {source}
                </Anchor>
              </Text>
            )}
          </Stack>
          <RemoveSuppressionButton list={list} address={listed} />
        </Group>
      ))}
      <Callout
        tone={isOnServiceList ? 'error' : 'neutral'}
        title={isOnServiceList ? 'No account can send to this address' : 'Other accounts can send to this address'}
      >
        {isOnServiceList
          ? 'The address is on the suppression list of the whole service. The removal from the list of an account does not change this.'
          : 'The address is not on the suppression list of the whole service (*).'}
      </Callout>
    </Stack>
  );
}
