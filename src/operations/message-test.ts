/**
 * Sends a test message through the public listener of this node and returns the request and the response, as a client
 * of the account sees them. Every check of the public interface applies: lock, throttle, fields, sender domain, volume
 * and rate limit. A refused request is a result, not an error.
 *
 * The operation creates a temporary key of the account and revokes the key afterwards. Both changes have an audit log
 * entry. If the revocation fails, the key expires after five minutes.
 */
import { generateApiKey } from '../model/credentials.ts';
import { Type } from '../model/schema.ts';
import { describeError } from '../printing/error-line.ts';
import type { OperationContext, PublicListenerContext } from './context.ts';
import { createAccountNotFound, createConflict, createInvalid, createUnavailable, ok } from './errors.ts';
import { TestOutcome } from './messages/test-schemas.ts';
import type { Operation } from './operation.ts';
import { AccountName } from './schemas.ts';

/** The name of the temporary key. */
const KEY_NAME = 'test message';
/** The time after which a temporary key expires if its revocation failed. */
const KEY_LIFETIME_MS = 5 * 60_000;

/**
 * A field of the request. The public listener validates the field, so an absent or empty field causes the error of the
 * public interface.
 */
const createField = (description: string) => Type.Optional(Type.String({ minLength: 0, description }));

const TestInput = Type.Object({
  account: AccountName,
  to: createField('The recipient. A simulator address such as `success@simulator.postrider.test` receives no message.'),
  from: createField('The sender.'),
  subject: createField('The subject.'),
  message: Type.Optional(
    Type.String({ minLength: 0, 'x-multiline': true, description: 'The body of the message: text or HTML.' }),
  ),
  idempotencyKey: createField('The value of the header `Idempotency-Key`. If it is absent, the header is not sent.'),
});

export const sendTestMessage: Operation<
  typeof TestInput,
  typeof TestOutcome,
  Omit<OperationContext, 'warn'> & PublicListenerContext
> = {
  name: 'message.test',
  id: 'sendTestMessage',
  summary: 'Send a test message through the public listener of this node',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: TestInput,
  result: TestOutcome,
  errors: ['not-found', 'conflict'],
  async run({ account, idempotencyKey, ...fields }, { store, clock, random, publicListener, warn }) {
    const url = publicListener.getUrl();
    if (url === null)
      return createConflict(null, 'this node accepts no messages; send the request to a node with the role `api`');
    if (idempotencyKey !== undefined && !isHeaderValue(idempotencyKey))
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
};

/**
 * Returns true if each character is a printable character of ISO 8859-1, as HTTP/1.1 requires (RFC 9110 section 5.5).
 */
function isHeaderValue(text: string): boolean {
  return /^[\x20-\x7e\x80-\xff]*$/.test(text);
}

function readMessageId(body: string): string | null {
  try {
    const { result } = JSON.parse(body) as { readonly result?: { readonly id?: unknown } };
    return typeof result?.id === 'string' ? result.id : null;
  } catch {
    return null;
  }
}
