/**
 * The schemas of tokens in commands and the API. The file imports no module of Node, because the dashboard imports the
 * types.
 */
import type { Static } from 'typebox';
import { TOKEN_SCOPES } from '../../model/access.ts';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

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
