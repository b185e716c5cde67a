/** The history of a message in order: accepted, attempts, reports, actions of operators. */
import { Anchor, Group, Text } from '@mantine/core';
import { IconPoint, type TablerIcon } from '@tabler/icons-react';
import { Link } from 'wouter';
import type {
  AttemptDetails as Attempt,
  EventDetails,
  MessageDetails,
} from '../../../src/operations/messages/schemas.ts';
import { toPrintable } from '../../../src/printing/escape.ts';
import { formatLabel } from '../messages/labels';
import { Card } from '../parts/card';
import { RelativeTime } from '../parts/relative-time';
import { STATE_LOOKS } from '../parts/state-badge';
import { formatUtc } from '../parts/time';
import { AttemptDetails } from './attempt';
import { buildSuppressionUrl, formatSuppressionListName } from './suppression-links';

export function Timeline({ message }: { readonly message: MessageDetails }) {
  // Events are only appended, so the index is a stable key.
  const entries = groupDeferrals(message.events);
  return (
    <Card title="Timeline" secondary="times in UTC">
      <ol className="plain timeline">
        {entries.map(({ event, earlier }) => (
          <li key={event.sequence}>
            <Mark type={event.type} />
            {earlier.length === 0 ? null : (
              <details className="earlier">
                <summary>
                  <Text span size="sm">
                    {earlier.length} earlier deferrals since {formatUtc(earlier[0]?.at ?? event.at)}
                  </Text>
                </summary>
                <ol className="plain">
                  {earlier.map((deferral) => (
                    <li key={deferral.sequence}>
                      <Event event={deferral} message={message} />
                    </li>
                  ))}
                </ol>
              </details>
            )}
            <Event event={event} message={message} />
          </li>
        ))}
        {message.suppressions
          .filter(({ source }) => source === message.id)
          .map(({ list, at }) => (
            <li key={list}>
              <Mark type="suppressed" />
              <Head type="recipient suppressed" at={at} by={null} />
              <Text size="sm" className="wrap">
                {message.to} was added to{' '}
                <Anchor component={Link} href={buildSuppressionUrl(list, message.to)} inherit>
                  {formatSuppressionListName(list)}
                </Anchor>
              </Text>
            </li>
          ))}
      </ol>
    </Card>
  );
}

/** The icon of an event. An event that is no state of a message has a neutral dot. */
function Mark({ type }: { readonly type: string }) {
  const [tone, Icon] = MARKS.get(type) ?? ['neutral', IconPoint];
  return (
    <span className={`timeline-mark tone-${tone}`}>
      <Icon size={14} stroke={2} aria-hidden />
    </span>
  );
}

const MARKS: ReadonlyMap<string, readonly [tone: string, Icon: TablerIcon]> = new Map([
  ...Object.entries(STATE_LOOKS),
  ['accepted', STATE_LOOKS.queued],
  ['deferred', STATE_LOOKS.expired],
]);

/** The minimum number of successive deferrals that are collapsed. */
const MIN_COLLAPSED = 3;

interface TimelineEntry {
  readonly event: EventDetails;
  /** The deferrals before `event`, oldest first, if they are collapsed. */
  readonly earlier: readonly EventDetails[];
}

/** Collapses successive deferrals: the last deferral is shown, and the earlier deferrals are shown on request. */
function groupDeferrals(events: readonly EventDetails[]): readonly TimelineEntry[] {
  const entries: TimelineEntry[] = [];
  for (let index = 0; index < events.length; index += 1) {
    let end = index;
    while (events[index]?.type === 'deferred' && events[end + 1]?.type === 'deferred') end += 1;
    if (end - index + 1 >= MIN_COLLAPSED) {
      const [last] = events.slice(end, end + 1);
      if (last !== undefined) entries.push({ event: last, earlier: events.slice(index, end) });
      index = end;
      continue;
    }
    const event = events[index];
    if (event !== undefined) entries.push({ event, earlier: [] });
  }
  return entries;
}

function Event({ event, message }: { readonly event: EventDetails; readonly message: MessageDetails }) {
  const attempt: Attempt | undefined = event.attempt === null ? undefined : message.attempts[event.attempt];
  return (
    <>
      <Head type={event.type} at={event.at} by={event.type === 'accepted' ? null : describeActor(event.by)} />
      {event.type === 'accepted' ? <Accepted message={message} /> : null}
      {event.detail === null ? null : (
        <Text size="sm" className="wrap">
          {event.type === 'resent' || event.type === 'resend-of' ? (
            <Anchor component={Link} href={`/messages/${event.detail}`} inherit>
              {event.detail}
            </Anchor>
          ) : (
            <bdi>{toPrintable(event.detail)}</bdi>
          )}
        </Text>
      )}
      {event.category === null ? null : <span className="category">{formatLabel(event.category)}</span>}
      {attempt === undefined ? null : <AttemptDetails attempt={attempt} />}
    </>
  );
}

function Head({ type, at, by }: { readonly type: string; readonly at: string; readonly by: string | null }) {
  return (
    <Group gap="xs" align="baseline">
      <Text fw={600} className="badge-word">
        {type}
      </Text>
      <Text size="sm" c="dimmed">
        {formatUtc(at)}
      </Text>
      <Text size="sm" c="dimmed">
        <RelativeTime at={at} />
        {by === null ? '' : `, by ${by}`}
      </Text>
    </Group>
  );
}

function Accepted({ message: { account, key, keyName } }: { readonly message: MessageDetails }) {
  return (
    <Text size="sm" className="wrap">
      with key {keyName === null ? key : `${keyName} (${key})`}
      {account === null ? (
        ' of an account that no longer exists'
      ) : (
        <>
          {' '}
          of account{' '}
          <Anchor component={Link} href={`/accounts/${encodeURIComponent(account)}`} inherit>
            {account}
          </Anchor>
        </>
      )}
    </Text>
  );
}

/** Describes the actor: a node, an operator, the simulator, or a report and how it arrived. */
function describeActor(by: string): string {
  if (by === 'operator') return 'an operator';
  if (by === 'simulator') return 'the mailbox simulator';
  // The store suppresses a message whose recipient is on a suppression list.
  if (by === 'store') return 'the suppression list';
  if (by === 'feedback:smtp') return 'a feedback report (smtp)';
  if (by.startsWith('feedback:')) return `a provider event (${by.slice('feedback:'.length)})`;
  return `node ${by}`;
}
