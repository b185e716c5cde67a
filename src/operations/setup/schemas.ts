/**
 * The schema of the setup checklist. The file imports no module of Node, because the dashboard imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum } from '../schemas.ts';

export const SETUP_STEPS = ['first-message', 'provider', 'domain', 'records', 'feedback', 'webhook'] as const;

export const SetupStep = Type.Object({
  step: createStringEnum(SETUP_STEPS, { description: 'The step. Codes are stable.' }),
  title: Type.String({ description: 'The step in the imperative, without a full stop.' }),
  state: createStringEnum(['done', 'open', 'optional', 'not-needed'], {
    description:
      '`open`: the setup is not complete without this step. `optional`: the setup is complete without this step. `not-needed`: the step has no effect with the current settings.',
  }),
  detail: Type.String({ description: 'The fact from which the state follows, in one or two sentences.' }),
  action: createNullable(
    Type.String({ description: 'What completes the step; null for a step that is done or not needed.' }),
  ),
  command: createNullable(
    Type.String({ description: 'A command that completes the step or begins it; null if there is none.' }),
  ),
  page: createNullable(
    Type.String({ description: 'The page of the dashboard that belongs to the step, such as `/domains`.' }),
  ),
});
export type SetupStep = Static<typeof SetupStep>;

export const Setup = Type.Object({
  isComplete: Type.Boolean({ description: 'True if no step is open.' }),
  openCount: Type.Integer({ description: 'The number of open steps.' }),
  steps: Type.Array(SetupStep, { description: 'All steps, in the recommended order.' }),
});
export type Setup = Static<typeof Setup>;
