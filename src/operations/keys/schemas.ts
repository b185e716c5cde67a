/** What the operations on API keys answer with. Free of Node, so that the dashboard takes its types from here. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { nullable, oneOf, Time } from '../schemas.ts';

export const KeyId = Type.String({ description: 'The key’s id, such as `key_12`.' });
const NewKey = Type.String({ description: 'The key itself. It is not shown again.' });

export const KeyEntry = Type.Object({
  id: KeyId,
  account: Type.String(),
  name: Type.String(),
  prefix: Type.String({ description: 'The first characters of the key.' }),
  state: oneOf(['active', 'expired', 'revoked']),
  created: Time,
  expires: nullable(Time),
  revoked: nullable(Time),
  lastUsed: nullable(Time),
});
export type KeyEntry = Static<typeof KeyEntry>;

/** A key that was just made. */
export const CreatedKey = Type.Object({ id: KeyId, key: NewKey, expires: nullable(Time) });
export type CreatedKey = Static<typeof CreatedKey>;

/** A key that was just made in place of another one, which works until `until`. */
export const RotatedKey = Type.Object({ id: KeyId, key: NewKey, replaces: KeyId, until: Time });
export type RotatedKey = Static<typeof RotatedKey>;
