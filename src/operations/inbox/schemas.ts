/** Captured messages as the operator API answers them. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { nullable, Time } from '../schemas.ts';

const entryMembers = {
  id: Type.String({ format: 'uuid' }),
  at: Time,
  to: Type.String({ description: 'The envelope’s recipient.' }),
  from: Type.String({ description: 'As the From header says: what the recipient sees.' }),
  returnPath: Type.String({ description: 'The envelope’s sender, to which bounces come back.' }),
  subject: Type.String({ description: 'Empty where the message has none.' }),
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
  text: nullable(Type.String({ description: 'Its plain text; null where it has none. Untrusted.' })),
  html: Type.Boolean({ description: 'True where it has HTML, which `/inbox/{id}/html` serves for a frame.' }),
  bytes: Type.Integer({ minimum: 0, description: 'The size of the whole message.' }),
});
export type CapturedMessage = Static<typeof CapturedMessage>;
