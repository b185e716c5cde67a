/** The dialogs of one route: pause and test. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import type { RouteEntry, RouteTest } from '../../../src/operations/routes.ts';
import { toPrintable } from '../../../src/printing/escape.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { Callout } from '../parts/callout';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';
import { formatDuration } from '../parts/time';
import { UntrustedBlock } from '../parts/untrusted-text';

export interface RouteDialogProps {
  readonly route: string;
  /** True if another route is usable. */
  readonly hasOther: boolean;
  readonly onClose: () => void;
}

const PAUSE_FIELDS = [
  { name: 'for', label: 'Ends after', placeholder: '2h; empty: when it is resumed' },
  { name: 'reason', label: 'Reason', placeholder: '' },
] as const;

export function PauseDialog({ route, hasOther, onClose }: RouteDialogProps) {
  const [texts, setTexts] = useState({ for: '', reason: '' });
  const pause = useApiMutation(
    () => {
      const members = Object.entries(texts).filter(([, text]) => text.trim() !== '');
      return post<RouteEntry>(path`/routes/${route}/pause`, Object.fromEntries(members));
    },
    ['routes', 'overview'],
    () => `Paused ${route} on every node within a second.`,
  );
  const errors = PAUSE_FIELDS.map(({ name }) => findFieldError(pause.error, name));
  return (
    <FormDialog
      opened
      title={`Pause ${route}`}
      action="Pause route"
      busy={pause.isPending}
      error={pause.error}
      hasFieldError={errors.some((error) => error !== null)}
      onSubmit={() => pause.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      {PAUSE_FIELDS.map(({ name, label, placeholder }, index) => (
        <TextInput
          key={name}
          label={label}
          placeholder={placeholder}
          value={texts[name]}
          onChange={(event) => setTexts({ ...texts, [name]: event.currentTarget.value })}
          error={errors[index]}
          autoComplete="off"
        />
      ))}
      {hasOther ? (
        <div className="muted">Its messages take the next route of their policy. Attempts under way finish.</div>
      ) : (
        <Callout tone="warning" title="No other route is usable">
          Messages are accepted and wait until a route is usable.
        </Callout>
      )}
    </FormDialog>
  );
}

const ADDRESSES = [
  { name: 'from', label: 'From', placeholder: 'An address of a domain of yours' },
  { name: 'to', label: 'To', placeholder: 'A mailbox that you read' },
] as const;

export function TestDialog({ route, onClose }: Omit<RouteDialogProps, 'hasOther'>) {
  const [addresses, setAddresses] = useState({ from: '', to: '' });
  const test = useApiMutation(() => post<RouteTest>(path`/routes/${route}/test`, addresses), ['routes']);
  const errors = ADDRESSES.map(({ name }) => findFieldError(test.error, name));
  return (
    <FormDialog
      opened
      title={`Test ${route}`}
      action="Send test"
      size="lg"
      dismissal="Close"
      busy={test.isPending}
      disabled={addresses.from.trim() === '' || addresses.to.trim() === ''}
      error={test.error}
      hasFieldError={errors.some((error) => error !== null)}
      onSubmit={() => test.mutate(undefined)}
      onClose={onClose}
    >
      <div className="muted">Sends one message over this route, paused or not. It never takes another route.</div>
      {ADDRESSES.map(({ name, label, placeholder }, index) => (
        <TextInput
          key={name}
          type="email"
          label={label}
          placeholder={placeholder}
          value={addresses[name]}
          onChange={(event) => setAddresses({ ...addresses, [name]: event.currentTarget.value })}
          error={errors[index]}
          required
          autoComplete="off"
        />
      ))}
      {test.data === undefined ? null : <TestResult result={test.data} />}
    </FormDialog>
  );
}

function TestResult({
  result: { outcome, reason, reply, remote, durationMs, transcript },
}: {
  readonly result: RouteTest;
}) {
  const isAccepted = outcome === 'delivered';
  const title = isAccepted ? 'The next hop accepted the message' : `Not accepted: ${reason ?? outcome}`;
  return (
    <div role="status">
      <Callout tone={isAccepted ? 'info' : 'error'} title={title}>
        <bdi>{toPrintable(reply)}</bdi> ({remote === null ? '' : `${remote}, `}
        {formatDuration(durationMs)})
      </Callout>
      {transcript.length === 0 ? null : (
        <details className="transcript-box">
          <summary>Transcript</summary>
          <UntrustedBlock text={transcript.join('\n')} />
        </details>
      )}
    </div>
  );
}
