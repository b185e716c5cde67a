/**
 * Shows how the message ended or what the message waits for. A second line adds details, such as the confirmation or
 * the next attempt.
 */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import type { MessageDetails } from '../../../src/operations/message-details.ts';
import { formatLabel } from '../messages/labels';
import { formatCount } from '../parts/number';
import { findStateStyle } from '../parts/state-badge';
import { formatDuration, formatTime } from '../parts/time';
import { buildSuppressionUrl } from './suppression-links';

export function Outcome({ message }: { readonly message: MessageDetails }) {
  const { summary, details } = describeOutcome(message);
  const [tone, Icon] = findStateStyle(message.state, message.attempts.at(-1)?.outcome === 'deferred');
  const suppression = message.suppressions.find(({ source }) => source === message.id) ?? message.suppressions[0];
  return (
    <section className={`attention-row tone-${tone}`} aria-label="Result">
      <Icon size={20} stroke={1.8} aria-hidden />
      <div className="attention-text sentence">
        <b>{summary}</b>
        <div>
          {details}{' '}
          {suppression === undefined ? null : (
            <Anchor component={Link} href={buildSuppressionUrl(suppression.list, message.to)} inherit>
              Show the suppression entry
            </Anchor>
          )}
        </div>
      </div>
    </section>
  );
}

interface OutcomeText {
  readonly summary: string;
  readonly details: string;
}

function describeOutcome(message: MessageDetails): OutcomeText {
  const { state, deliveryMs, confirmationMs, due, attempts, to, account } = message;
  const category = [...message.events].reverse().find((event) => event.category !== null)?.category ?? null;
  const cause = category === null ? '' : `: ${formatLabel(category).toLowerCase()}`;
  const durationText = deliveryMs === null ? '' : ` in ${formatDuration(deliveryMs)}`;
  const isSuppressed = message.suppressions.length > 0;
  const suppressionText = isSuppressed
    ? `Further messages ${account === null ? '' : `of account ${account} `}to ${to} are suppressed.`
    : 'The recipient is on no suppression list.';
  const attemptCountText = attempts.length === 1 ? 'one attempt' : `${attempts.length} attempts`;
  switch (state) {
    case 'delivered':
      return {
        summary: `Delivered${durationText}.`,
        details:
          confirmationMs === null
            ? 'The next hop accepted the message. No provider event has confirmed that it reached the mailbox.'
            : `The provider confirmed the delivery ${formatDuration(confirmationMs)} after acceptance.`,
      };
    case 'bounced':
      return {
        summary: deliveryMs === null ? `Bounced${cause}.` : `Delivered${durationText}, then bounced${cause}.`,
        details: `The message is not sent again. ${suppressionText}`,
      };
    case 'complained':
      return { summary: `Delivered${durationText}, then reported as spam by the recipient.`, details: suppressionText };
    case 'suppressed':
      return {
        summary:
          attempts.length === 0
            ? 'Not sent, because the recipient was on a suppression list.'
            : `Ended after ${attemptCountText}, because the recipient was on a suppression list.`,
        details: suppressionText,
      };
    case 'expired':
      return {
        summary: `Expired after ${attemptCountText}${cause}.`,
        details: 'The message is not sent again, unless an operator resends it.',
      };
    case 'cancelled':
      return {
        summary: 'Cancelled by an operator.',
        details: 'The message is not sent, unless an operator resends it.',
      };
    case 'uncertain':
      return {
        summary: 'It is not known whether the next hop accepted the message.',
        details: 'The message waits for an operator: a retry may send it twice, and a cancellation may lose it.',
      };
    case 'sending':
      return { summary: 'The message is being sent now.', details: 'The result appears here.' };
    case 'queued': {
      if (message.held !== null)
        return {
          summary:
            message.held.hold === null
              ? 'The hold of the message has ended.'
              : `Hold ${message.held.hold} stops the message.`,
          details: message.held.reason ?? 'The message is about to be due.',
        };
      const nextAttemptText =
        due === null ? 'The next attempt is not scheduled yet.' : `The next attempt is due at ${formatTime(due)}.`;
      return attempts.length === 0
        ? { summary: 'The message waits for its first attempt.', details: nextAttemptText }
        : { summary: `Deferred after ${formatCount(attempts.length, 'attempt')}${cause}.`, details: nextAttemptText };
    }
  }
}
