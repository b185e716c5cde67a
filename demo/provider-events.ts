/**
 * The events of a provider in the demo: Postmark confirms one third of the deliveries. The events of the last days of
 * the history are written into the store, with times in the past. During the live traffic, the events are sent over
 * loopback to the listener for provider events.
 */
import { createEventReports } from '../src/feedback/provider/body.ts';
import type { FeedbackReport } from '../src/model/feedback.ts';
import type { LeasedMessage } from '../src/model/message.ts';

/** The public URL of the listener for provider events. No request is sent to this URL. */
export const EVENTS_URL = 'https://events.lumen.example';

const SMTP_REPLY = 'smtp;250 2.0.0 OK';
const MIN_CONFIRMATION_MS = 600;
const CONFIRMATION_SPAN_MS = 4_000;

/** Returns true if the provider confirms the delivery of the message. The message id determines the result. */
export function isConfirmed(messageId: string): boolean {
  return readIdNumber(messageId) % 3 === 0;
}

/** Returns the time from the delivery to the event, in ms. The message id determines the time. */
export function getConfirmationDelayMs(messageId: string): number {
  return MIN_CONFIRMATION_MS + (readIdNumber(messageId) % CONFIRMATION_SPAN_MS);
}

/** Returns the number that the last six hexadecimal digits of a message id represent. These digits are random. */
function readIdNumber(messageId: string): number {
  return Number.parseInt(messageId.slice(-6), 16);
}

/** Creates the report of a delivery event that was received at the time `at`. */
export function createConfirmationReports(
  { id, to }: Pick<LeasedMessage, 'id' | 'to'>,
  at: number,
): readonly FeedbackReport[] {
  const diagnosis = { status: null, diagnostic: SMTP_REPLY, host: null };
  const event = {
    key: id,
    type: 'Delivery',
    messageId: id,
    reference: null,
    recipient: to,
    meaning: 'delivered',
    hasListReason: false,
    diagnosis,
  } as const;
  return createEventReports([event], { provider: 'postmark', now: at, usesReferences: false, signsKeyOnly: false });
}

export interface EventTarget {
  /** The URL of the listener for provider events, without a path. */
  readonly url: string;
  /** The value of POSTRIDER_EVENTS_POSTMARK, `USER:PASSWORD`. */
  readonly secret: string;
}

/** Sends the delivery event of a message to the listener. */
export async function sendConfirmation(
  { url, secret }: EventTarget,
  { id, to }: Pick<LeasedMessage, 'id' | 'to'>,
  now: number,
): Promise<void> {
  const response = await fetch(`${url}/events/postmark`, {
    method: 'POST',
    headers: {
      Authorization: `Basic ${Buffer.from(secret).toString('base64')}`,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({
      RecordType: 'Delivery',
      ServerID: 23,
      MessageStream: 'outbound',
      MessageID: id,
      Recipient: to,
      Tag: '',
      DeliveredAt: new Date(now).toISOString(),
      Details: SMTP_REPLY,
      Metadata: { 'postrider-id': id },
    }),
  });
  await response.arrayBuffer();
}
