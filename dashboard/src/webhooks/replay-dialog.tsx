/**
 * Replays the deliveries since a chosen time: only the deliveries without a successful attempt, or all deliveries. The
 * confirmation states the number of deliveries.
 */
import { NativeSelect, Switch, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { WebhookEntry } from '../../../src/operations/webhooks.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';
import { formatCount } from '../parts/number';

interface ReplayResult {
  readonly id: string;
  readonly replayed: number;
  readonly since: string | null;
}

const HOUR_MS = 3_600_000;
const CUSTOM_TIME = 'time';
const PERIODS: readonly { readonly value: string; readonly label: string; readonly ms: number }[] = [
  { value: '1h', label: 'the last hour', ms: HOUR_MS },
  { value: '24h', label: 'the last 24 hours', ms: 24 * HOUR_MS },
  { value: '7d', label: 'the last 7 days', ms: 168 * HOUR_MS },
  { value: '30d', label: 'the last 30 days (all stored deliveries)', ms: 720 * HOUR_MS },
];

function toTimeBefore(ms: number): string {
  return new Date(Date.now() - ms).toISOString();
}

export function ReplayDialog({ webhook, onClose }: { readonly webhook: WebhookEntry; readonly onClose: () => void }) {
  const [period, setPeriod] = useState('24h');
  const [since, setSince] = useState(() => toTimeBefore(24 * HOUR_MS));
  const [all, setAll] = useState(false);
  const replayPath = path`/webhooks/${webhook.id}/replay`;
  // The count and the replay have the same parameters, so that the replay sends the number of deliveries that the
  // button shows.
  const parameters = { since, all };
  const countQuery = useQuery({
    queryKey: ['webhooks', webhook.id, 'replay', since, all],
    queryFn: () => post<ReplayResult>(replayPath, { ...parameters, dryRun: true }),
    enabled: since !== '',
    refetchOnWindowFocus: false,
  });
  const replay = useApiMutation(
    () => post<ReplayResult>(replayPath, parameters),
    ['webhooks'],
    ({ replayed }) => `${formatDeliveries(replayed)} ${replayed === 1 ? 'is' : 'are'} due now.`,
  );
  const replayableCount = countQuery.data?.replayed;
  const choosePeriod = (value: string) => {
    setPeriod(value);
    const chosenPeriod = PERIODS.find((option) => option.value === value);
    setSince(toTimeBefore(chosenPeriod?.ms ?? 24 * HOUR_MS));
  };
  const error = replay.error ?? countQuery.error;
  const sinceError = findFieldError(error, 'since');
  return (
    <FormDialog
      opened
      title={`Replay deliveries of ${webhook.id}`}
      action={replayableCount === undefined ? 'Replay' : `Replay ${formatDeliveries(replayableCount)}`}
      busy={replay.isPending}
      disabled={replayableCount === undefined || replayableCount === 0 || countQuery.isFetching}
      error={error}
      hasFieldError={sinceError !== null && period === CUSTOM_TIME}
      onSubmit={() => replay.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <NativeSelect
        label="Deliveries of"
        data={[
          ...PERIODS.map(({ value, label }) => ({ value, label })),
          { value: CUSTOM_TIME, label: 'the time since' },
        ]}
        value={period}
        onChange={(event) => choosePeriod(event.currentTarget.value)}
        data-autofocus
      />
      {period === CUSTOM_TIME ? (
        <TextInput
          type="datetime-local"
          label="Since (UTC)"
          value={since.slice(0, 16)}
          onChange={({ currentTarget: { value } }) => setSince(value === '' ? '' : `${value.slice(0, 16)}:00Z`)}
          error={sinceError}
        />
      ) : null}
      <Switch
        label="Also deliveries that succeeded"
        checked={all}
        onChange={(event) => setAll(event.currentTarget.checked)}
      />
      <Text role="status">
        {replayableCount === undefined
          ? 'Counting the deliveries…'
          : replayableCount === 0
            ? 'No delivery is selected.'
            : `${formatDeliveries(replayableCount)} ${replayableCount === 1 ? 'is' : 'are'} sent again with the same id and body. The receiver can recognize repeated ids.`}
      </Text>
    </FormDialog>
  );
}

function formatDeliveries(count: number): string {
  return formatCount(count, 'delivery', 'deliveries');
}
