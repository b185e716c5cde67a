/** The operations on the tokens of the operator API. Only the operation that creates a token returns the token. */
import type { Static } from 'typebox';
import { quote } from '../config/units.ts';
import type { OperatorToken } from '../model/account.ts';
import { TOKEN_SCOPES } from '../model/audit.ts';
import { generateToken, getTokenScope } from '../model/credentials.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import { createConflict, createNotFound, ok } from './errors.ts';
import { changes, defineOperation, reads } from './operation.ts';
import { createExpiry, createParsed, createRowNumber, parseVisibleText, Time, Type } from './schemas.ts';

const TokenId = Type.Integer('The number of the token.');

export const TokenEntry = Type.Object({
  id: TokenId,
  name: Type.String(),
  prefix: Type.String('The first characters of the token.'),
  status: Type.Enum(['works', 'revoked', 'expired']),
  scope: Type.Enum(TOKEN_SCOPES),
  created: Time,
  expires: Type.Nullable(Time),
  lastUsed: Type.Nullable(Time),
});
export type TokenEntry = Static<typeof TokenEntry>;

export const CreatedToken = Type.Object({
  id: TokenId,
  token: Type.String('The token. It is not shown again.'),
  expires: Type.Nullable(Time),
});
export type CreatedToken = Static<typeof CreatedToken>;

export const RevokedToken = Type.Object({ id: TokenId, name: Type.String(), revoked: Time });
export type RevokedToken = Static<typeof RevokedToken>;

/** The name of the token is the actor in the audit log, so the names of unrevoked tokens are unique. */
export const createToken = defineOperation({
  name: 'token.create',
  id: 'createToken',
  summary: 'Create a token for the operator API; it is shown once',
  ...changes('admin'),
  input: Type.Object({
    name: createParsed('The name of the token.', (text) => parseVisibleText(text)),
    scope: Type.Enum(TOKEN_SCOPES, {
      default: 'full',
      description:
        '`metrics`: `/metrics` alone; `read`: everything except content; `content`: also bodies, sources, reports and exports; `full`: also changes, except tokens.',
    }),
    expires: createExpiry('token'),
  }),
  result: CreatedToken,
  errors: ['conflict'],
  async run({ name, scope, expires: expiresAt = null }, { store, clock, random }) {
    const { token, prefix, hash } = generateToken(random, scope);
    const createResult = await store.createToken({ name, prefix, hash, expiresAt }, clock.now());
    if (createResult.kind !== 'done') {
      const message = `token ${quote(name)} already exists; revoke it first, or choose another name`;
      return createConflict('name', message);
    }
    return ok({ id: createResult.value.id, token, expires: formatIsoTimeOrNull(expiresAt) });
  },
});

export const listTokens = defineOperation({
  name: 'token.list',
  id: 'listTokens',
  summary: 'List the tokens of the operator API',
  ...reads('admin'),
  input: Type.Object({}),
  result: Type.Array(TokenEntry),
  async run(_input, { store, clock }) {
    const tokens = await store.listTokens();
    const now = clock.now();
    return ok(tokens.map((token) => toTokenEntry(token, now)));
  },
});

export const revokeToken = defineOperation({
  name: 'token.revoke',
  id: 'revokeToken',
  summary: 'Revoke a token',
  ...changes('admin'),
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
