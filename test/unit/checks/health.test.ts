import { expect, test } from 'vitest';
import type { Facts } from '../../../src/checks/facts.ts';
import { listAttention, listHealth } from '../../../src/checks/list.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { getAttentionKey } from '../../../src/model/attention.ts';
import type { AlarmReason } from '../../../src/model/events.ts';
import type { Hold } from '../../../src/model/hold.ts';
import type { RuntimeStatus } from '../../../src/model/node.ts';
import { NO_ROUTING, type RouteStatus } from '../../../src/model/route.ts';
import { trackRuntimeStatus } from '../../../src/wiring/observability.ts';
import { createAttempt, createRouteStatus } from '../../rig/messages.ts';

const NOW = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;
const RUNTIME_STATUS: RuntimeStatus = {
  node: 'a',
  version: '1.2.3',
  storeFault: null,
  refusedReports: [],
  delivery: { routes: [createRouteStatus()], alarms: [] },
};

function createInput(environment: Record<string, string>, changes: Partial<Facts> = {}): Facts {
  return {
    now: NOW,
    settings: loadSettings(environment, null),
    status: RUNTIME_STATUS,
    recentSteps: [],
    queue: { queued: 0, sending: 0, uncertain: 0, held: 0, oldest: null },
    store: {
      everAccepted: true,
      nextDueAt: null,
      accounts: [],
      keys: [],
      domains: { all: 1, authenticated: 1, problems: [] },
      oldestEndAgeMs: null,
      notUnderstoodCount: 0,
      disabledWebhooks: [],
    },
    nodes: [],
    holds: [],
    routing: NO_ROUTING,
    senders: null,
    lastFeedbackAt: null,
    notificationDomain: null,
    ...changes,
  };
}
const RELAY_SETTINGS = { POSTRIDER_TRANSPORT: 'smtp://user:secret@relay.example:587?tls=required' };
const SHARED_DATABASE_SETTINGS = { ...RELAY_SETTINGS, POSTRIDER_DATABASE: 'postgres://u:p@db.example/mail' };
const getHealth = (input: Facts, part: string) => listHealth(input).find((item) => item.code === part);
const createNode = (name: string, aliveUntil: number, roles = ['api', 'deliver']) => ({
  name,
  roles,
  version: '1.2.3',
  startedAt: NOW - HOUR_MS,
  seenAt: aliveUntil - 15_000,
  aliveUntil,
  isAlive: aliveUntil > NOW,
  delivery: null,
  refusedReports: [],
});

test('a healthy service has no problem to report and shows no password', () => {
  expect(listAttention(createInput(RELAY_SETTINGS))).toEqual([]);
  expect(JSON.stringify(listHealth(createInput(RELAY_SETTINGS)))).not.toContain('secret');
  expect(listHealth(createInput(RELAY_SETTINGS)).map(({ code, level }) => [code, level])).toEqual([
    ['database', 'ok'],
    ['transport', 'ok'],
    ['domains', 'ok'],
    ['nodes', 'ok'],
  ]);
});

test('a store that does not commit and a failed route are reported first', () => {
  const failedRoute = createRouteStatus({ state: 'failed', retryAt: NOW + 60_000 });
  const input = createInput(RELAY_SETTINGS, {
    status: {
      ...RUNTIME_STATUS,
      storeFault: 'the store cannot commit',
      delivery: { routes: [failedRoute], alarms: [] },
    },
    queue: {
      queued: 1,
      sending: 0,
      uncertain: 2,
      held: 0,
      oldest: { id: 'oldest-message', acceptedAt: NOW - 2 * HOUR_MS },
    },
  });
  expect(getHealth(input, 'database')).toMatchObject({ level: 'failure' });
  expect(getHealth(input, 'transport')?.text).toBe(
    'smtp://relay.example:587: default has failed, next probe in 1 min; messages wait',
  );
  expect(listAttention(input).map(({ level, page }) => [level, page])).toEqual([
    ['failure', null],
    ['failure', '/routes'],
    ['warning', '/messages?state=uncertain'],
    ['warning', '/messages/oldest-message'],
  ]);
});

test('a hold without an end is reported after a day, until its release', () => {
  const hold: Hold = {
    ...{ id: 7, accountId: null, from: null, to: null, mailboxProvider: null, reason: 'incident', by: 'cli:ada' },
    ...{ until: null, createdAt: NOW - 24 * HOUR_MS, releasedAt: null },
  };
  const listCodes = (changes: Partial<Hold>) =>
    listAttention(createInput({}, { holds: [{ ...hold, ...changes }] })).map(({ code, subject }) => [code, subject]);
  expect(listCodes({})).toEqual([['hold-without-end', '7']]);
  for (const changes of [{ createdAt: NOW - HOUR_MS }, { until: NOW + HOUR_MS }, { releasedAt: NOW }])
    expect(listCodes(changes)).toEqual([]);
});

test('messages that are an hour late for their purge are reported', () => {
  const listCodes = (lateMs: number) => {
    const input = createInput({});
    const oldestEndAgeMs = input.settings.keepHistoryMs + lateMs;
    return listAttention({ ...input, store: { ...input.store, oldestEndAgeMs } }).map(({ code }) => code);
  };
  expect([listCodes(HOUR_MS), listCodes(HOUR_MS + 1)]).toEqual([[], ['purge-late']]);
});

test('alarms are reported for one hour, one per reason, with the last reply text of the next hop', () => {
  const status = trackRuntimeStatus();
  const createAlarm = (reason: AlarmReason, text: string, at: number) => {
    const reply = { stage: 'auth', code: null, enhanced: null, text } as const;
    const attempt = createAttempt({ kind: 'deferred', reply, reason, scope: 'route' });
    const event = { at, id: 'm', accountId: 1, to: 'ada@example.com', attempts: 1, attempt, reason } as const;
    status.handlers['attempt.alarm_raised']?.({ type: 'attempt.alarm_raised', ...event });
  };
  createAlarm('configuration', 'first', NOW - 2_000);
  createAlarm('configuration', '535 bad credentials', NOW - 1_000);
  createAlarm('reputation', '550 blocked', NOW - HOUR_MS);
  const input = createInput(RELAY_SETTINGS, {
    status: { ...RUNTIME_STATUS, delivery: { routes: [createRouteStatus()], alarms: status.readAlarms(NOW) } },
  });
  expect(getHealth(input, 'transport')).toMatchObject({ level: 'warning' });
  expect(listAttention(input)).toMatchObject([
    {
      level: 'failure',
      text: 'The next hop rejects this service (configuration), last failure 1 s ago: 535 bad credentials',
    },
  ]);
});

test('a route that failed on several live nodes is listed as one item, and so are their alarms of one reason', () => {
  const failedRoute = createRouteStatus({ state: 'failed', retryAt: NOW });
  const createAlarm = (lastAt: number) => ({ reason: 'configuration', text: `535 at ${lastAt}`, lastAt });
  const createDelivery = (lastAt: number) => ({ routes: [failedRoute], alarms: [createAlarm(lastAt)] });
  const nodes = [
    { ...createNode('a', NOW + 1), delivery: createDelivery(NOW - 9) },
    { ...createNode('b', NOW + 1), delivery: createDelivery(NOW - 1_000) },
    { ...createNode('c', NOW + 1), delivery: createDelivery(NOW - 2_000) },
    { ...createNode('dead', NOW), delivery: createDelivery(NOW) },
  ];
  // The current status of this node, which is node a, replaces its stored status.
  expect(listAttention(createInput(SHARED_DATABASE_SETTINGS, { nodes })).slice(0, 2)).toMatchObject([
    { code: 'next-hop-refusal', subject: 'configuration', text: expect.stringContaining(`535 at ${NOW - 1_000}`) },
    {
      ...{ code: 'route-failed', subject: 'default', level: 'warning' },
      text: expect.stringContaining(
        'failed on 2 of 3 nodes (smtp://relay.example:587): mail goes on over the other nodes',
      ),
    },
  ]);
});

test('in a command too, a failed route is shown with the failing host and its reply, and not with an older refusal', () => {
  const lastFailure = { text: 'connection: relay.example:587 421 4.3.2 shutting down', at: NOW - 3_000 };
  const alarms = [
    { reason: 'configuration', text: '535 bad credentials', lastAt: NOW - 1_800_000 },
    { reason: 'signing', text: 'no key', lastAt: NOW - 1_800_000 },
  ];
  const delivery = { routes: [createRouteStatus({ state: 'failed', retryAt: NOW + 2_000, lastFailure })], alarms };
  const nodes = [{ ...createNode('a', NOW + 1), delivery }];
  const input = createInput(RELAY_SETTINGS, { status: null, nodes });
  expect(getHealth(input, 'transport')).toMatchObject({ level: 'failure', text: expect.stringContaining('in 2 s') });
  expect(listAttention(input).map(({ code, text }) => [code, text])).toEqual([
    [
      'route-failed',
      `The route default has failed (smtp://relay.example:587): messages wait; last failure 3 s ago: ${lastFailure.text}`,
    ],
    ['signing-failed', expect.any(String)],
  ]);
  expect(getHealth({ ...input, nodes: [] }, 'transport')?.text).toContain('no running node that delivers');
});

test('a signing failure is reported with its cause, and not as a fault of the next hop', () => {
  const status = trackRuntimeStatus();
  const error = new Error('the DKIM key cannot be opened');
  status.handlers['message.signing_failed']?.({ type: 'message.signing_failed', at: NOW - 2_000, error });
  const input = createInput(RELAY_SETTINGS, {
    status: { ...RUNTIME_STATUS, delivery: { routes: [createRouteStatus()], alarms: status.readAlarms(NOW) } },
  });
  expect(listAttention(input)).toMatchObject([
    {
      level: 'failure',
      text: 'Messages cannot be signed, last failure 2 s ago: the DKIM key cannot be opened',
      page: '/domains',
    },
  ]);
  expect(getHealth(input, 'transport')).toMatchObject({ level: 'ok' });
});

test('nodes past the liveness timeout are reported, and so is a cluster in which no node delivers', () => {
  const input = createInput(SHARED_DATABASE_SETTINGS, {
    nodes: [createNode('a', NOW + 9_000, ['api']), createNode('b', NOW - 60_000)],
  });
  expect(getHealth(input, 'nodes')).toMatchObject({
    level: 'failure',
    text: '1 alive, version 1.2.3; no node delivers; 1 missed the liveness timeout within the last hour',
  });
  expect(listAttention(input)).toMatchObject([
    { level: 'failure', text: 'No node delivers' },
    { level: 'warning', text: 'Node b sent its last heartbeat 1 min 15 s ago' },
  ]);
});

test('an endpoint that the service disabled is listed with the cause, the consequence and the remedy', () => {
  const members = {
    sealedUrl: 'sealed-url',
    accountId: null,
    account: null,
    name: null,
    events: [],
    previousSecretUntil: null,
    createdAt: 0,
    failingSince: 0,
    lastSuccessAt: null,
  };
  const webhook = { id: 7, url: 'https://hooks.example.com/********', ...members };
  const disabledWebhooks = [{ ...webhook, disabled: { reason: 'gone', at: NOW } }] as const;
  const store = { ...createInput(RELAY_SETTINGS).store, disabledWebhooks };
  const items = listAttention(createInput(RELAY_SETTINGS, { store }));
  expect(items).toMatchObject([
    { level: 'failure', remedy: expect.stringContaining('`postrider webhook enable wh_7`') },
  ]);
  // Only the start and the end of an item cause a notification, so the text of the item must not change in between.
  expect(listAttention({ ...createInput(RELAY_SETTINGS, { store }), now: NOW + HOUR_MS })).toEqual(items);
});

const TWO_ROUTES = { ...RELAY_SETTINGS, POSTRIDER_ROUTE_BACKUP: 'smtp://backup.example:587' };

test('with a usable route left the health says that mail goes on, and without one that messages wait', () => {
  const failed = createRouteStatus({ state: 'failed', retryAt: NOW + 60_000 });
  const backup = createRouteStatus({ name: 'backup' });
  const read = (...routes: RouteStatus[]) => {
    const input = createInput(TWO_ROUTES, { status: { ...RUNTIME_STATUS, delivery: { routes, alarms: [] } } });
    const { level, text } = listHealth(input).find(({ code }) => code === 'transport') ?? {};
    return [level, text, ...listAttention(input).map((item) => `${item.level} ${getAttentionKey(item)}`)];
  };
  expect(read(failed, backup)).toEqual([
    'warning',
    '2 routes: default has failed, next probe in 1 min; mail goes on over backup',
    'warning route-failed:default',
  ]);
  expect(read(failed, { ...backup, state: 'probing' })).toEqual([
    'failure',
    '2 routes: default has failed, next probe in 1 min; backup is being probed; messages wait',
    'failure route-failed:default',
    'failure route-failed:backup',
  ]);
});

test('a refused sender, a paused policy, a bad file and a route that never accepted a domain are problems', () => {
  const refusal = { domain: 'example.org', text: '553 not verified', until: NOW + HOUR_MS };
  const ended = { ...refusal, domain: 'old.example', until: NOW };
  const backup = createRouteStatus({
    name: 'backup',
    refusedSenders: [refusal, ended],
    fileFault: 'the port is no number',
  });
  const standing = { route: 'backup', domain: 'a.example', acceptedAt: NOW, refusedAt: null, refusal: null };
  const input = createInput(TWO_ROUTES, {
    status: { ...RUNTIME_STATUS, delivery: { routes: [createRouteStatus(), backup], alarms: [] } },
    routing: {
      policies: [{ accountId: 1, domain: null, list: 'backup' }],
      pauses: [{ route: 'backup', at: NOW, until: null, reason: 'maintenance' }],
      firstUses: [],
    },
    senders: {
      accountNames: new Map([[1, 'shop']]),
      domains: [
        { name: 'a.example', accountId: 2 },
        { name: 'b.example', accountId: 2 },
        { name: 'c.example', accountId: 1 },
      ],
      standings: [standing, { ...standing, domain: 'b.example', acceptedAt: null, refusedAt: NOW }],
    },
  });
  expect(listAttention(input).map((item) => [item.level, getAttentionKey(item), item.text])).toEqual([
    ['failure', 'routes-paused:shop', 'Every route of the policy of shop is paused, so its messages wait: backup'],
    [
      'warning',
      'route-unusable-for-domain:example.org',
      'The route backup refuses the sender domain example.org: 553 not verified',
    ],
    [
      'warning',
      'route-file-invalid:backup',
      'The route backup goes on with the former content of its file: the port is no number',
    ],
    ['warning', 'route-unproven:backup', 'The route backup has never accepted a message from b.example'],
  ]);
  const pauses = [{ route: 'default', at: NOW, until: NOW + HOUR_MS, reason: null }];
  const alone = createInput(RELAY_SETTINGS, { routing: { ...NO_ROUTING, pauses } });
  expect(listAttention(alone).map(getAttentionKey)).toEqual(['routes-paused']);
});
