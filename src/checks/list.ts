import { accounts, queue } from './accounts.ts';
import { database, nodes } from './database.ts';
import { domains } from './domains.ts';
import { type Check, type Facts, type Health, type Problem, type SetupFacts, STEP_CODES, type Step } from './facts.ts';
import { feedback } from './feedback.ts';
import { notifications, webhooks } from './outbound.ts';
import { routes } from './routes.ts';
import { transport } from './transport.ts';

/** In the order in which problems and components are shown. */
const CHECKS: readonly Check[] = [
  database,
  routes,
  transport,
  { problems: nodes.problems },
  queue,
  domains,
  accounts,
  feedback,
  notifications,
  webhooks,
  { health: nodes.health },
];

/** Lists the problems that need the attention of an operator, failures first. */
export function listAttention(facts: Facts): readonly Problem[] {
  const problems = CHECKS.flatMap((check) => check.problems?.(facts) ?? []);
  return [
    ...problems.filter(({ level }) => level === 'failure'),
    ...problems.filter(({ level }) => level === 'warning'),
  ];
}

/** Lists the state of each component. In a command, a text may say that only the running service knows the state. */
export function listHealth(facts: Facts): readonly Health[] {
  return CHECKS.flatMap((check) => check.health?.(facts) ?? []);
}

/** Lists the steps from an empty installation to one that sends messages, in the recommended order. */
export function listSteps(facts: SetupFacts): readonly Step[] {
  const steps = CHECKS.flatMap((check) => check.steps?.(facts) ?? []);
  return STEP_CODES.flatMap((code) => steps.filter((step) => step.code === code));
}
