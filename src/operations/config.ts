import type { Static } from 'typebox';
import { ok } from './errors.ts';
import { type ConfigContext, defineOperation, reads } from './operation.ts';
import { Type } from './schemas.ts';

export const EffectiveSettings = Type.Array(
  Type.Object({
    name: Type.String('The name of the setting, such as `POSTRIDER_LISTEN`.'),
    value: Type.NullableString('The value, with secrets masked; null if the setting has no value.'),
    source: Type.Enum(['default', '.env', 'environment', 'file'], 'The source of the value.'),
    meaning: Type.String('The meaning of the setting, as in docs/configuration.md.'),
  }),
);
export type EffectiveSettings = Static<typeof EffectiveSettings>;

export const showConfig = defineOperation({
  name: 'config.show',
  id: 'showConfig',
  summary: 'Show the effective settings, secrets masked',
  ...reads('operator'),
  input: Type.Object({}),
  result: EffectiveSettings,
  errors: ['conflict'],
  async run(_input, { describeSettings }: ConfigContext) {
    return ok(describeSettings().map(({ name, value, source, meaning }) => ({ name, value, source, meaning })));
  },
});
