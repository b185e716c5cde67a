/** The setup checklist: the steps from an empty installation to one that sends messages, with their states. */
import type { Static } from 'typebox';
import { readSetupFacts } from '../checks/facts.ts';
import { STEP_CODES } from '../checks/finding.ts';
import { listSteps } from '../checks/list.ts';
import { Type } from '../model/schema.ts';
import { ok } from './errors.ts';
import { defineOperation } from './operation.ts';
import { createNullable, createStringEnum } from './schemas.ts';

const createText = (description: string) => createNullable(Type.String({ description }));

const SetupStep = Type.Object({
  step: createStringEnum(STEP_CODES, { description: 'The step. Codes are stable.' }),
  title: Type.String({ description: 'The step in the imperative, without a full stop.' }),
  state: createStringEnum(['done', 'open', 'optional', 'not-needed'], {
    description:
      '`open`: the setup is not complete without this step. `optional`: the setup is complete without this step. `not-needed`: the step has no effect with the current settings.',
  }),
  detail: Type.String({ description: 'The fact from which the state follows, in one or two sentences.' }),
  action: createText('What completes the step; null for a step that is done or not needed.'),
  command: createText('A command that completes the step or begins it; null if there is none.'),
  page: createText('The page of the dashboard that belongs to the step, such as `/domains`.'),
});
export type SetupStep = Static<typeof SetupStep>;

const Setup = Type.Object({
  isComplete: Type.Boolean({ description: 'True if no step is open.' }),
  openCount: Type.Integer({ description: 'The number of open steps.' }),
  steps: Type.Array(SetupStep, { description: 'All steps, in the recommended order.' }),
});
export type Setup = Static<typeof Setup>;

export const showSetup = defineOperation({
  name: 'setup.show',
  id: 'showSetup',
  summary: 'Show the steps to set up the installation, with their states',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({}),
  result: Setup,
  errors: [],
  async run(_input, { store, settings, clock, status }) {
    const facts = await readSetupFacts(store, settings, status?.() ?? null, clock.now());
    const steps = listSteps(facts).map(({ code, text, remedy, title, state, command, page }) => ({
      ...{ step: code, title, state, detail: text, action: remedy, command, page },
    }));
    const openCount = steps.filter(({ state }) => state === 'open').length;
    return ok({ isComplete: openCount === 0, openCount, steps });
  },
});
