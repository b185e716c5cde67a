/** One delivery of an endpoint. The operator can show the attempts of the delivery below the row. */
import { Button, Collapse, Group, Text } from '@mantine/core';
import { useDisclosure, useId } from '@mantine/hooks';
import type { DeliveryEntry, WebhookEntry } from '../../../src/operations/webhooks.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { MessageLink } from '../parts/message-link';
import { formatCount } from '../parts/number';
import { ErrorAlert } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { ChangedBadge } from '../parts/status-badge';
import { formatDuration } from '../parts/time';
import { Attempts } from './attempts';
import { DeliveryBadge } from './badges';

const COLUMN_COUNT = 5;

interface DeliveryRowProps {
  readonly delivery: DeliveryEntry;
  readonly webhook: WebhookEntry;
  /** True if the delivery no longer matches the filter of the list, because its status has changed. */
  readonly isOutdated: boolean;
}

export function DeliveryRow({ delivery, webhook, isOutdated }: DeliveryRowProps) {
  const { id, type, message, status, attempts, nextAttemptAt } = delivery;
  const [opened, { toggle }] = useDisclosure();
  const detailsId = useId();
  const lastAttempt = attempts.at(-1);
  const replay = useApiMutation(
    () => post(path`/webhooks/${webhook.id}/replay`, { delivery: id }),
    ['webhooks'],
    () => 'The delivery is due now. Its id and its body are unchanged.',
  );
  return (
    <>
      <tr>
        <td>
          {isOutdated ? (
            <ChangedBadge title="The delivery no longer matches the filter" />
          ) : (
            <DeliveryBadge status={status} />
          )}
        </td>
        <td className="fill">
          <div className="two-lines">
            <b>{type}</b>
            {message === null ? null : (
              <span>
                <MessageLink id={message} />
              </span>
            )}
          </div>
        </td>
        <td className="fill">
          <div className="two-lines">
            <span>
              <LastResult delivery={delivery} />
            </span>
            <span>
              {lastAttempt === undefined ? null : (
                <>
                  <RelativeTime at={lastAttempt.at} /> · {formatDuration(lastAttempt.durationMs)} ·{' '}
                  {formatCount(attempts.length, 'attempt')}
                </>
              )}
              {nextAttemptAt === null || webhook.status === 'disabled' ? null : (
                <>
                  {lastAttempt === undefined ? 'due ' : ' · next '}
                  <RelativeTime at={nextAttemptAt} />
                </>
              )}
            </span>
          </div>
        </td>
        <td className="nowrap desk">
          <RelativeTime at={toRecordedAt(id)} />
        </td>
        <td className="end actions">
          <Group gap="xs" justify="flex-end" wrap="nowrap">
            <Button
              size="compact-sm"
              variant="default"
              onClick={toggle}
              aria-expanded={opened}
              aria-controls={detailsId}
              aria-label={`Attempts of ${id}`}
            >
              Attempts
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              loading={replay.isPending}
              disabled={webhook.status === 'disabled'}
              title={webhook.status === 'disabled' ? 'Enable the endpoint first' : undefined}
              onClick={() => replay.mutate(undefined)}
              aria-label={`Replay ${id}`}
            >
              Replay
            </Button>
          </Group>
        </td>
      </tr>
      <tr id={detailsId} hidden={!opened && replay.error === null}>
        <td colSpan={COLUMN_COUNT} className="fill">
          {replay.error === null ? null : <ErrorAlert error={replay.error} />}
          <Collapse expanded={opened}>
            <Text size="sm" c="dimmed" mb="xs" className="wrap">
              webhook-id {id}
            </Text>
            <Attempts attempts={attempts} />
          </Collapse>
        </td>
      </tr>
    </>
  );
}

/** Shows the status and the error of the last attempt. */
function LastResult({ delivery: { attempts } }: { readonly delivery: DeliveryEntry }) {
  const lastAttempt = attempts.at(-1);
  if (lastAttempt === undefined) return 'no attempt yet';
  return <span className="wrap">{lastAttempt.error ?? `status ${lastAttempt.status}`}</span>;
}

/** Returns the time that the id of a delivery contains. The id is a UUIDv7 (RFC 9562 section 5.7). */
function toRecordedAt(id: string): string {
  return new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString();
}
