/**
 * A trial of webhooks with a receiver in the role of an application. The messages of the trial reach every state in
 * which a message can end, while nodes and the receiver are killed with SIGKILL and started again. The result contains
 * every difference between the received events and `message show --json`.
 */

import { expect } from 'vitest';
import { createSeededRandom } from './random.ts';
import {
  compareReceivedWebhooks,
  type ShownMessage,
  type ShownSuppression,
  type TrialDifferences,
} from './trial-comparison.ts';
import { startTrialInstallation, type TrialInstallation } from './trial-installation.ts';
import { createTrialRecipient, decideNextStep, TRIAL_EVENTS, TRIAL_KINDS, type TrialKind } from './trial-plan.ts';

export interface TrialOptions {
  readonly messageCount: number;
  /** The settings of the database. A trial with more than one node needs PostgreSQL. */
  readonly settings: Readonly<Record<string, string>>;
  readonly nodeCount: number;
  readonly nodeKillCount: number;
  readonly receiverKillCount: number;
  readonly seed: number;
  readonly maxAgeMs: number;
  readonly onProgress?: (line: string) => void;
}

export interface TrialResult extends TrialDifferences {
  /** The number of messages in each state. */
  readonly states: Readonly<Record<string, number>>;
  /** The number of received events of each type, without repetitions. */
  readonly types: Readonly<Record<string, number>>;
  /** The number of received requests that repeat an earlier request. */
  readonly repetitionCount: number;
}

const CONCURRENCY = 24;
const IDLE_DELAY_MS = 10;
/** The delay between two steps for the same message. */
const STEP_DELAY_MS = 250;
const PAGE_SIZE = 100;
const ENDPOINT = '/webhooks/wh_1';

interface TrialTask {
  readonly kind: TrialKind;
  readonly recipient: string;
  readonly index: number;
  /** Null until the message is accepted. */
  id: string | null;
  acceptedAt: number;
  nextStepAt: number;
}

/** Runs the trial. Only a test may call this function. The processes are stopped at the end of the test. */
export async function runWebhookTrial(options: TrialOptions): Promise<TrialResult> {
  const { messageCount, settings, nodeCount, maxAgeMs, onProgress = () => undefined } = options;
  const installation = await startTrialInstallation(nodeCount, settings, maxAgeMs);
  const tasks = Array.from({ length: messageCount }, (_, index): TrialTask => {
    const kind = TRIAL_KINDS[index % TRIAL_KINDS.length] ?? 'delivered';
    return { kind, recipient: createTrialRecipient(kind, index), index, id: null, acceptedAt: 0, nextStepAt: 0 };
  });
  let stepCount = 0;
  let hasEnded = false;
  const killPromise = killProcesses(installation, options, () => ({ steps: stepCount, isOver: hasEnded }));
  await runTasks(tasks, async (task) => {
    const isSubmitted = task.id !== null;
    const isDone = await executeStep(installation, task, maxAgeMs);
    stepCount += isDone || !isSubmitted ? 1 : 0;
    return isDone;
  });
  onProgress(`all messages reached their expected states after ${stepCount} steps`);
  hasEnded = true;
  await killPromise;
  const shownMessages = await showMessages(installation, tasks);
  const suppressions = await installation.runJson<ShownSuppression[]>('suppression', 'list', 'default');
  await waitForWebhooks(installation, shownMessages, suppressions, onProgress);
  const receivedWebhooks = installation.readReceived();
  const webhooksById = new Map(receivedWebhooks.map((webhook) => [webhook.id, webhook]));
  return {
    ...compareReceivedWebhooks(receivedWebhooks, shownMessages, suppressions),
    states: countBy([...shownMessages.values()].map(({ state }) => state)),
    types: countBy([...webhooksById.values()].map(({ body }) => (JSON.parse(body) as { type: string }).type)),
    repetitionCount: receivedWebhooks.length - webhooksById.size,
  };
}

/** Calls `advanceTask` for each task until the call resolves to true. Several calls run concurrently. */
async function runTasks(
  tasks: readonly TrialTask[],
  advanceTask: (task: TrialTask) => Promise<boolean>,
): Promise<void> {
  const queue = [...tasks];
  let unfinishedCount = queue.length;
  const runWorker = async () => {
    while (unfinishedCount > 0) {
      const task = queue.shift();
      if (task === undefined || task.nextStepAt > Date.now()) {
        if (task !== undefined) queue.push(task);
        await new Promise((resolve) => setTimeout(resolve, IDLE_DELAY_MS));
        continue;
      }
      if (await advanceTask(task)) unfinishedCount -= 1;
      else queue.push(task);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, runWorker));
}

/**
 * Submits the message of a task, or performs the next step of the message. Resolves to true if the message has reached
 * the expected state of its kind.
 */
async function executeStep(installation: TrialInstallation, task: TrialTask, maxAgeMs: number): Promise<boolean> {
  const { kind, recipient, index } = task;
  if (task.id === null) {
    task.id = await installation.submit(recipient, `trial-${index}`);
    task.acceptedAt = Date.now();
    return false;
  }
  const { id } = task;
  const shownMessage = await installation.call<ShownMessage>('GET', `/messages/${id}`);
  const step = decideNextStep(kind, { ...shownMessage, ageMs: Date.now() - task.acceptedAt }, maxAgeMs);
  task.nextStepAt = Date.now() + STEP_DELAY_MS;
  switch (step.kind) {
    case 'done':
      return true;
    case 'wait':
      return false;
    case 'retry':
    case 'cancel':
      // The response is 409 if the state of the message has changed since the GET request.
      await installation.call('POST', `/messages/${id}/${step.kind}`, [200, 409]);
      return false;
    case 'report':
      await installation.sendReport(recipient);
      return false;
    case 'events':
      for (const event of step.events) {
        await installation.sendEvent(TRIAL_EVENTS[event], { id, recipient });
        // For every seventh message, the provider sends each event twice.
        if (index % 7 === 0) await installation.sendEvent(TRIAL_EVENTS[event], { id, recipient });
      }
      return false;
  }
}

/**
 * Kills nodes and the receiver. The seed alone determines the order and the number of steps before each kill. A killed
 * node is started again immediately, and a killed receiver after at most 10 further steps.
 */
async function killProcesses(
  installation: TrialInstallation,
  { messageCount, nodeKillCount, receiverKillCount, seed, onProgress = () => undefined }: TrialOptions,
  getProgress: () => { readonly steps: number; readonly isOver: boolean },
): Promise<void> {
  const random = createSeededRandom(seed);
  const killTargets = [
    ...Array.from({ length: nodeKillCount }, () => Math.floor(random() * installation.nodeCount)),
    ...Array.from({ length: receiverKillCount }, () => null),
  ];
  const plan = killTargets
    .map((target) => ({
      target,
      atStep: Math.floor(random() * 2 * messageCount * 0.95),
      downSteps: Math.ceil(random() * 10),
    }))
    .sort((a, b) => a.atStep - b.atStep);
  const waitForStep = async (step: number) => {
    while (getProgress().steps < step && !getProgress().isOver)
      await new Promise((resolve) => setTimeout(resolve, IDLE_DELAY_MS));
  };
  for (const { target, atStep, downSteps } of plan) {
    await waitForStep(atStep);
    onProgress(`step ${getProgress().steps}: kill ${target === null ? 'the receiver' : `node ${target}`}`);
    if (target === null) {
      await installation.killReceiver();
      await waitForStep(getProgress().steps + downSteps);
      await installation.startReceiver();
    } else {
      await installation.killNode(target);
      await installation.startNode(target);
    }
  }
}

async function showMessages(
  installation: TrialInstallation,
  tasks: readonly TrialTask[],
): Promise<ReadonlyMap<string, ShownMessage>> {
  const shownMessages = new Map<string, ShownMessage>();
  await runTasks(
    [...tasks].map((task) => ({ ...task, nextStepAt: 0 })),
    async ({ id }) => {
      if (id !== null) shownMessages.set(id, await installation.call<ShownMessage>('GET', `/messages/${id}`));
      return true;
    },
  );
  return shownMessages;
}

/**
 * Waits until every expected event is received and no delivery is pending. Deliveries that failed while the receiver
 * was down are replayed, as an operator does after a failure of the receiver.
 */
async function waitForWebhooks(
  installation: TrialInstallation,
  shownMessages: ReadonlyMap<string, ShownMessage>,
  suppressions: readonly ShownSuppression[],
  onProgress: (line: string) => void,
): Promise<void> {
  const listMissingWebhooks = async () => {
    const { missingEvents } = compareReceivedWebhooks(installation.readReceived(), shownMessages, suppressions);
    const undeliveredIds = missingEvents.length > 0 ? [] : await listUndelivered(installation);
    onProgress(`${missingEvents.length} events are missing, ${undeliveredIds.length} deliveries have not succeeded`);
    if (missingEvents.length > 0) await installation.call('POST', `${ENDPOINT}/replay`);
    return [...missingEvents, ...undeliveredIds].slice(0, 10);
  };
  await expect.poll(listMissingWebhooks, { timeout: 120_000, interval: 1_000 }).toEqual([]);
}

/** Resolves to the ids of the deliveries that have not succeeded. */
async function listUndelivered(installation: TrialInstallation): Promise<string[]> {
  const undeliveredIds: string[] = [];
  for (let cursor = ''; ; ) {
    const page = await installation.call<{ readonly id: string; readonly status: string }[]>(
      'GET',
      `${ENDPOINT}/deliveries?limit=${PAGE_SIZE}${cursor}`,
    );
    undeliveredIds.push(...page.filter(({ status }) => status !== 'delivered').map(({ id }) => id));
    const lastDelivery = page.at(-1);
    if (lastDelivery === undefined || page.length < PAGE_SIZE) return undeliveredIds;
    cursor = `&before=${lastDelivery.id}`;
  }
}

function countBy(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
