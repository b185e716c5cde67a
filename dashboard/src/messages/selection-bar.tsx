/**
 * Retries, cancels or resends the selected messages, one after the other. The run ends after the current message if the
 * operator stops the run, opens another page or changes a filter. Completed actions are not undone. The service refuses
 * a message whose state no longer allows the action. The run counts these refusals.
 */
import { Button, Group, Paper, Progress, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { ApiError, path, post } from '../api/client';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { formatCount } from '../parts/number';

type Action = 'retry' | 'cancel' | 'resend';

const ACTIONS: Readonly<Record<Action, { readonly button: string; readonly text: string; readonly doneText: string }>> =
  {
    retry: {
      button: 'Retry',
      text: 'Queued messages become due immediately, and uncertain messages are sent again. Other messages are refused.',
      doneText: 'retried',
    },
    cancel: {
      button: 'Cancel',
      text: 'Queued and uncertain messages are cancelled. Other messages are refused. You cannot undo a cancellation.',
      doneText: 'cancelled',
    },
    resend: {
      button: 'Resend',
      text: 'Ended messages are submitted again as new messages and count toward the volume. Other messages are refused.',
      doneText: 'sent again',
    },
  };

interface Run {
  readonly action: Action;
  readonly total: number;
  readonly doneCount: number;
  readonly refusedCount: number;
  readonly error: string | null;
  readonly isRunning: boolean;
}

interface SelectionBarProps {
  readonly selectedIds: ReadonlySet<string>;
  readonly onClear: () => void;
}

export function SelectionBar({ selectedIds, onClear }: SelectionBarProps) {
  const queryClient = useQueryClient();
  const [requestedAction, setRequestedAction] = useState<Action | null>(null);
  const [run, setRun] = useState<Run | null>(null);
  const isStopped = useRef(false);
  // A run whose progress and stop button are no longer shown must not continue.
  useEffect(
    () => () => {
      isStopped.current = true;
    },
    [],
  );

  async function startAction(action: Action): Promise<void> {
    const ids = [...selectedIds];
    setRequestedAction(null);
    isStopped.current = false;
    let state: Run = { action, total: ids.length, doneCount: 0, refusedCount: 0, error: null, isRunning: true };
    setRun(state);
    for (const id of ids) {
      if (isStopped.current) break;
      try {
        await post(path`/messages/${id}/${action}`);
        state = { ...state, doneCount: state.doneCount + 1 };
      } catch (error) {
        const errorText = error instanceof Error ? error.message : String(error);
        state = { ...state, refusedCount: state.refusedCount + 1, error: state.error ?? errorText };
        // An error with status 404 or 409 concerns only this message. Any other error concerns every message.
        if (!(error instanceof ApiError && (error.status === 404 || error.status === 409))) {
          setRun({ ...state, error: errorText, isRunning: false });
          return;
        }
      }
      setRun(state);
    }
    setRun({ ...state, isRunning: false });
    onClear();
    void queryClient.invalidateQueries({ queryKey: ['messages'] });
  }

  if (selectedIds.size === 0 && run === null) return null;
  return (
    <Paper withBorder p="sm" mb="sm" component="section" aria-label="Selected messages">
      {run === null ? (
        <Group gap="sm">
          <Text fw={500}>{formatCount(selectedIds.size, 'message')} selected</Text>
          {(['retry', 'cancel', 'resend'] as const).map((action) => (
            <Button key={action} variant="default" size="compact-sm" onClick={() => setRequestedAction(action)}>
              {ACTIONS[action].button}…
            </Button>
          ))}
          <Button variant="subtle" size="compact-sm" onClick={onClear}>
            Clear selection
          </Button>
        </Group>
      ) : (
        <RunProgress
          run={run}
          onStop={() => {
            isStopped.current = true;
          }}
          onClose={() => setRun(null)}
        />
      )}
      <ConfirmDialog
        opened={requestedAction !== null}
        title={`${ACTIONS[requestedAction ?? 'retry'].button} ${formatCount(selectedIds.size, 'message')}?`}
        action={`${ACTIONS[requestedAction ?? 'retry'].button} ${formatCount(selectedIds.size, 'message')}`}
        dismissal="Go back"
        busy={false}
        error={null}
        onConfirm={() => {
          if (requestedAction !== null) void startAction(requestedAction);
        }}
        onClose={() => setRequestedAction(null)}
      >
        {ACTIONS[requestedAction ?? 'retry'].text}
      </ConfirmDialog>
    </Paper>
  );
}

function RunProgress({
  run: { action, total, doneCount, refusedCount, error, isRunning },
  onStop,
  onClose,
}: {
  readonly run: Run;
  readonly onStop: () => void;
  readonly onClose: () => void;
}) {
  return (
    <>
      <Group gap="sm" mb={6}>
        <Text role="status">
          {doneCount} of {formatCount(total, 'message')} {ACTIONS[action].doneText}
          {refusedCount === 0 ? '' : `, ${refusedCount} refused`}
        </Text>
        <Button variant="default" size="compact-sm" onClick={isRunning ? onStop : onClose}>
          {isRunning ? 'Stop' : 'Close'}
        </Button>
      </Group>
      <Progress value={(100 * (doneCount + refusedCount)) / Math.max(1, total)} aria-label="Progress" />
      {error === null ? null : (
        <Text size="sm" c="dimmed" mt={6} className="wrap">
          {error}
        </Text>
      )}
    </>
  );
}
