/**
 * Retries, cancels or resends every message that matches the filters. The dialog first counts the messages. The run
 * proceeds in batches and shows its progress. When the operator stops the run or closes the dialog, the run ends after
 * the current batch. Completed batches are not undone.
 */
import { Button, Group, Modal, Progress, Radio, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { get, post } from '../api/client';
import { formatNumber } from '../parts/number';
import { ErrorAlert } from '../parts/page-states';
import type { Filters } from './filters';

const ACTIONS = [
  { value: 'retry', label: 'Retry', description: 'Queued and uncertain messages become due immediately.' },
  {
    value: 'cancel',
    label: 'Cancel',
    description: 'Queued and uncertain messages are cancelled. You cannot undo this.',
  },
  {
    value: 'resend',
    label: 'Resend',
    description:
      'Ended messages are submitted again as new messages, except messages that were already resent. The new messages count toward the volume.',
  },
] as const;
type Action = (typeof ACTIONS)[number]['value'];

interface Count {
  readonly count: number;
  readonly isComplete: boolean;
}

interface Batch {
  readonly done: number;
  readonly refused: number;
  readonly reasons: readonly string[];
  readonly next: string | null;
}

interface Run {
  readonly phase: 'running' | 'stopped' | 'complete' | 'failed';
  readonly done: number;
  readonly refused: number;
  readonly reasons: readonly string[];
  readonly error: unknown;
}

const NEW_RUN: Run = { phase: 'running', done: 0, refused: 0, reasons: [], error: null };

export function ChangeAllButton({ filters }: { readonly filters: Filters }) {
  const [opened, { open, close }] = useDisclosure();
  if (Object.keys(filters).length === 0) return null;
  return (
    <>
      <Button variant="default" onClick={open}>
        Change all…
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        title="Change all messages that match the filter"
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <ChangeAll filters={filters} onClose={close} />
      </Modal>
    </>
  );
}

function ChangeAll({ filters, onClose }: { readonly filters: Filters; readonly onClose: () => void }) {
  const queryClient = useQueryClient();
  const [action, setAction] = useState<Action>('retry');
  const [run, setRun] = useState<Run | null>(null);
  const isStopped = useRef(false);
  const count = useQuery({
    queryKey: ['message-count', filters],
    queryFn: () => get<Count>('/messages/count', filters),
    gcTime: 0,
  });
  // Closing the dialog stops the run.
  useEffect(
    () => () => {
      isStopped.current = true;
    },
    [],
  );

  async function startRun(): Promise<void> {
    isStopped.current = false;
    let state = NEW_RUN;
    setRun(state);
    try {
      for (let cursor: string | null = ''; cursor !== null && !isStopped.current; ) {
        const body: object = { action, ...filters, ...(cursor === '' ? {} : { cursor }) };
        const batch: Batch = await post<Batch>('/messages/change', body);
        state = {
          ...state,
          done: state.done + batch.done,
          refused: state.refused + batch.refused,
          reasons: [...new Set([...state.reasons, ...batch.reasons])],
        };
        setRun(state);
        cursor = batch.next;
        if (cursor === null) state = { ...state, phase: 'complete' };
      }
      setRun(state.phase === 'complete' ? state : { ...state, phase: 'stopped' });
    } catch (error) {
      setRun({ ...state, phase: 'failed', error });
    }
    void queryClient.invalidateQueries({ queryKey: ['messages'] });
  }

  if (run !== null) {
    return (
      <RunResult
        run={run}
        total={count.data?.count ?? 0}
        onStop={() => {
          isStopped.current = true;
        }}
        onClose={onClose}
      />
    );
  }
  const countText = count.data === undefined ? null : formatMatchCount(count.data);
  const actionLabel = ACTIONS.find(({ value }) => value === action)?.label ?? '';
  return (
    <Stack gap="md">
      <Text role="status">
        {countText === null ? (count.isError ? '' : 'Counting the messages…') : `The filter matches ${countText}.`}
      </Text>
      {count.isError ? <ErrorAlert error={count.error} /> : null}
      <Radio.Group label="Action" value={action} onChange={(value) => setAction(value as Action)}>
        <Stack gap="xs" mt="xs">
          {ACTIONS.map(({ value, label, description }) => (
            <Radio key={value} value={value} label={label} description={description} />
          ))}
        </Stack>
      </Radio.Group>
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Go back
        </Button>
        <Button disabled={countText === null || count.data?.count === 0} onClick={() => void startRun()}>
          {countText === null ? actionLabel : `${actionLabel} ${countText}`}
        </Button>
      </Group>
    </Stack>
  );
}

function formatMatchCount({ count, isComplete }: Count): string {
  return `${isComplete ? '' : 'at least '}${formatNumber(count)} ${count === 1 ? 'message' : 'messages'}`;
}

interface RunResultProps {
  readonly run: Run;
  readonly total: number;
  readonly onStop: () => void;
  readonly onClose: () => void;
}

const PHASE_TEXTS: Readonly<Record<Run['phase'], string>> = {
  running: 'Running',
  stopped: 'Stopped; completed changes are not undone',
  complete: 'Complete',
  failed: 'Failed; completed changes are not undone',
};

function RunResult({ run: { phase, done, refused, reasons, error }, total, onStop, onClose }: RunResultProps) {
  const lostCount = phase === 'complete' ? Math.max(0, total - done - refused) : 0;
  const reasonText =
    reasons.length === 0 ? '' : ` (${reasons.map((reason) => reason.replaceAll('-', ' ')).join(', ')})`;
  return (
    <Stack gap="md">
      <Text role="status">
        {PHASE_TEXTS[phase]}: {formatNumber(done)} done
        {refused === 0 ? '' : `, ${formatNumber(refused)} refused${reasonText}`}
        {lostCount === 0 ? '' : `, ${formatNumber(lostCount)} no longer matched`}.
      </Text>
      <Progress
        value={phase === 'complete' ? 100 : Math.min(100, (100 * (done + refused)) / Math.max(1, total))}
        aria-label="Progress"
      />
      {error === null ? null : <ErrorAlert error={error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={phase === 'running' ? onStop : onClose}>
          {phase === 'running' ? 'Stop' : 'Close'}
        </Button>
      </Group>
    </Stack>
  );
}
