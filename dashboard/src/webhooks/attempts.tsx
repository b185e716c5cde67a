/** The attempts of one delivery: time, status, duration, error and the beginning of the response. */
import { Text } from '@mantine/core';
import type { DeliveryEntry } from '../../../src/operations/webhooks.ts';
import { StatusBadge } from '../parts/status-badge';
import { formatDuration, formatTime } from '../parts/time';
import { UntrustedBlock } from '../parts/untrusted-text';

type Attempt = DeliveryEntry['attempts'][number];

export function Attempts({ attempts }: { readonly attempts: readonly Attempt[] }) {
  if (attempts.length === 0) return <Text c="dimmed">No attempt yet.</Text>;
  return (
    <ol className="plain timeline">
      {attempts.map((attempt) => (
        <li key={attempt.at}>
          <AttemptDetails attempt={attempt} />
        </li>
      ))}
    </ol>
  );
}

export function AttemptDetails({ attempt }: { readonly attempt: Attempt }) {
  const { at, durationMs, status, error, body } = attempt;
  return (
    <>
      <dl className="facts">
        <div>
          <dt>
            <StatusBadge tone={error === null ? 'success' : 'error'}>
              {status === null ? 'no response' : String(status)}
            </StatusBadge>
          </dt>
          <dd>{formatTime(at)}</dd>
        </div>
        <div>
          <dt>duration</dt>
          <dd>{formatDuration(durationMs)}</dd>
        </div>
        {error === null ? null : (
          <div>
            <dt>error</dt>
            <dd>{error}</dd>
          </div>
        )}
      </dl>
      {body === null || body === '' ? (
        status === null ? null : (
          <Text size="sm" c="dimmed">
            The response has no body.
          </Text>
        )
      ) : (
        <UntrustedBlock text={body} />
      )}
    </>
  );
}
