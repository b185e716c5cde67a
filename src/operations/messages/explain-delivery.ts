/**
 * Explains what a due message waits for. The only source is the circuit breaker of this process, if this process
 * delivers. The explanation makes no statement about other nodes and, in a command, none about the running service.
 * Pure.
 */

import type { RuntimeStatus } from '../../model/node.ts';
import { formatSpan, formatTime, toSentence } from '../../printing/text.ts';

/** The delivery status of this process. Null for a command. */
export type DeliveryStatus = Pick<RuntimeStatus, 'delivery'> | null;

/** Returns the end of the sentence "… has been due since …: ", and the sentences after it. */
export function explainDueMessage(status: DeliveryStatus, now: number): readonly string[] {
  if (status === null) {
    return [
      'a running service with the role deliver sends it unless its circuit breaker is open.',
      '`postrider overview` shows the circuit breaker; `postrider doctor` checks the next hop.',
    ];
  }
  const { delivery } = status;
  if (delivery === null) {
    return [
      'a node with the role deliver sends it unless the circuit breaker of that node is open. This node does not deliver, so it cannot report the state of that circuit breaker.',
    ];
  }
  if (delivery.breaker.state === 'closed') return ['this node sends it as soon as a connection is free.'];
  return [`it waits because ${describeBreaker(delivery, now)}.`, ...describeLastFailure(delivery)];
}

/** Explains why a message may wait beyond its due time. The result is empty if the circuit breaker is closed. */
export function explainOpenBreaker(status: DeliveryStatus, now: number): readonly string[] {
  const delivery = status?.delivery ?? null;
  if (delivery === null || delivery.breaker.state === 'closed') return [];
  return [`Currently, ${describeBreaker(delivery, now)}.`, ...describeLastFailure(delivery)];
}

/** Returns one line that states what a due message waits for. */
export function describeDueWaitReason(status: DeliveryStatus, now: number): string {
  if (status === null) return 'a running service whose circuit breaker is closed';
  const { delivery } = status;
  if (delivery === null) return 'a node that delivers and whose circuit breaker is closed; this node does not deliver';
  if (delivery.breaker.state === 'closed') return 'a free connection';
  const failure = delivery.lastFailure === null ? '' : `; last failure: ${delivery.lastFailure.text}`;
  return `the next hop: ${describeBreaker(delivery, now)}${failure}`;
}

type Delivery = NonNullable<RuntimeStatus['delivery']>;

function describeBreaker({ breaker: { state, retryAt } }: Delivery, now: number): string {
  if (state === 'half-open') return 'the circuit breaker is half-open and one message probes the next hop';
  const probe =
    retryAt === null || retryAt <= now
      ? 'the next message probes the next hop'
      : `one message probes the next hop at ${formatTime(retryAt)}, in ${formatSpan(retryAt - now)}`;
  return `the circuit breaker is open after several failures in a row; ${probe}`;
}

function describeLastFailure({ lastFailure: failure }: Delivery): readonly string[] {
  if (failure === null) return [];
  return [
    `The last failure, at ${formatTime(failure.at)}: ${toSentence(failure.text)} \`postrider doctor\` checks the next hop.`,
  ];
}
