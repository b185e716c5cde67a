/** Sends a test message through the public listener of this node. A refused request is a result, not an error. */
import type { Static } from 'typebox';
import { generateApiKey } from '../model/credentials.ts';
import { describeError } from '../printing/escape.ts';
import { createAccountNotFound, createConflict, createInvalid, createUnavailable, ok } from './errors.ts';
import { changes, defineOperation, type OperationContext, type PublicListenerContext } from './operation.ts';
import { AccountName, Type } from './schemas.ts';

const Headers = Type.Array(Type.Object({ name: Type.String(), value: Type.String() }));

export const TestOutcome = Type.Object({
  id: Type.NullableUuid('The id of the accepted message; null if the request was refused.'),
  request: Type.Object({
    method: Type.String(),
    url: Type.String('The URL of the public listener of this node; `unix:/PATH` for a unix socket.'),
    headers: Headers,
    body: Type.String('The body of the request, as sent.'),
  }),
  response: Type.Object({
    status: Type.Integer(),
    headers: Headers,
    body: Type.String('The body of the response, as received.'),
    durationMs: Type.Integer('The time from the request to the complete response.'),
  }),
});
export type TestOutcome = Static<typeof TestOutcome>;

const KEY_NAME = 'test message';
/** A temporary key expires after this time if its revocation failed. */
const KEY_LIFETIME_MS = 5 * 60_000;

/** The public listener validates the field, so an absent or empty field causes its error. */
const createField = (description: string) => Type.Optional(Type.String({ minLength: 0, description }));

export const sendTestMessage = defineOperation({
  name: 'message.test',
  id: 'sendTestMessage',
  summary: 'Send a test message through the public listener of this node',
  ...changes('operator'),
  input: Type.Object({
    account: AccountName,
    to: createField(
      'The recipient. A simulator address such as `success@simulator.postrider.test` receives no message.',
    ),
    from: createField('The sender.'),
    subject: createField('The subject.'),
    message: Type.Optional(
      Type.String({ minLength: 0, 'x-multiline': true, description: 'The body of the message: text or HTML.' }),
    ),
    idempotencyKey: createField('The value of the header `Idempotency-Key`. If it is absent, the header is not sent.'),
  }),
  result: TestOutcome,
  errors: ['not-found', 'conflict'],
  async run(
    { account, idempotencyKey, ...fields },
    { store, clock, random, publicListener, warn }: OperationContext & PublicListenerContext,
  ) {
    const url = publicListener.getUrl();
    if (url === null)
      return createConflict(null, 'this node accepts no messages; send the request to a node with the role `api`');
    // HTTP/1.1 permits the printable characters of ISO 8859-1 (RFC 9110 section 5.5).
    if (idempotencyKey !== undefined && !/^[\x20-\x7e\x80-\xff]*$/.test(idempotencyKey))
      return createInvalid(
        'idempotencyKey',
        'contains a character that a header cannot contain; a key has 1 to 255 visible ASCII characters',
      );
    const createdAt = clock.now();
    const { key, prefix, hash } = generateApiKey(random);
    const newKey = { name: KEY_NAME, prefix, hash, expiresAt: createdAt + KEY_LIFETIME_MS };
    const createResult = await store.createKey(account, newKey, createdAt);
    if (createResult.kind === 'missing') return createAccountNotFound(account);
    if (createResult.kind === 'exists')
      return createUnavailable('the generated key already exists; send the request again');
    const headers = [
      { name: 'Content-Type', value: 'application/json' },
      ...(idempotencyKey === undefined ? [] : [{ name: 'Idempotency-Key', value: idempotencyKey }]),
    ];
    const body = JSON.stringify(fields);
    const sentAt = clock.now();
    try {
      const response = await publicListener.post([{ name: 'Authorization', value: key }, ...headers], body);
      return ok({
        id: response.status === 201 ? readMessageId(response.body) : null,
        request: { method: 'POST', url, headers: [{ name: 'Authorization', value: `${prefix}…` }, ...headers], body },
        response: { ...response, headers: [...response.headers], durationMs: Math.max(0, clock.now() - sentAt) },
      });
    } catch (error) {
      return createUnavailable(
        `the public listener at ${url} did not answer (${describeError(error)}); the message may have been accepted`,
      );
    } finally {
      await store.revokeKey(createResult.value.id, clock.now()).catch(() => {
        warn('key-not-revoked', `the temporary key ${prefix}… was not revoked; it expires in five minutes`);
      });
    }
  },
});

function readMessageId(body: string): string | null {
  try {
    const { result } = JSON.parse(body) as { readonly result?: { readonly id?: unknown } };
    return typeof result?.id === 'string' ? result.id : null;
  } catch {
    return null;
  }
}
