/** Tokens with which scripts of operators sign in. A token is in the result of the operation that makes it, and nowhere else. */
import type { Static } from 'typebox';
import { isoTime, isoTimeOrNull, parseTimestamp, quote } from '../config/units.ts';
import type { OperatorToken } from '../model/account.ts';
import { newToken } from '../model/credentials.ts';
import { Type } from '../model/schema.ts';
import { conflict, memberResult, notFound, ok } from './errors.ts';
import { parseVisibleText } from './labels.ts';
import { operation } from './operation.ts';
import { nullable, oneOf, rowNumber, Time } from './schemas.ts';

const TokenId = Type.Integer({ description: 'The token’s number.' });

export const TokenEntry = Type.Object({
  id: TokenId,
  name: Type.String(),
  prefix: Type.String({ description: 'The first characters of the token.' }),
  status: oneOf(['works', 'revoked', 'expired']),
  created: Time,
  expires: nullable(Time),
  lastUsed: nullable(Time),
});
export type TokenEntry = Static<typeof TokenEntry>;

/** Makes a token. No other token that works may have its name, which stands in the audit log for what the script changes. */
export const createToken = operation({
  name: 'token.create',
  id: 'createToken',
  summary: 'Make a token for the operator API; it is shown only now',
  changes: true,
  input: Type.Object({
    name: Type.String({ description: 'Its name.' }),
    expires: Type.Optional(Type.String({ description: 'Date (UTC) or `90d`; never unless given.' })),
  }),
  result: Type.Object({
    id: TokenId,
    token: Type.String({ description: 'The token itself. It is not shown again.' }),
    expires: nullable(Time),
  }),
  errors: ['conflict'],
  async run({ name, expires }, { store, clock, random }) {
    const text = parseVisibleText('name', name);
    if (!text.ok) return text;
    const now = clock.now();
    const expiresAt = expires === undefined ? ok(null) : memberResult('expires', parseTimestamp(expires, now, 'ahead'));
    if (!expiresAt.ok) return expiresAt;
    const { token, prefix, hash } = newToken(random);
    const made = await store.createToken({ name, prefix, hash, expiresAt: expiresAt.value }, now);
    if (made.kind !== 'done') {
      const message = `there is a token ${quote(name)} already; revoke it first, or choose another name`;
      return conflict('name', message);
    }
    return ok({ id: made.value.id, token, expires: isoTimeOrNull(expiresAt.value) });
  },
});

/** All tokens, revoked and expired ones too, in the order in which they were made. */
export const listTokens = operation({
  name: 'token.list',
  id: 'listTokens',
  summary: 'List the tokens of scripts',
  changes: false,
  input: Type.Object({}),
  result: Type.Array(TokenEntry),
  errors: [],
  async run(_input, { store, clock }) {
    const tokens = await store.listTokens();
    const now = clock.now();
    return ok(tokens.map((token) => tokenEntry(token, now)));
  },
});

/** Revokes a token for good: no request that begins afterwards is admitted by it. */
export const revokeToken = operation({
  name: 'token.revoke',
  id: 'revokeToken',
  summary: 'Refuse a token from now on',
  changes: true,
  input: Type.Object({
    id: rowNumber('The token’s number.', 'is not the number of a token; `postrider token list` shows them'),
  }),
  result: Type.Object({ id: TokenId, name: Type.String(), revoked: Time }),
  errors: ['not-found'],
  async run({ id }, { store, clock }) {
    const now = clock.now();
    const revoked = await store.revokeToken(id, now);
    if (revoked.kind !== 'done') return notFound('id', `there is no token ${id}; \`postrider token list\` shows them`);
    const { name, revokedAt } = revoked.value;
    return ok({ id, name, revoked: isoTime(revokedAt ?? now) });
  },
});

function statusOf({ revokedAt, expiresAt }: OperatorToken, now: number): TokenEntry['status'] {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'works';
}

function tokenEntry(token: OperatorToken, now: number): TokenEntry {
  const { id, name, prefix, createdAt, expiresAt, lastUsedAt } = token;
  return {
    id,
    name,
    prefix,
    status: statusOf(token, now),
    created: isoTime(createdAt),
    expires: isoTimeOrNull(expiresAt),
    lastUsed: isoTimeOrNull(lastUsedAt),
  };
}
