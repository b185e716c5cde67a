/**
 * The schema of the effective settings in commands and the API. The file imports no module of Node, because the
 * dashboard imports the type.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum } from '../schemas.ts';

export const EffectiveSettings = Type.Array(
  Type.Object({
    name: Type.String({ description: 'The name of the setting, such as `POSTRIDER_LISTEN`.' }),
    value: createNullable(
      Type.String({ description: 'The value, with secrets masked; null if the setting has no value.' }),
    ),
    source: createStringEnum(['default', '.env', 'environment', 'file'], { description: 'The source of the value.' }),
    meaning: Type.String({ description: 'The meaning of the setting, as in docs/configuration.md.' }),
  }),
);
export type EffectiveSettings = Static<typeof EffectiveSettings>;
