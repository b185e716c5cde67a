/**
 * The request and response bodies as TypeBox schemas, from which the types and the OpenAPI document are derived. A test checks that the
 * schemas and `validateSubmission` agree. Rules that JSON Schema cannot express are in `validateSubmission` only.
 */
import type { Static } from 'typebox';
import { Type } from '../model/schema.ts';

export const MailRequest = Type.Object(
  {
    to: Type.String({
      minLength: 1,
      maxLength: 254,
      format: 'email',
      description: 'Recipient email address: one bare address, no display name.',
    }),
    from: Type.String({
      minLength: 1,
      maxLength: 254,
      format: 'email',
      description: 'Sender email address; its domain must be authenticated for the account.',
    }),
    subject: Type.String({
      minLength: 1,
      maxLength: 998,
      description: 'Subject line: no line breaks, at most 998 bytes in UTF-8.',
    }),
    message: Type.String({
      minLength: 1,
      description: 'Message body. Sent as HTML when it begins with `<!doctype html` or `<html`, else as plain text.',
    }),
  },
  { description: 'One message. Unknown members are ignored; a 201 names them in Postrider-Ignored-Fields.' },
);
export type MailRequest = Static<typeof MailRequest>;

export const MailCreated = Type.Object(
  {
    result: Type.Object(
      { id: Type.String({ format: 'uuid', description: 'Unique identifier of the mail request.' }) },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false, description: 'The mail request is stored and will be sent.' },
);
export type MailCreated = Static<typeof MailCreated>;

export const ErrorResponse = Type.Object(
  {
    result: Type.Literal('error'),
    message: Type.String({ description: 'Human-readable error message.' }),
  },
  { additionalProperties: false, description: 'Every answer that is no success.' },
);
export type ErrorResponse = Static<typeof ErrorResponse>;

export const HealthResponse = Type.Object(
  { result: Type.Literal('ok'), message: Type.String() },
  { additionalProperties: false, description: 'A health report.' },
);
export type HealthResponse = Static<typeof HealthResponse>;
