/** The schema of the raw source of a message. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createStringEnum } from '../schemas.ts';

const SIGNATURES = ['none', 'same-keys', 'other-keys'] as const;

export const MessageSource = Type.Object({
  id: Type.String({ format: 'uuid' }),
  source: Type.String({
    description: 'The message with its header fields, or only the header fields, with CRLF line ends.',
  }),
  bytes: Type.Integer({ minimum: 0, description: 'The size of the whole message in bytes.' }),
  signature: createStringEnum(SIGNATURES, {
    description:
      'The DKIM signatures of the source. `none`: the source is not signed, because no key signs for the domain of the sender now. `same-keys`: no key was activated after the last attempt. `other-keys`: a key was activated after the last attempt, so the signatures differ from the transmitted ones.',
  }),
  replacedFields: Type.Array(Type.String(), {
    description:
      'The header fields, in lower case, that the provider of the transport replaces after the transmission.',
  }),
});

export type MessageSource = Static<typeof MessageSource>;
