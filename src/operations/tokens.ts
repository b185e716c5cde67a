/** The operations on the tokens of the operator API. Only the operation that creates a token returns the token. */
import type { Static } from 'typebox';
import { formatIsoTime, formatIsoTimeOrNull, parseTimestamp, quote } from '../config/units.ts';
import { TOKEN_SCOPES } from '../model/access.ts';
import type { OperatorToken } from '../model/account.ts';
import { generateToken, getTokenScope } from '../model/credentials.ts';
import { Type } from '../model/schema.ts';
import { createConflict, createNotFound, ok, toMemberResult } from './errors.ts';
import { parseVisibleText } from './input.ts';
import { defineOperation } from './operation.ts';
import { createNullable, createRowNumber, createStringEnum, Time } from './schemas.ts';

const TokenId = Type.Integer({ description: 'The number of the token.' });

export const TokenEntry = Type.Object({
  id: TokenId,
  name: Type.String(),
  prefix: Type.String({ description: 'The first characters of the token.' }),
  status: createStringEnum(['works', 'revoked', 'expired']),
  scope: createStringEnum(TOKEN_SCOPES),
  created: Time,
  expires: createNullable(Time),
  lastUsed: createNullable(Time),
});
export type TokenEntry = Static<typeof TokenEntry>;

/** A new token. */
export const CreatedToken = Type.Object({
  id: TokenId,
  token: Type.String({ description: 'The token. It is not shown again.' }),
  expires: createNullable(Time),
});
export type CreatedToken = Static<typeof CreatedToken>;

export const RevokedToken = Type.Object({ id: TokenId, name: Type.String(), revoked: Time });
export type RevokedToken = Static<typeof RevokedToken>;

/**
 * Creates a token. The name of the token is the actor in the audit log, so the names of unrevoked tokens are unique.
 */
export const createToken = defineOperation({
  name: 'token.create',
  id: 'createToken',
  summary: 'Create a token for the operator API; it is shown once',
  makesChange: true,
  role: 'admin',
  readsContent: false,
  input: Type.Object({
    name: Type.String({ description: 'The name of the token.' }),
    scope: createStringEnum(TOKEN_SCOPES, {
      default: 'full',
      description:
        '`metrics`: `/metrics` alone; `read`: everything except content; `content`: also bodies, sources, reports and exports; `full`: also changes, except tokens.',
    }),
    expires: Type.Optional(
      Type.String({ description: 'A date (UTC) or a duration such as `90d`; without it the token does not expire.' }),
    ),
  }),
  result: CreatedToken,
  errors: ['conflict'],
  async run({ name, scope, expires }, { store, clock, random }) {
    const nameResult = parseVisibleText('name', name);
    if (!nameResult.ok) return nameResult;
    const now = clock.now();
    const expiresAt =
      expires === undefined ? ok(null) : toMemberResult('expires', parseTimestamp(expires, now, 'ahead'));
    if (!expiresAt.ok) return expiresAt;
    const { token, prefix, hash } = generateToken(random, scope);
    const createResult = await store.createToken({ name, prefix, hash, expiresAt: expiresAt.value }, now);
    if (createResult.kind !== 'done') {
      const message = `token ${quote(name)} already exists; revoke it first, or choose another name`;
      return createConflict('name', message);
    }
    return ok({ id: createResult.value.id, token, expires: formatIsoTimeOrNull(expiresAt.value) });
  },
});

/** Lists all tokens in order of creation, including revoked and expired tokens. */
export const listTokens = defineOperation({
  name: 'token.list',
  id: 'listTokens',
  summary: 'List the tokens of the operator API',
  makesChange: false,
  role: 'admin',
  readsContent: false,
  input: Type.Object({}),
  result: Type.Array(TokenEntry),
  errors: [],
  async run(_input, { store, clock }) {
    const tokens = await store.listTokens();
    const now = clock.now();
    return ok(tokens.map((token) => toTokenEntry(token, now)));
  },
});

/** Revokes a token permanently: the token authenticates no later request. */
export const revokeToken = defineOperation({
  name: 'token.revoke',
  id: 'revokeToken',
  summary: 'Revoke a token',
  makesChange: true,
  role: 'admin',
  readsContent: false,
  input: Type.Object({
    id: createRowNumber(
      'The number of the token.',
      'is not the number of a token; `postrider token list` lists tokens',
    ),
  }),
  result: RevokedToken,
  errors: ['not-found'],
  async run({ id }, { store, clock }) {
    const now = clock.now();
    const revokeResult = await store.revokeToken(id, now);
    if (revokeResult.kind !== 'done')
      return createNotFound('id', `there is no token ${id}; \`postrider token list\` lists tokens`);
    const { name, revokedAt } = revokeResult.value;
    return ok({ id, name, revoked: formatIsoTime(revokedAt ?? now) });
  },
});

function getTokenStatus({ revokedAt, expiresAt }: OperatorToken, now: number): TokenEntry['status'] {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'works';
}

function toTokenEntry(token: OperatorToken, now: number): TokenEntry {
  const { id, name, prefix, createdAt, expiresAt, lastUsedAt } = token;
  return {
    id,
    name,
    prefix,
    status: getTokenStatus(token, now),
    scope: getTokenScope(prefix),
    created: formatIsoTime(createdAt),
    expires: formatIsoTimeOrNull(expiresAt),
    lastUsed: formatIsoTimeOrNull(lastUsedAt),
  };
}
