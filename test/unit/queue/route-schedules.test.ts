import { expect, test } from 'vitest';
import { TERMINAL_STATES } from '../../../src/model/message.ts';
import { createDeferral, createLocalReply, type Outcome } from '../../../src/model/outcome.ts';
import { parsePolicy, type RoutePause, type Routing } from '../../../src/model/route.ts';
import { isRouteFailure } from '../../../src/queue/route-health.ts';
import { SENDER_REFUSAL_MS } from '../../../src/queue/routes.ts';
import { createMessage } from '../../rig/messages.ts';
import { createSeededRandom } from '../../rig/random.ts';
import { createRoutedQueue } from '../../rig/routed-queue.ts';
import { selectCaseCount } from '../../rig/sample.ts';

// Random schedules of failures, pauses, policies, caps and holds. Each is determined by its seed.

const SCHEDULE_COUNT = selectCaseCount(10, 10_000);
const CHAOS_SECONDS = 180;
const MAX_AGE_MS = 420_000;
const MIN_RETRY_MS = 50_000;
/** A message that a hold has stopped is owed an attempt, also after its maximum age and a refusal of its sender. */
const MAX_RECOVERY_SECONDS = (SENDER_REFUSAL_MS + MAX_AGE_MS) / 1_000 + 200;
const ENDED_STATES: ReadonlySet<string> = TERMINAL_STATES;

const reply = (code: number, text: string) => ({ stage: 'rcpt', code, enhanced: null, text }) as const;
const OUTCOMES = {
  delivered: { kind: 'delivered', reply: reply(250, 'ok') },
  'route fault': createDeferral('connect', 'refused', 'connection', 'route'),
  quota: createDeferral('content', 'over the quota', 'quota', 'route'),
  'sender refusal': createDeferral('mail', 'not verified', 'sender-refused', 'sender'),
  throttled: createDeferral('mail', 'slow down', 'throttled', 'route'),
  'message 4xx': createDeferral('content', 'later', 'greylisted', 'message'),
  'recipient 4xx': createDeferral('rcpt', 'full', 'mailbox-full', 'recipient'),
  'message 5xx': { kind: 'bounced', reply: reply(550, 'no'), reason: 'content', suppress: false },
  unanswered: { kind: 'unanswered', reply: createLocalReply('content', 'lost') },
} satisfies Readonly<Record<string, Outcome>>;
type OutcomeName = keyof typeof OUTCOMES;
const OUTCOME_NAMES = Object.keys(OUTCOMES) as OutcomeName[];
const MESSAGE_OUTCOMES = ['delivered', 'message 4xx', 'recipient 4xx', 'message 5xx'] as const;

async function runSchedule(seed: number): Promise<readonly string[]> {
  const random = createSeededRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const routeNames = random() < 0.5 ? ['default', 'b'] : ['default', 'b', 'c'];
  const policies = [
    'default,b',
    'b,default',
    'default:3,b:1',
    'default:1,b:1',
    'b',
    ...(routeNames.includes('c') ? ['c:2,b:1,default', 'c,b', 'b:5,c:3,default:1'] : []),
  ];
  const isCalm = random() < 0.25;
  const hasKill = !isCalm && random() < 0.2;
  const nodeCount = hasKill || random() < 0.6 ? 1 : 2;
  let daily = !isCalm && nodeCount === 1 && random() < 0.3 ? 3 + Math.floor(random() * 10) : null;
  const concurrency = 1 + Math.floor(random() * 4);
  const faults: string[] = [];
  /** What each route does to most messages; null: each time something else. */
  const modes = new Map<string, OutcomeName | null>(routeNames.map((route) => [route, 'delivered']));
  const poisonedIds = new Set<string>();
  const heldIds = new Set<string>();
  const handovers = new Map<string, OutcomeName[]>();
  const underWay = new Map<string, string>();
  const moves = new Map<string, number>();
  const firstChoices = new Map<string, Map<string, number>>();
  let pauses: readonly RoutePause[] = [];
  let list = pick(policies);
  const daysUse = new Map<string, number>();

  const queue = createRoutedQueue({
    routes: routeNames,
    concurrency,
    maxAgeMs: MAX_AGE_MS,
    random,
    limits: (route) => ({ daily: route === 'b' ? daily : null, rampMs: null }),
    isHeld: ({ id }) => heldIds.has(id),
    probe: async (route) => (modes.get(route) === 'route fault' ? OUTCOMES['route fault'] : null),
    async respond({ node, route, message: { id } }) {
      const attempt = `${id} on ${route}`;
      if (pauses.some((pause) => pause.route === route)) faults.push(`${attempt}: an attempt while paused`);
      if (underWay.has(id)) faults.push(`${attempt}: a second attempt at the same time as ${underWay.get(id)}`);
      if (heldIds.has(id)) faults.push(`${attempt}: an attempt while held`);
      const before = handovers.get(id) ?? [];
      if (before.includes('delivered')) {
        if (!before.includes('unanswered')) faults.push(`${attempt}: handed over twice`);
      }
      underWay.set(id, attempt);
      const waitMs = Math.floor(random() * (random() < 0.05 ? 20_000 : 800));
      await new Promise<void>((resolve) => queue.clock.after(waitMs, resolve));
      if (!queue.nodes.some(({ name }) => name === node)) return OUTCOMES.delivered;
      const mode = isCalm ? pick(MESSAGE_OUTCOMES) : poisonedIds.has(id) ? 'route fault' : modes.get(route);
      const name = mode ?? pick(OUTCOME_NAMES);
      underWay.delete(id);
      handovers.set(id, [...before, name]);
      if (name === 'delivered') daysUse.set(route, (daysUse.get(route) ?? 0) + 1);
      return OUTCOMES[name];
    },
    onChoose(node, message, route) {
      if (!isCalm || (message.route ?? null) !== null || route === null) return;
      const key = `${node} ${message.accountId}`;
      const counts = firstChoices.get(key) ?? new Map<string, number>();
      counts.set(route, (counts.get(route) ?? 0) + 1);
      firstChoices.set(key, counts);
      checkShares(key, counts);
    },
    onSettle({ id, refundAttempt, changes: [change] }, message) {
      const outcome = change?.event.attempt?.outcome;
      if (change === undefined || outcome === undefined) return;
      const mayMove = outcome.kind === 'deferred' && (isRouteFailure(outcome) || outcome.scope === 'sender');
      const isMoved = change.event.detail?.includes('moves to the route') ?? false;
      if (isMoved !== refundAttempt) faults.push(`${id}: moved ${isMoved}, refunded ${refundAttempt}`);
      if (isMoved && !mayMove) faults.push(`${id}: moved for ${JSON.stringify(outcome)}`);
      if (isMoved && change.dueAt !== change.event.at) faults.push(`${id}: moved, and not due at once`);
      if (change.to === 'queued' && !isMoved) {
        const waitMs = (change.dueAt ?? 0) - change.event.at;
        const isLast = (change.dueAt ?? 0) >= (message?.acceptedAt ?? 0) + MAX_AGE_MS;
        if (waitMs < MIN_RETRY_MS && !isLast) faults.push(`${id}: due in ${waitMs} ms without a move`);
      }
      const moveCount = isMoved ? (moves.get(id) ?? 0) + 1 : 0;
      moves.set(id, moveCount);
      if (moveCount > routeNames.length * nodeCount * 2) faults.push(`${id}: moved ${moveCount} times without a step`);
    },
  });

  function checkShares(key: string, counts: ReadonlyMap<string, number>): void {
    const parsed = parsePolicy(list, routeNames);
    const members = parsed.ok ? (parsed.policy[0] ?? []) : [];
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const totalWeight = members.reduce((sum, { weight }) => sum + weight, 0);
    for (const { route, weight } of members)
      if (Math.abs((counts.get(route) ?? 0) - (total * weight) / totalWeight) >= 1)
        faults.push(`${key}: ${route} got ${counts.get(route)} of ${total} with ${list}`);
  }

  const applyRouting = () => {
    const routing: Routing = { policies: [{ accountId: null, domain: null, list }], pauses, firstUses: [] };
    queue.applyRouting(routing);
  };
  for (let n = 0; n < nodeCount; n += 1) queue.addNode(`node-${n}`);
  applyRouting();
  let submittedCount = 0;
  let killCount = 0;

  function changeSomething(): void {
    const route = pick(routeNames);
    const roll = random();
    if (roll < 0.35) modes.set(route, random() < 0.35 ? 'delivered' : pick([...OUTCOME_NAMES, null]));
    else if (roll < 0.5) {
      pauses = pauses.some((pause) => pause.route === route)
        ? pauses.filter((pause) => pause.route !== route)
        : [...pauses, { route, at: queue.clock.now(), until: null, reason: null }];
      applyRouting();
    } else if (roll < 0.6) {
      list = pick(policies);
      applyRouting();
    } else if (roll < 0.7) for (const id of handovers.keys()) if (random() < 0.1 && !underWay.has(id)) heldIds.add(id);
    if (roll > 0.9) heldIds.clear();
    if (hasKill && killCount < 3 && roll > 0.95) {
      killCount += 1;
      queue.nodes[0]?.kill();
      // What was under way may have been accepted, and is recovered.
      for (const id of underWay.keys()) handovers.set(id, [...(handovers.get(id) ?? []), 'unanswered']);
      underWay.clear();
      void queue.recover(`node-k${killCount}`);
      queue.addNode(`node-k${killCount}`);
      applyRouting();
    }
  }

  function submitSome(): void {
    const count = random() < 0.2 ? Math.floor(random() * 14) : 0;
    for (let n = 0; n < count; n += 1) {
      const from = random() < 0.5 ? 'shop@example.org' : 'shop@other.example';
      const message = createMessage({ acceptedAt: queue.clock.now(), accountId: random() < 0.5 ? 1 : 2, from });
      submittedCount += 1;
      if (!isCalm && random() < 0.05) poisonedIds.add(message.id);
      void queue.submit(message);
    }
  }

  let callsBefore = 0;
  async function advanceSecond(): Promise<void> {
    await queue.clock.advance(1_000);
    for (const { routes } of queue.nodes) routes.takeUnstoredUse();
    const { claim, release, park, unpark } = queue.calls;
    const count = claim + release + park + unpark;
    if (count - callsBefore > 30 * nodeCount + 4 * submittedCount)
      faults.push(`${count - callsBefore} calls in a second`);
    callsBefore = count;
  }

  for (let second = 0; second < CHAOS_SECONDS; second += 1) {
    submitSome();
    if (!isCalm && random() < 0.15) changeSomething();
    await advanceSecond();
  }
  heldIds.clear();
  poisonedIds.clear();
  pauses = [];
  for (const route of routeNames) modes.set(route, 'delivered');
  applyRouting();
  if (daily !== null && killCount === 0 && (daysUse.get('b') ?? 0) > daily)
    faults.push(`b got ${daysUse.get('b')} of ${daily}`);
  daily = null;
  const listUnended = () => [...queue.readStates()].filter(([, state]) => !ENDED_STATES.has(state));
  for (let second = 0; second < MAX_RECOVERY_SECONDS && listUnended().length > 0; second += 1) {
    await advanceSecond();
    if (second % 5 === 0) await queue.expire();
  }
  for (const [id, state] of listUnended()) faults.push(`${id} is ${state} at the end`);
  await queue.clock.advance(1_000);
  for (const { name, dispatcher } of queue.nodes)
    if (dispatcher.listLeasedMessageIds().length > 0 || dispatcher.inFlightCount > 0) faults.push(`${name} has leases`);
  await queue.close();
  return [...faults, ...queue.failures];
}

test('in random schedules of failures, pauses, policies, caps and holds, every message ends, none is handed over twice without an unanswered attempt, and nothing spins', {
  timeout: 6 * 3_600_000,
}, async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= SCHEDULE_COUNT && failed.length < 5; seed += 1)
    failed.push(...(await runSchedule(seed)).slice(0, 3).map((fault) => `seed ${seed}: ${fault}`));
  expect(failed).toEqual([]);
});
