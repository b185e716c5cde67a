/** The setup checklist: the steps from an empty installation to one that sends messages, with their states. */
import type { Static } from 'typebox';
import { readSetupFacts, STEP_CODES } from '../checks/facts.ts';
import { listSteps } from '../checks/list.ts';
import { ok } from './errors.ts';
import { defineOperation, reads } from './operation.ts';
import { Type } from './schemas.ts';

const SetupStep = Type.Object({
  step: Type.Enum(STEP_CODES, 'The step. Codes are stable.'),
  title: Type.String('The step in the imperative, without a full stop.'),
  state: Type.Enum(
    ['done', 'open', 'optional', 'not-needed'],
    '`open`: the setup is not complete without this step. `optional`: the setup is complete without this step. `not-needed`: the step has no effect with the current settings.',
  ),
  detail: Type.String('The fact from which the state follows, in one or two sentences.'),
  action: Type.NullableString('What completes the step; null for a step that is done or not needed.'),
  command: Type.NullableString('A command that completes the step or begins it; null if there is none.'),
  page: Type.NullableString('The page of the dashboard that belongs to the step, such as `/domains`.'),
});
export type SetupStep = Static<typeof SetupStep>;

const Setup = Type.Object({
  isComplete: Type.Boolean('True if no step is open.'),
  openCount: Type.Integer('The number of open steps.'),
  steps: Type.Array(SetupStep, 'All steps, in the recommended order.'),
});
export type Setup = Static<typeof Setup>;

export const showSetup = defineOperation({
  name: 'setup.show',
  id: 'showSetup',
  summary: 'Show the steps to set up the installation, with their states',
  ...reads('viewer'),
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
