/**
 * The schemas of the operation that sends a test message. The file imports no module of Node, because the dashboard
 * imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable } from '../schemas.ts';

const Headers = Type.Array(Type.Object({ name: Type.String(), value: Type.String() }));

export const TestOutcome = Type.Object({
  id: createNullable(
    Type.String({ format: 'uuid', description: 'The id of the accepted message; null if the request was refused.' }),
  ),
  request: Type.Object({
    method: Type.String(),
    url: Type.String({ description: 'The URL of the public listener of this node; `unix:/PATH` for a unix socket.' }),
    headers: Headers,
    body: Type.String({ description: 'The body of the request, as sent.' }),
  }),
  response: Type.Object({
    status: Type.Integer(),
    headers: Headers,
    body: Type.String({ description: 'The body of the response, as received.' }),
    durationMs: Type.Integer({ description: 'The time from the request to the complete response.' }),
  }),
});
export type TestOutcome = Static<typeof TestOutcome>;
