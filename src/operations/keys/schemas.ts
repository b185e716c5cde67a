/**
 * The schemas of the results of the operations on API keys. The file imports no module of Node, because the dashboard
 * imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

export const KeyId = Type.String({ description: 'The id of the key, such as `key_12`.' });
const NewKey = Type.String({ description: 'The key. It is not shown again.' });

const KeyPrefix = Type.String({ description: 'The first characters of the key.' });

export const KeyEntry = Type.Object({
  id: KeyId,
  account: Type.String(),
  name: Type.String(),
  prefix: KeyPrefix,
  state: createStringEnum(['active', 'expired', 'revoked']),
  created: Time,
  expires: createNullable(Time),
  revoked: createNullable(Time),
  lastUsed: createNullable(Time),
});
export type KeyEntry = Static<typeof KeyEntry>;

/** A new key. */
export const CreatedKey = Type.Object({ id: KeyId, key: NewKey, expires: createNullable(Time) });
export type CreatedKey = Static<typeof CreatedKey>;

/** An imported key. */
export const ImportedKey = Type.Object({ id: KeyId, prefix: KeyPrefix, expires: createNullable(Time) });

/** A new key that replaces another key. The replaced key remains valid until `until`. */
export const RotatedKey = Type.Object({ id: KeyId, key: NewKey, replaces: KeyId, until: Time });
export type RotatedKey = Static<typeof RotatedKey>;
