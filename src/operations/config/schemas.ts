/** The settings of the installation as commands and API show them. Free of Node, so that the dashboard takes its type from here. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { nullable, oneOf } from '../schemas.ts';

export const EffectiveSettings = Type.Array(
  Type.Object({
    name: Type.String({ description: 'Such as `POSTRIDER_LISTEN`.' }),
    value: nullable(Type.String({ description: 'Secrets masked; null where the setting has no value.' })),
    source: oneOf(['default', '.env', 'environment'], { description: 'Where the value comes from.' }),
  }),
);
export type EffectiveSettings = Static<typeof EffectiveSettings>;
