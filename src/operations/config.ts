/** The settings of the installation. */
import { Type } from 'typebox';
import type { ConfigContext } from './context.ts';
import { ok } from './errors.ts';
import type { Operation } from './operation.ts';
import { nullable, oneOf } from './schemas.ts';

const NOTHING = Type.Object({});
const EffectiveSettings = Type.Array(
  Type.Object({
    name: Type.String({ description: 'Such as `POSTRIDER_LISTEN`.' }),
    value: nullable(Type.String({ description: 'Secrets masked; null where the setting has no value.' })),
    source: oneOf(['default', '.env', 'environment'], { description: 'Where the value comes from.' }),
  }),
);

/** The effective settings in the order of the documentation. */
export const showConfig: Operation<typeof NOTHING, typeof EffectiveSettings, ConfigContext> = {
  name: 'config.show',
  id: 'showConfig',
  summary: 'Print the effective settings, secrets masked',
  changes: false,
  input: NOTHING,
  result: EffectiveSettings,
  errors: ['conflict'],
  async run(_input, { describeSettings }) {
    return ok(describeSettings().map(({ name, value, source }) => ({ name, value, source })));
  },
};
