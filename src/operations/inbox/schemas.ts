/** The schemas of captured messages in the operator API. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { nullable, Time } from '../schemas.ts';

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
  next: nullable(Type.String({ format: 'uuid', description: '`before` of the next page; null on the last.' })),
});
export type InboxPage = Static<typeof InboxPage>;

export const CapturedMessage = Type.Object({
  ...entryMembers,
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), {
    description: 'The header fields in their order, decoded. Untrusted.',
  }),
  text: nullable(Type.String({ description: 'The plain text; null if the message has no plain text. Untrusted.' })),
  html: Type.Boolean({ description: 'True if the message has HTML, which `/inbox/{id}/html` serves for a frame.' }),
  bytes: Type.Integer({ minimum: 0, description: 'The size of the message in bytes.' }),
});
export type CapturedMessage = Static<typeof CapturedMessage>;
