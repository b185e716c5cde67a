/** The operation on the settings of the installation. */
import { Type } from '../model/schema.ts';
import { EffectiveSettings } from './config/schemas.ts';
import type { ConfigContext } from './context.ts';
import { ok } from './errors.ts';
import type { Operation } from './operation.ts';

const NO_INPUT = Type.Object({});
/** Lists the effective settings in the order of the documentation. */
export const showConfig: Operation<typeof NO_INPUT, typeof EffectiveSettings, ConfigContext> = {
  name: 'config.show',
  id: 'showConfig',
  summary: 'Show the effective settings, secrets masked',
  makesChange: false,
  role: 'operator',
  readsContent: false,
  input: NO_INPUT,
  result: EffectiveSettings,
  errors: ['conflict'],
  async run(_input, { describeSettings }) {
    return ok(describeSettings().map(({ name, value, source, meaning }) => ({ name, value, source, meaning })));
  },
};
