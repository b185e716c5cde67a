/** Compares the received webhooks of a trial with `message show --json` and the suppression list. */
import type { State } from '../../src/model/message.ts';
import { MESSAGE_EVENT_TYPES } from '../../src/model/webhook.ts';
import type { ReceivedWebhook } from './trial-installation.ts';

/** The members of `message show --json` that the trial reads. */
export interface ShownMessage {
  readonly id: string;
  readonly state: State;
  readonly to: string;
  readonly account: string;
  readonly confirmedAt: string | null;
  readonly attemptCount: number;
  readonly events: readonly {
    readonly sequence: number;
    readonly at: string;
    readonly type: string;
    readonly class: string | null;
    readonly category: string | null;
    readonly status: string | null;
    readonly diagnostic: string | null;
    readonly detail: string | null;
  }[];
}

/** An entry of `suppression list --json`. */
export interface ShownSuppression {
  readonly address: string;
  readonly reason: string;
  readonly source: string | null;
}

export interface TrialDifferences {
  /** Events that `message show` or the suppression list contains and that were not received. */
  readonly missingEvents: readonly string[];
  /** Received events that `message show` or the suppression list does not contain. */
  readonly extraEvents: readonly string[];
  /** Ids with more than one body, and events with more than one id. */
  readonly inconsistencies: readonly string[];
}

interface Payload {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const LISTED_TYPES: ReadonlySet<string> = new Set(MESSAGE_EVENT_TYPES);

/** Compares all received requests. Requests with the same id count once. */
export function compareReceivedWebhooks(
  receivedWebhooks: readonly ReceivedWebhook[],
  shownMessages: ReadonlyMap<string, ShownMessage>,
  suppressions: readonly ShownSuppression[],
): TrialDifferences {
  const bodies = new Map<string, string>();
  const inconsistencies: string[] = [];
  for (const { id, body } of receivedWebhooks) {
    const firstBody = bodies.get(id) ?? body;
    if (firstBody !== body) inconsistencies.push(`${id}: ${firstBody} / ${body}`);
    bodies.set(id, firstBody);
  }
  const descriptions = [...bodies.values()].map((body) => describePayload(JSON.parse(body) as Payload));
  const counts = new Map<string, number>();
  for (const description of descriptions) counts.set(description, (counts.get(description) ?? 0) + 1);
  for (const [description, count] of counts) if (count > 1) inconsistencies.push(`${count} ids: ${description}`);
  const expectedEvents = new Set([
    ...[...shownMessages.values()].flatMap(describeShownMessage),
    // The entry without a source is not expected: the trial adds this entry before it creates the endpoint.
    ...suppressions.filter(({ source }) => source !== null).map(describeSuppression),
  ]);
  return {
    missingEvents: [...expectedEvents].filter((description) => !counts.has(description)),
    extraEvents: [...counts.keys()].filter((description) => !expectedEvents.has(description)),
    inconsistencies,
  };
}

/** Returns the events that the receiver must have received for a message, each as one text. */
function describeShownMessage({ id, account, to, state, events }: ShownMessage): string[] {
  return events
    .filter(({ type }) => LISTED_TYPES.has(`message.${type}`))
    .map(({ sequence, at, type, class: failureClass, category, status, diagnostic, detail }) => {
      const isLast = sequence === events.findLast((event) => STATES_AFTER.has(event.type))?.sequence;
      const text = type === 'accepted' || type === 'cancelled' ? null : (diagnostic ?? detail);
      const stateAfter = isLast ? state : (STATES_AFTER.get(type) ?? null);
      const code = type === 'delivered' ? null : status;
      return joinParts(
        `message.${type}`,
        id,
        sequence,
        at,
        account,
        to,
        stateAfter,
        failureClass,
        category,
        code,
        text,
      );
    });
}

/** The state of a message after an entry of its history, for each type of entry that determines the state. */
const STATES_AFTER: ReadonlyMap<string, string> = new Map([
  ['deferred', 'queued'],
  ['delivered', 'delivered'],
  ['bounced', 'bounced'],
  ['complained', 'complained'],
  ['suppressed', 'suppressed'],
  ['expired', 'expired'],
  ['cancelled', 'cancelled'],
  ['uncertain', 'uncertain'],
]);

function describeSuppression({ address, reason, source }: ShownSuppression): string {
  return joinParts('suppression.added', 'default', address, reason, source);
}

function describePayload({ type, timestamp, data }: Payload): string {
  if (type === 'suppression.added') return joinParts(type, data.account, data.address, data.reason, data.source);
  const { id, sequence, account, to, state, class: failureClass, category, status, diagnostic, detail } = data;
  const stateAfter = STATES_AFTER.has(type.slice('message.'.length)) ? state : null;
  const code = type === 'message.delivered' ? null : status;
  const text = diagnostic ?? detail;
  return joinParts(type, id, sequence, timestamp, account, to, stateAfter, failureClass, category, code, text);
}

function joinParts(...parts: readonly unknown[]): string {
  return parts.map((part) => part ?? '-').join(' ');
}
