/**
 * Reads the legacy webhooks of Mailgun. A body is a form, and the variables of the message are fields of the form. If a
 * variable and a field of the event have the same name, the field of the event comes first in the body. The fields of
 * the signature follow all other fields.
 * https://help.mailgun.com/hc/en-us/articles/14048832145051-Legacy-Webhooks
 */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { MemberResult } from '../batch.ts';
import { createEventReader } from '../event-shape.ts';
import { type Json, parseJson, toList, toText } from '../json.ts';
import { type FormFields, findLastField } from './form.ts';
import { findListReasonByCode, formatReply } from './reply.ts';

const MAX_HEADERS_LENGTH = 256 * 1024;

const readEvent = createEventReader({
  sources: {
    type: ['event'],
    subtypes: [({ event, reason }) => (event === 'dropped' ? reason : null)],
    // The field `Message-Id` has two spellings.
    messageId: [
      MESSAGE_ID_TAG,
      (event) => findHeader(event, 'X-Mailgun-Variables'),
      'Message-Id',
      'message-id',
      (event) => findHeader(event, 'Message-Id'),
    ],
    recipient: ['recipient'],
    at: ['timestamp'],
    status: ['code'],
    diagnostic: [
      ({ code, error, notification, description }) =>
        formatReply(code, toText(error) ?? toText(notification) ?? toText(description)),
    ],
  },
  meanings: {
    delivered: 'delivered',
    bounced: 'hard',
    dropped: ({ code, reason }) => {
      if (findListReasonByCode(code) !== undefined) return 'provider-suppressed';
      return reason === 'hardfail' ? 'hard' : 'soft';
    },
    complained: 'complaint',
    unsubscribed: 'unsubscribed',
    opened: 'ignored',
    clicked: 'ignored',
  },
  listReason: ({ code }) => findListReasonByCode(code),
});

/**
 * Reads the event of a form. If several fields have the same name, the first field applies. Of several `timestamp`
 * fields, the last field applies, because it belongs to the signature.
 */
export function readLegacyEvent(fields: FormFields): MemberResult {
  return readEvent({ ...Object.fromEntries(fields.toReversed()), timestamp: findLastField(fields, 'timestamp') });
}

/**
 * Returns the value of a header field of the message, or undefined. Some events contain the header fields as a JSON
 * array of pairs of name and value.
 */
function findHeader(event: Json, name: string): unknown {
  const headers = toText(event['message-headers']) ?? '';
  const pairs = headers.length > MAX_HEADERS_LENGTH ? [] : toList(parseJson(Buffer.from(headers))).map(toList);
  return pairs.find(([field]) => field === name)?.[1];
}
