/** The schemas of captured messages in the operator API. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';
import { CHECK_CODES, CHECK_LEVELS } from './check-texts.ts';

const entryMembers = {
  id: Type.String({ format: 'uuid' }),
  at: Time,
  to: Type.String({ description: 'The recipient of the envelope.' }),
  from: Type.String({ description: 'The From header field, which the recipient sees.' }),
  returnPath: Type.String({ description: 'The sender of the envelope, which receives bounces.' }),
  subject: Type.String({ description: 'The subject; empty if the message has no subject.' }),
};
export const CapturedEntry = Type.Object(entryMembers);
export type CapturedEntry = Static<typeof CapturedEntry>;

export const InboxPage = Type.Object({
  messages: Type.Array(CapturedEntry),
  next: createNullable(
    Type.String({ format: 'uuid', description: '`before` of the next page; null on the last page.' }),
  ),
});
export type InboxPage = Static<typeof InboxPage>;

export const Check = Type.Object({
  code: createStringEnum(CHECK_CODES, { description: 'The code of the check.' }),
  level: createStringEnum(CHECK_LEVELS, {
    description:
      '`error`: a recipient sees a broken message. `warning`: the message has a disadvantage for some recipients, mail clients or filters.',
  }),
  title: Type.String(),
  reason: Type.String(),
  remedy: Type.String(),
  count: Type.Integer({ minimum: 1, description: 'The number of occurrences.' }),
  places: Type.Array(
    Type.Object({
      part: createStringEnum(['subject', 'text', 'html']),
      line: createNullable(
        Type.Integer({ description: 'The line in the decoded part, from 1; null for the subject.' }),
      ),
      excerpt: Type.String({ description: 'The source at this place. Untrusted.' }),
    }),
    { description: 'The first ten occurrences; empty if the finding concerns the whole message.' },
  ),
});
export type Check = Static<typeof Check>;

export const CapturedMessage = Type.Object({
  ...entryMembers,
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), {
    description: 'The header fields in the order of the message, decoded. Untrusted.',
  }),
  text: createNullable(
    Type.String({ description: 'The plain text; null if the message has no plain text. Untrusted.' }),
  ),
  html: Type.Boolean({
    description: 'True if the message has HTML, which `/inbox/{id}/html` returns for display in a frame.',
  }),
  bytes: Type.Integer({ minimum: 0, description: 'The size of the message in bytes.' }),
  htmlBytes: createNullable(
    Type.Integer({ minimum: 0, description: 'The size of the decoded HTML in bytes of UTF-8; null without HTML.' }),
  ),
  checks: Type.Array(Check, {
    description: 'The findings of the checks, errors first. Nothing is fetched for a check.',
  }),
});
export type CapturedMessage = Static<typeof CapturedMessage>;
