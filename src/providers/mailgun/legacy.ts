/**
 * Reads the legacy webhooks of Mailgun. A body is a form, and the variables of the message are fields of the form. If a
 * variable has the name of a field of the event, the field of the event comes first. The fields of the signature come
 * last.
 * https://help.mailgun.com/hc/en-us/articles/14048832145051-Legacy-Webhooks
 */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import { createFact, type Diagnosis, type EventMeaning, type ProviderEvent, type ProviderFact } from '../event.ts';
import { messageIdOfHeader, messageIdOfMetadata, parseJson, rowOf, timeOfUnixSeconds, toList } from '../json.ts';
import { type FormFields, firstOf, lastOf } from './form.ts';
import { formatReply, listReasonOfCode } from './reply.ts';

/** The meaning of each `event` other than `dropped`. */
const EVENT_TYPES: Readonly<Record<string, EventMeaning>> = {
  delivered: 'delivered',
  bounced: 'hard',
  complained: 'complaint',
  unsubscribed: 'unsubscribed',
  opened: 'ignored',
  clicked: 'ignored',
};

const MAX_HEADERS_LENGTH = 256 * 1024;

/** Returns the event of a form, `ignored` if Postrider ignores the event, or null if the form contains no event. */
export function readLegacyEvent(fields: FormFields, token: string): ProviderEvent | 'ignored' | null {
  const type = firstOf(fields, 'event');
  if (type === null || type === '') return null;
  const fact = factOf(type, fields);
  if (fact === null) return 'ignored';
  const reason = type === 'dropped' ? firstOf(fields, 'reason') : null;
  return {
    type: reason === null ? type : `${type}/${reason}`,
    key: token,
    messageId: messageIdOf(fields),
    reference: null,
    recipient: firstOf(fields, 'recipient'),
    at: timeOfUnixSeconds(lastOf(fields, 'timestamp')),
    fact,
  };
}

function factOf(type: string, fields: FormFields): ProviderFact | null {
  const diagnosis = diagnosisOf(fields);
  if (type !== 'dropped') return createFact(rowOf(EVENT_TYPES, type) ?? 'ignored', diagnosis);
  const listReason = listReasonOfCode(firstOf(fields, 'code'));
  if (listReason !== null) return createFact('provider-suppressed', diagnosis, listReason);
  return createFact(firstOf(fields, 'reason') === 'hardfail' ? 'hard' : 'soft', diagnosis);
}

function diagnosisOf(fields: FormFields): Diagnosis {
  const [code, error] = [firstOf(fields, 'code'), firstOf(fields, 'error')];
  const text = error ?? firstOf(fields, 'notification') ?? firstOf(fields, 'description');
  return { status: code, diagnostic: formatReply(code, text), host: null };
}

/**
 * Returns the message id, or null. The field `Message-Id` has two spellings. Some events contain the header fields of
 * the message as a JSON array of pairs of name and value.
 */
function messageIdOf(fields: FormFields): string | null {
  const ofVariable = messageIdOfMetadata({ [MESSAGE_ID_TAG]: firstOf(fields, MESSAGE_ID_TAG) });
  if (ofVariable !== null) return ofVariable;
  const headers = firstOf(fields, 'message-headers') ?? '';
  const pairs = headers.length > MAX_HEADERS_LENGTH ? [] : toList(parseJson(Buffer.from(headers))).map(toList);
  const variables = pairs.find(([name]) => name === 'X-Mailgun-Variables')?.[1];
  return (
    messageIdOfMetadata(variables) ??
    messageIdOfHeader(firstOf(fields, 'Message-Id')) ??
    messageIdOfHeader(firstOf(fields, 'message-id')) ??
    messageIdOfHeader(pairs.find(([name]) => name === 'Message-Id')?.[1])
  );
}
