/** The history of a message in chronological order: acceptance, attempts, reports, actions of operators. */
import { Anchor, Text } from '@mantine/core';
import { IconPoint, type TablerIcon } from '@tabler/icons-react';
import { Link } from 'wouter';
import { DEFAULT_ROUTE } from '../../../src/model/route.ts';
import type {
  AttemptDetails as Attempt,
  EventDetails,
  MessageDetails,
} from '../../../src/operations/message-details.ts';
import { toPrintable } from '../../../src/printing/escape.ts';
import { formatLabel } from '../messages/labels';
import { Card } from '../parts/card';
import { STATE_STYLES } from '../parts/state-badge';
import { formatDate, formatTime, formatTimeOfDay, formatZone } from '../parts/time';
import { TimeZoneSwitch } from '../parts/time-zone-switch';
import { AttemptDetails } from './attempt';
import { buildSuppressionUrl, formatSuppressionListName } from './suppression-links';

interface TimelineProps {
  readonly message: MessageDetails;
  /** The configured routes. */
  readonly routes: readonly string[];
}

export function Timeline({ message, routes }: TimelineProps) {
  const showsRoutes = routes.length > 1 || message.attempts.some(({ route }) => route !== DEFAULT_ROUTE);
  // Events are only appended, so the sequence number of an event is a stable key.
  const entries = groupDeferrals(message.events);
  return (
    <Card
      title="Timeline"
      secondary={`${formatDate(message.at)}, ${formatZone(message.at)}`}
      aside={<TimeZoneSwitch />}
    >
      <ol className="plain timeline">
        {entries.map(({ event, earlierDeferrals, omittedCount }) => (
          <li key={event.sequence}>
            {omittedCount === 0 ? null : (
              <Text size="sm" c="dimmed">
                {omittedCount} events are not shown
              </Text>
            )}
            <EventIcon type={event.type} />
            {earlierDeferrals.length === 0 ? null : (
              <details className="earlier">
                <summary>
                  <Text span size="sm">
                    {earlierDeferrals.length} earlier deferrals since {formatTime(earlierDeferrals[0]?.at ?? event.at)}
                  </Text>
                </summary>
                <ol className="plain">
                  {earlierDeferrals.map((deferral) => (
                    <li key={deferral.sequence}>
                      <Event event={deferral} message={message} showsRoute={showsRoutes} />
                    </li>
                  ))}
                </ol>
              </details>
            )}
            <Event event={event} message={message} showsRoute={showsRoutes} />
          </li>
        ))}
        {message.furtherReports === 0 ? null : (
          <li>
            <EventIcon type="further reports" />
            <Text size="sm">{message.furtherReports} further reports changed nothing and were only counted</Text>
          </li>
        )}
        {message.suppressions
          .filter(({ source }) => source === message.id)
          .map(({ list, at }) => (
            <li key={list}>
              <EventIcon type="suppressed" />
              <EntryHead type="recipient suppressed" at={at} acceptedAt={message.at} by={null} />
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

/** The icon of an event. An event type without an icon is shown as a neutral dot. */
function EventIcon({ type }: { readonly type: string }) {
  const [tone, Icon] = EVENT_ICONS.get(type) ?? ['neutral', IconPoint];
  return (
    <span className={`timeline-mark tone-${tone}`}>
      <Icon size={14} stroke={2} aria-hidden />
    </span>
  );
}

const EVENT_ICONS: ReadonlyMap<string, readonly [tone: string, Icon: TablerIcon]> = new Map([
  ...Object.entries(STATE_STYLES),
  ['accepted', STATE_STYLES.queued],
  ['deferred', STATE_STYLES.expired],
]);

/** The minimum number of successive deferrals that are collapsed. */
const MIN_COLLAPSED_COUNT = 3;

interface TimelineEntry {
  readonly event: EventDetails;
  /** The collapsed deferrals before `event`, oldest first. */
  readonly earlierDeferrals: readonly EventDetails[];
  /** The number of events that the response omits before this entry. */
  readonly omittedCount: number;
}

/** Collapses successive deferrals: the last deferral is shown, and the earlier deferrals are shown on request. */
function groupDeferrals(events: readonly EventDetails[]): readonly TimelineEntry[] {
  const entries: TimelineEntry[] = [];
  for (let index = 0; index < events.length; index += 1) {
    let end = index;
    const omittedCount = (events[index]?.sequence ?? 0) - (events[index - 1]?.sequence ?? -1) - 1;
    while (
      events[index]?.type === 'deferred' &&
      events[end + 1]?.type === 'deferred' &&
      events[end + 1]?.sequence === (events[end]?.sequence ?? 0) + 1
    )
      end += 1;
    if (end - index + 1 >= MIN_COLLAPSED_COUNT) {
      const [last] = events.slice(end, end + 1);
      if (last !== undefined) entries.push({ event: last, earlierDeferrals: events.slice(index, end), omittedCount });
      index = end;
      continue;
    }
    const event = events[index];
    if (event !== undefined) entries.push({ event, earlierDeferrals: [], omittedCount });
  }
  return entries;
}

interface EventProps {
  readonly event: EventDetails;
  readonly message: MessageDetails;
  readonly showsRoute: boolean;
}

function Event({ event, message, showsRoute }: EventProps) {
  const attempt: Attempt | undefined = event.attempt === null ? undefined : message.attempts[event.attempt];
  const category = event.category === null ? null : formatLabel(event.category);
  return (
    <>
      <EntryHead
        type={event.type}
        at={event.at}
        acceptedAt={message.at}
        by={event.type === 'accepted' ? null : describeActor(event.by)}
      />
      {event.type === 'accepted' ? <AcceptedDetail message={message} /> : null}
      {event.detail === null ? null : <Detail event={event} detail={event.detail} />}
      {attempt === undefined && category !== null ? <span className="category">{category}</span> : null}
      {attempt === undefined ? null : <AttemptDetails attempt={attempt} category={category} showsRoute={showsRoute} />}
    </>
  );
}

/** The codes at the beginning of a reply, such as `550 5.1.1`. */
const REPLY_CODES = /^\d{3}(?: \d\.\d{1,3}\.\d{1,3})?(?= |$)/;

/** Shows the reply or the reported reason. For a resend, links to the original or the new message. */
function Detail({ event, detail }: { readonly event: EventDetails; readonly detail: string }) {
  if (event.type === 'resent' || event.type === 'resend-of') {
    return (
      <Text size="sm" className="wrap">
        <Anchor component={Link} href={`/messages/${detail}`} inherit>
          {detail}
        </Anchor>
      </Text>
    );
  }
  const text = toPrintable(detail);
  const codes = REPLY_CODES.exec(text)?.[0] ?? '';
  return (
    <Text size="sm" className="wrap">
      <bdi>
        {codes === '' ? null : <code>{codes}</code>}
        {text.slice(codes.length)}
      </bdi>
    </Text>
  );
}

interface HeadProps {
  readonly type: string;
  readonly at: string;
  /** The time of acceptance. The date of an event is shown if it differs from the date of acceptance. */
  readonly acceptedAt: string;
  readonly by: string | null;
}

function EntryHead({ type, at, acceptedAt, by }: HeadProps) {
  const isOtherDay = formatDate(at) !== formatDate(acceptedAt);
  return (
    <div className="timeline-head">
      <b className="badge-word">{type}</b>
      <time dateTime={at} title={formatTime(at)}>
        {isOtherDay ? `${formatDate(at)} ` : ''}
        {formatTimeOfDay(at)}
      </time>
      {by === null ? null : <span>by {by}</span>}
    </div>
  );
}

function AcceptedDetail({ message: { account, key, keyName } }: { readonly message: MessageDetails }) {
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

/** Describes the actor that caused an event, such as a node, an operator, or a report with its source. */
function describeActor(by: string): string {
  if (by === 'operator') return 'an operator';
  if (by === 'simulator') return 'the mailbox simulator';
  // The store suppresses a message whose recipient is on a suppression list.
  if (by === 'store') return 'the suppression list';
  if (by === 'feedback:smtp') return 'a feedback report (smtp)';
  if (by.startsWith('feedback:')) return `a provider event (${by.slice('feedback:'.length)})`;
  return `node ${by}`;
}
