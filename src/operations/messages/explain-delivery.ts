/**
 * What one that is due waits for, as far as the process that is asked knows: its own breaker where it delivers. Of other nodes,
 * and of the service beside which a command runs, it says that it does not know. Pure.
 */

import type { RuntimeStatus } from '../../model/node.ts';
import { endSentence, formatSpan, formatTime } from '../../printing/text.ts';

/** Null for a command beside the service. */
export type DeliveryStatus = Pick<RuntimeStatus, 'delivery'> | null;

/** Ends the sentence "It is due since …: ", and what follows it. */
export function explainDue(service: DeliveryStatus, now: number): readonly string[] {
  if (service === null) {
    return [
      'a running service with the role deliver takes it, unless its next hop takes nothing; which of that is so, only that service knows.',
      '`postrider doctor` tries the next hop; the overview of the dashboard tells how it fares.',
    ];
  }
  const { delivery } = service;
  if (delivery === null) {
    return [
      'a node with the role deliver takes it, unless its next hop takes nothing; this node does not deliver, and only those that do know.',
    ];
  }
  if (delivery.breaker.state === 'closed') return ['this node takes it as soon as it has a free connection.'];
  return [`it waits because ${held(delivery, now)}.`, ...why(delivery)];
}

/** Why one that is due at a later time may wait beyond it; nothing where nothing is known to. */
export function explainOpenBreaker(service: DeliveryStatus, now: number): readonly string[] {
  const delivery = service?.delivery ?? null;
  if (delivery === null || delivery.breaker.state === 'closed') return [];
  return [`At present ${held(delivery, now)}.`, ...why(delivery)];
}

/** In one line. */
export function dueWaitReason(service: DeliveryStatus, now: number): string {
  if (service === null) return 'a running service whose next hop takes messages';
  const { delivery } = service;
  if (delivery === null) return 'a node that delivers and whose next hop takes messages; this one does not deliver';
  if (delivery.breaker.state === 'closed') return 'a free connection';
  const said = delivery.lastFailure === null ? '' : `; its last failure: ${delivery.lastFailure.text}`;
  return `the next hop, which takes nothing: ${triedNext(delivery, now)}${said}`;
}

type Delivery = NonNullable<RuntimeStatus['delivery']>;

function held(delivery: Delivery, now: number): string {
  return `the next hop took nothing several times in a row: nothing is handed to it, and ${triedNext(delivery, now)}`;
}

function triedNext({ breaker: { state, retryAt } }: Delivery, now: number): string {
  if (state === 'half-open') return 'one message is being tried now';
  return retryAt === null || retryAt <= now
    ? 'one message is tried next'
    : `one message is tried at ${formatTime(retryAt)}, in ${formatSpan(retryAt - now)}`;
}

function why({ lastFailure }: Delivery): readonly string[] {
  if (lastFailure === null) return [];
  return [
    `The last failure, at ${formatTime(lastFailure.at)}: ${endSentence(lastFailure.text)} \`postrider doctor\` tries the next hop.`,
  ];
}
