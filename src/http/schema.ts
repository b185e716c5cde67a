/**
 * Defines the TypeBox schemas of the request and response bodies. The types and the OpenAPI document are derived from
 * them. A test checks that the schemas agree with `validateSubmission`. Rules that JSON Schema cannot express are only
 * in `validateSubmission`.
 */
import type { Static } from 'typebox';
import { Type } from '../model/schema.ts';

export const MailRequest = Type.Object(
  {
    to: Type.String({
      minLength: 1,
      maxLength: 254,
      format: 'email',
      description: 'Recipient email address: one bare address without a display name.',
    }),
    from: Type.String({
      minLength: 1,
      maxLength: 254,
      format: 'email',
      description: 'Sender email address. Its domain must be authenticated for the account.',
    }),
    subject: Type.String({
      minLength: 1,
      maxLength: 998,
      description: 'Subject line: at most 998 bytes in UTF-8, without line breaks.',
    }),
    message: Type.String({
      minLength: 1,
      description:
        'Message body. It is sent as HTML if it begins with `<!doctype html` or `<html`, and otherwise as plain text.',
    }),
  },
  {
    description:
      'One message. Unknown members are ignored. A response with status 201 lists them in Postrider-Ignored-Fields.',
  },
);
export type MailRequest = Static<typeof MailRequest>;

export const MailCreated = Type.Object(
  {
    result: Type.Object(
      { id: Type.String({ format: 'uuid', description: 'Unique identifier of the mail request.' }) },
      { additionalProperties: false },
    ),
  },
  {
    additionalProperties: false,
    description: 'The mail request is stored durably and will end in exactly one terminal state.',
  },
);
export type MailCreated = Static<typeof MailCreated>;

export const ErrorResponse = Type.Object(
  {
    result: Type.Literal('error'),
    message: Type.String({ description: 'Error message for humans.' }),
  },
  { additionalProperties: false, description: 'The body of every error response.' },
);
export type ErrorResponse = Static<typeof ErrorResponse>;

export const HealthResponse = Type.Object(
  { result: Type.Literal('ok'), message: Type.String() },
  { additionalProperties: false, description: 'The result of a health check.' },
);
export type HealthResponse = Static<typeof HealthResponse>;
