/**
 * Runs the benchmarks of the project. Both values of a ratio are measured in the same run with the same load generator.
 *
 *   npm run bench                    everything; a few minutes
 *   npm run bench -- accept relay    only these parts
 *
 * Prints a table and writes bench/results.json, which keeps the previous figures of the parts that did not run. A
 * figure that misses its target does not change the exit code.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { createKeys } from '../src/domains/keys.ts';
import { createRecords } from '../src/domains/records.ts';
import { deriveKey, loadOrCreateSecret } from '../src/domains/secret.ts';
import { openStore } from '../src/store/open.ts';
import { benchClaims, benchHeldClaims } from './claims.ts';
import { benchDashboard } from './dashboard.ts';
import { startEventBench } from './events.ts';
import { runHostile } from './hostile.ts';
import { calculateMedian } from './median.ts';
import { benchNodes } from './nodes.ts';
import { benchPooler } from './pooler.ts';
import { isPostfixInstalled, startPostfix } from './postfix.ts';
import {
  type BenchService,
  createBenchFolder,
  readFirstLine,
  removeFolder,
  runCommand,
  startPostrider,
} from './postrider.ts';
import { startScript, withSink } from './script.ts';
import { benchSearch } from './search.ts';
import { seedStore } from './seed.ts';
import { benchWebhooks } from './webhooks.ts';

const MESSAGE_BYTES = 2048;
const SEEDED_COUNT = 1_000_000;
const POSTFIX_PORT = 2599;
const CLOSED_PORT = 1;
const BENCH_PARTS = [
  'accept',
  'relay',
  'routes',
  'signed',
  'latency',
  'growth',
  'claims',
  'idle',
  'nodes',
  'search',
  'dashboard',
  'hostile',
  'events',
  'ses',
  'pooler',
  'webhooks',
] as const;
type BenchPart = (typeof BENCH_PARTS)[number];

interface LoadResult {
  readonly statuses: Record<string, number>;
  /** The start time of the load in milliseconds since the epoch. */
  readonly startedAt: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

interface Figure {
  readonly measure: string;
  readonly value: number;
  readonly unit: string;
  /** The target, or null if the figure has no target. */
  readonly target: string | null;
}

/** The start time of a load in milliseconds since the epoch, measured after the start of the generator process. */
type StartedLoad = Pick<LoadResult, 'startedAt'>;

const figures: Figure[] = [];

function recordFigure(measure: string, value: number, unit: string, target: string | null = null): void {
  figures.push({ measure, value: Number(value.toFixed(3)), unit, target });
  console.log(
    `${measure.padEnd(64)} ${value.toFixed(value < 100 ? 2 : 0).padStart(10)} ${unit.padEnd(10)} ${target === null ? '' : `(target: ${target})`}`,
  );
}

async function runLoad(
  port: number,
  key: string,
  connectionCount: number,
  requestCount: number,
  requestsPerSecond: number | null = null,
): Promise<LoadResult> {
  const generator = startScript(
    'load.ts',
    JSON.stringify({
      port,
      key,
      connectionCount,
      requestCount,
      messageBytes: MESSAGE_BYTES,
      requestsPerSecond,
    }),
  );
  const result = JSON.parse(await readFirstLine(generator)) as LoadResult;
  const createdCount = result.statuses['201'] ?? 0;
  if (createdCount !== requestCount)
    throw new Error(`expected ${requestCount} responses with status 201: ${JSON.stringify(result.statuses)}`);
  return result;
}

const LIMIT_FLAGS = ['--volume', '1000000000', '--rate', '1000000000/1h', '--throttle', '1000000/s'];

async function setLimits(service: BenchService): Promise<BenchService> {
  await runCommand(service.folder, {}, 'account', 'set', 'default', ...LIMIT_FLAGS);
  return service;
}

async function stopAndRemove(service: BenchService): Promise<void> {
  await service.stop();
  removeFolder(service.folder);
}

/**
 * Returns the median of the ratios of several rounds. Each round measures both values of its ratio, so a change of the
 * speed of the machine affects both values.
 */
async function calculateMedianRatio(count: number, measureRatio: () => Promise<number>): Promise<number> {
  const ratios: number[] = [];
  for (let n = 0; n < count; n += 1) ratios.push(await measureRatio());
  return calculateMedian(ratios);
}

/**
 * Resolves to the number of seconds from the first request of `startLoad` until the sink has received `count` more
 * messages.
 */
async function measureSecondsUntilReceived(
  readReceivedCount: () => Promise<number>,
  count: number,
  startLoad: () => Promise<StartedLoad>,
): Promise<number> {
  const targetCount = (await readReceivedCount()) + count;
  const loadResult = startLoad();
  while ((await readReceivedCount()) < targetCount) await new Promise((resolve) => setTimeout(resolve, 20));
  const endedAt = performance.timeOrigin + performance.now();
  return (endedAt - (await loadResult).startedAt) / 1000;
}

async function benchAccept(): Promise<void> {
  const bareServer = startScript('bare.ts');
  const { port } = JSON.parse(await readFirstLine(bareServer)) as { port: number };
  const service = await setLimits(await startPostrider({ POSTRIDER_ROLES: 'api' }));
  await runLoad(port, 'none', 64, 10_000);
  await runLoad(service.port, service.key, 64, 10_000);
  for (const connections of [64, 256]) {
    const lastRound = { barePerSecond: 0, acceptPerSecond: 0, cpuUs: 0 };
    const ratio = await calculateMedianRatio(3, async () => {
      const bareResult = await runLoad(port, 'none', connections, 40_000);
      const cpuBeforeMs = service.readCpuMs();
      const acceptResult = await runLoad(service.port, service.key, connections, 40_000);
      lastRound.barePerSecond = bareResult.perSecond;
      lastRound.acceptPerSecond = acceptResult.perSecond;
      lastRound.cpuUs = ((service.readCpuMs() - cpuBeforeMs) * 1000) / 40_000;
      return acceptResult.perSecond / bareResult.perSecond;
    });
    recordFigure(`bare Fastify, ${connections} connections (last round)`, lastRound.barePerSecond, '/s');
    recordFigure(`durable accept, ${connections} connections (last round)`, lastRound.acceptPerSecond, '/s');
    recordFigure(`processor time of one durable accept`, lastRound.cpuUs, 'µs');
    recordFigure(
      `durable accept relative to bare Fastify, ${connections} connections`,
      ratio,
      'ratio',
      connections === 256 ? '0.6' : null,
    );
  }
  bareServer.stdin?.end();
  if (isPostfixInstalled()) {
    await withSink(async (sinkPort, readReceivedCount) => {
      const postfix = startPostfix(sinkPort, POSTFIX_PORT);
      try {
        // Waits until Postfix has relayed all messages, so that Postfix is idle while Postrider is measured.
        const measureAcknowledgedRate = async (count: number) => {
          let rate = 0;
          await measureSecondsUntilReceived(readReceivedCount, count, async () => {
            const startedAt = Date.now();
            rate = postfix.measureAcknowledgedRate(count, 64, MESSAGE_BYTES);
            return { startedAt };
          });
          return rate;
        };
        await measureAcknowledgedRate(1_000);
        let rate = 0;
        const ratio = await calculateMedianRatio(3, async () => {
          rate = await measureAcknowledgedRate(4_000);
          return (await runLoad(service.port, service.key, 256, 30_000)).perSecond / rate;
        });
        recordFigure('Postfix, acknowledged to smtp-source (last round)', rate, '/s');
        recordFigure('durable accept relative to Postfix', ratio, 'ratio', '12');
      } finally {
        postfix.stop();
      }
    });
  }
  await stopAndRemove(service);
}

async function benchRelay(): Promise<void> {
  await withSink(async (sinkPort, readReceivedCount) => {
    const service = await setLimits(await startPostrider({ POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinkPort}` }));
    const deliver = (count: number) =>
      measureSecondsUntilReceived(readReceivedCount, count, () => runLoad(service.port, service.key, 64, count));
    await deliver(5_000);
    if (!isPostfixInstalled()) {
      recordFigure('end to end, relay, 10,000 messages', 10_000 / (await deliver(10_000)), '/s');
      return stopAndRemove(service);
    }
    const postfix = startPostfix(sinkPort, POSTFIX_PORT);
    const deliverWithPostfix = (count: number) =>
      measureSecondsUntilReceived(readReceivedCount, count, async () => {
        const startedAt = Date.now();
        postfix.measureAcknowledgedRate(count, 64, MESSAGE_BYTES);
        return { startedAt };
      });
    try {
      await deliverWithPostfix(1_000);
      let [postriderRate, baselineRate] = [0, 0];
      const ratio = await calculateMedianRatio(3, async () => {
        baselineRate = 10_000 / (await deliverWithPostfix(10_000));
        postriderRate = 10_000 / (await deliver(10_000));
        return postriderRate / baselineRate;
      });
      recordFigure('Postfix, end to end into the sink (last round)', baselineRate, '/s');
      recordFigure('Postrider, end to end into the sink (last round)', postriderRate, '/s');
      recordFigure('end to end, relay, relative to Postfix', ratio, 'ratio', '6');
    } finally {
      postfix.stop();
    }
    await stopAndRemove(service);
  });
}

/** Two routes, of which the default refuses connections, relative to one route; and claims beside held messages. */
async function benchRoutes(): Promise<void> {
  await withSink(async (sinkPort, readReceivedCount) => {
    const relay = `smtp://127.0.0.1:${sinkPort}`;
    const one = await setLimits(await startPostrider({ POSTRIDER_TRANSPORT: relay }));
    const dead = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${CLOSED_PORT}`, POSTRIDER_ROUTE_BACKUP: relay };
    const two = await setLimits(await startPostrider(dead));
    const measureRate = async ({ port, key }: BenchService, count: number) =>
      count / (await measureSecondsUntilReceived(readReceivedCount, count, () => runLoad(port, key, 64, count)));
    await measureRate(one, 3_000);
    // Also opens the circuit breaker of the dead route.
    await measureRate(two, 3_000);
    const ratio = await calculateMedianRatio(3, async () => {
      const rate = await measureRate(one, 10_000);
      return (await measureRate(two, 10_000)) / rate;
    });
    recordFigure('end to end, a dead and a healthy route, relative to one route', ratio, 'ratio', '0.95');
    await stopAndRemove(one);
    await stopAndRemove(two);
  });
  await benchHeldClaims(recordFigure, SEEDED_COUNT);
}

/** Adds an authenticated domain with an RSA key and an Ed25519 key to the account `default`, without DNS. */
async function addAuthenticatedDomain(folder: string, name: string): Promise<void> {
  const store = await openStore({ kind: 'sqlite', path: join(folder, 'data/postrider.db') }, { exclusive: false });
  const now = Date.now();
  const sealingKey = deriveKey(loadOrCreateSecret(join(folder, 'data/secret')), 'dkim');
  const algorithms = ['rsa', 'ed25519'] as const;
  const random = () => Math.random();
  const keys = await createKeys({
    domain: name,
    algorithms,
    state: 'active',
    usedSelectors: [],
    sealingKey,
    now,
    random,
  });
  const result = await store.addDomain('default', { name, subdomains: false, keys }, now);
  if (result.kind !== 'done') throw new Error(`the domain could not be added: ${result.kind}`);
  const { id, revision } = result.value;
  const records = createRecords(result.value, {
    returnPath: null,
    replacedBy: null,
    returnPathHost: null,
    spf: '',
    reportsTo: null,
  });
  const checks = records.map((record) => ({ ...record, found: 'found', seen: [], detail: 'found' }) as const);
  await store.updateDomain({
    id,
    revision,
    status: 'authenticated',
    checkedAt: now,
    authenticatedAt: now,
    failingSince: null,
    checks,
    keys,
  });
  await store.close();
}

async function benchSigned(): Promise<void> {
  await withSink(async (sinkPort, readReceivedCount) => {
    const transport = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinkPort}`, POSTRIDER_SENDERS: 'authenticated' };
    const service = await setLimits(await startPostrider(transport));
    await addAuthenticatedDomain(service.folder, 'example.org');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const deliver = (count: number) =>
      measureSecondsUntilReceived(readReceivedCount, count, () => runLoad(service.port, service.key, 64, count));
    // V8 compiles the code during these 10,000 messages, before the measurement starts.
    await deliver(10_000);
    let [postriderRate, baselineRate] = [0, 0];
    const ratio = await calculateMedianRatio(3, async () => {
      const signer = startScript('rsa.ts');
      baselineRate = (JSON.parse(await readFirstLine(signer)) as { perSecond: number }).perSecond;
      postriderRate = 10_000 / (await deliver(10_000));
      return postriderRate / baselineRate;
    });
    recordFigure('RSA-2048 signatures of crypto.sign, all cores (last round)', baselineRate, '/s');
    recordFigure('end to end, signed with RSA-2048 and Ed25519 (last round)', postriderRate, '/s');
    recordFigure('end to end, signed, relative to crypto.sign', ratio, 'ratio', '0.5');
    await stopAndRemove(service);
  });
}

async function benchLatency(): Promise<void> {
  await withSink(async (sinkPort, readReceivedCount) => {
    const service = await setLimits(await startPostrider({ POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinkPort}` }));
    await measureSecondsUntilReceived(readReceivedCount, 10_000, () => runLoad(service.port, service.key, 64, 10_000));
    // Measures the maximum rate at which messages are both accepted and delivered.
    const seconds = await measureSecondsUntilReceived(readReceivedCount, 30_000, () =>
      runLoad(service.port, service.key, 256, 30_000),
    );
    const maxRate = 30_000 / seconds;
    const halfRateResult = await runLoad(service.port, service.key, 256, Math.round(maxRate / 2) * 10, maxRate / 2);
    recordFigure('maximum rate of accepting and delivering', maxRate, '/s');
    recordFigure('accept latency at half of the maximum rate, p50', halfRateResult.p50Ms, 'ms');
    recordFigure('accept latency at half of the maximum rate, p99', halfRateResult.p99Ms, 'ms', 'under 25');
    await stopAndRemove(service);
  });
}

async function benchGrowth(): Promise<void> {
  // A service with these settings accepts messages and does not deliver them. It performs all checks that a relay
  // requires, including the check of the sending domain.
  const acceptSettings = {
    POSTRIDER_ROLES: 'api',
    POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:9',
    POSTRIDER_SENDERS: 'authenticated',
  };
  const emptyService = await setLimits(await startPostrider(acceptSettings));
  await addAuthenticatedDomain(emptyService.folder, 'example.org');
  const folder = createBenchFolder();
  const seededService = await startPostrider(acceptSettings, folder);
  await addAuthenticatedDomain(folder, 'example.org');
  await seededService.stop();
  const seed = {
    accountCount: 1_000,
    messageCount: SEEDED_COUNT,
    queuedCount: SEEDED_COUNT,
    suppressionCount: SEEDED_COUNT,
  };
  await seedStore(join(folder, 'data/postrider.db'), seed, showProgress);

  const startedAt = performance.now();
  const fullService = await startPostrider(acceptSettings, folder);
  await runLoad(fullService.port, seededService.key, 1, 1);
  recordFigure(
    'time from the start to the first 201, with 1,000,000 stored messages',
    performance.now() - startedAt,
    'ms',
    'under 2000',
  );
  await setLimits(fullService);

  await runLoad(emptyService.port, emptyService.key, 64, 10_000);
  await runLoad(fullService.port, seededService.key, 64, 10_000);
  const ratio = await calculateMedianRatio(3, async () => {
    const emptyResult = await runLoad(emptyService.port, emptyService.key, 256, 30_000);
    return (await runLoad(fullService.port, seededService.key, 256, 30_000)).perSecond / emptyResult.perSecond;
  });
  recordFigure('accept rate with 1,000,000 stored messages, relative to an empty store', ratio, 'ratio', '0.9');
  await fullService.stop();

  // The relay refuses connections, so all messages remain queued.
  const deliveringService = await startPostrider({ POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:9' }, folder);
  await runLoad(deliveringService.port, seededService.key, 64, 20_000);
  const initialResidentMb = deliveringService.readResidentMb();
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  await runLoad(deliveringService.port, seededService.key, 64, 20_000);
  recordFigure('resident size with 1,000,000 queued', deliveringService.readResidentMb(), 'MB', 'under 400');
  recordFigure('resident size with 1,000,000 queued, before 20,000 further messages', initialResidentMb, 'MB');
  await deliveringService.stop();
  await stopAndRemove(emptyService);
  removeFolder(folder);
}

function showProgress(done: number, total: number): void {
  if (!process.stderr.isTTY) return;
  process.stderr.write(done === total ? '\r\x1b[K' : `\rfilling the store: ${Math.round((done / total) * 100)} %  `);
}

async function benchIdle(): Promise<void> {
  const service = await startPostrider({});
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const cpuBeforeMs = service.readCpuMs();
  await new Promise((resolve) => setTimeout(resolve, 20_000));
  recordFigure('processor time of an idle node', (service.readCpuMs() - cpuBeforeMs) / 200, '%', 'under 1');
  await stopAndRemove(service);
}

/**
 * Measures the transport `ses:` with a fake SES API in a separate process: first without a delay, and then with a delay
 * of 100 ms, like that of the real API.
 */
async function benchSes(): Promise<void> {
  for (const latencyMs of [0, 100]) {
    await withSink(
      async (port, readReceivedCount) => {
        const service = await setLimits(
          await startPostrider({
            POSTRIDER_TRANSPORT: `ses://eu-west-1?endpoint=http://127.0.0.1:${port}`,
            AWS_ACCESS_KEY_ID: 'AKIDBENCH',
            AWS_SECRET_ACCESS_KEY: 'bench-secret',
            AWS_EC2_METADATA_DISABLED: 'true',
          }),
        );
        const deliver = (count: number) =>
          measureSecondsUntilReceived(readReceivedCount, count, () => runLoad(service.port, service.key, 64, count));
        await deliver(5_000);
        const rates: number[] = [];
        const cpuBeforeMs = service.readCpuMs();
        for (let n = 0; n < 3; n += 1) rates.push(10_000 / (await deliver(10_000)));
        const cpuUs = ((service.readCpuMs() - cpuBeforeMs) * 1_000) / 30_000;
        const delayText = latencyMs === 0 ? 'answers at once' : `answers after ${latencyMs} ms`;
        recordFigure(
          `end to end, ses:, the API ${delayText} (median)`,
          calculateMedian(rates),
          '/s',
          latencyMs === 0 ? '1,500' : null,
        );
        recordFigure(`processor time of one message, ses:, the API ${delayText}`, cpuUs, 'µs');
        await stopAndRemove(service);
      },
      'ses-sink.ts',
      String(latencyMs),
    );
  }
}

/** Measures how many provider events are recorded per second, and the accept rate during a stream of events. */
async function benchEvents(): Promise<void> {
  const roundCount = 5;
  const maxEventsPerRound = 60_000;
  const eventBench = await startEventBench(120_000 + roundCount * maxEventsPerRound);
  const service = await setLimits(eventBench.service);
  await (await eventBench.startStream(20_000, null)).result;
  const { perSecond } = await (await eventBench.startStream(100_000, null)).result;
  recordFigure('provider events recorded, in batches of 1,000', perSecond, '/s', '20,000');
  await runLoad(service.port, service.key, 64, 10_000);
  const ratio = await calculateMedianRatio(roundCount, async () => {
    const loadOnlyResult = await runLoad(service.port, service.key, 64, 30_000);
    // The stream of events lasts longer than the load, even if events double the duration of the load.
    const eventSeconds = Math.ceil(loadOnlyResult.seconds * 2 + 2);
    const events = await eventBench.startStream(Math.min(maxEventsPerRound, eventSeconds * 5_000), 5_000);
    const loadDuringEventsResult = await runLoad(service.port, service.key, 64, 30_000);
    if (!events.isRunning())
      throw new Error('the stream of events ended before the load ended; increase maxEventsPerRound');
    await events.result;
    return loadDuringEventsResult.perSecond / loadOnlyResult.perSecond;
  });
  recordFigure('accept rate with 5,000 provider events per second, relative to no events', ratio, 'ratio', '0.9');
  await stopAndRemove(service);
}

/** Measures a constant load with and without hostile clients. */
async function benchHostile(): Promise<void> {
  const windowCount = Number(process.env.BENCH_HOSTILE_WINDOWS ?? 3);
  const printProgress = (line: string) => process.stderr.write(`${line}\n`);
  const perSecond = 1_000;
  const result = await runHostile({
    windowCount,
    windowSeconds: 60,
    perSecond,
    isServiceKilled: true,
    onProgress: printProgress,
  });
  const computeMedian = (member: 'acceptedPerSecond' | 'p99Ms', windowsOfKind: typeof result.calmWindows) =>
    calculateMedian(windowsOfKind.map((window) => window[member]));
  recordFigure(
    `accept rate without hostile clients, ${perSecond} submissions/s`,
    computeMedian('acceptedPerSecond', result.calmWindows),
    '/s',
  );
  recordFigure(
    'accept rate with hostile clients and a kill of the service',
    computeMedian('acceptedPerSecond', result.hostileWindows),
    '/s',
  );
  recordFigure('accept latency without hostile clients, p99', computeMedian('p99Ms', result.calmWindows), 'ms');
  recordFigure(
    'accept latency with hostile clients and a kill of the service, p99',
    computeMedian('p99Ms', result.hostileWindows),
    'ms',
  );
  recordFigure('accept rate with hostile clients, relative to no hostile clients', result.acceptRatio, 'ratio', '0.9');
  recordFigure(
    'delivery rate with hostile clients, relative to no hostile clients',
    result.deliveryRatio,
    'ratio',
    '0.9',
  );
  recordFigure(
    `acknowledged messages that were lost, of ${result.acknowledgedCount}`,
    result.lostIds.length,
    'messages',
    '0',
  );
  recordFigure('acknowledged messages that were not delivered', result.undeliveredIds.length, 'messages', '0');
  recordFigure('crashes of the service', result.crashCount, '', '0');
}

async function measureAcceptRate({ port, key }: BenchService, requestCount: number): Promise<number> {
  return (await runLoad(port, key, 128, requestCount)).perSecond;
}

/** Measures PostgreSQL with 1, 2 and 3 nodes, which share the load. */
function runNodes(): Promise<void> {
  const loadAllNodes = async (targets: readonly { port: number; key: string }[], requestCount: number) => {
    const requestsPerNode = Math.floor(requestCount / targets.length);
    const connections = Math.floor(192 / targets.length);
    const results = await Promise.all(targets.map(({ port, key }) => runLoad(port, key, connections, requestsPerNode)));
    const startedAt = Math.min(...results.map((result) => result.startedAt));
    return { startedAt, perSecond: results.reduce((sum, { perSecond }) => sum + perSecond, 0) };
  };
  return benchNodes({ record: recordFigure, load: loadAllNodes, withSink, measureSecondsUntilReceived });
}

const BENCH_FUNCTIONS: Readonly<Record<BenchPart, () => Promise<void>>> = {
  accept: benchAccept,
  relay: benchRelay,
  routes: benchRoutes,
  signed: benchSigned,
  latency: benchLatency,
  growth: benchGrowth,
  claims: () => benchClaims(recordFigure),
  idle: benchIdle,
  nodes: runNodes,
  search: () => benchSearch(recordFigure),
  dashboard: () => benchDashboard(recordFigure),
  hostile: benchHostile,
  events: benchEvents,
  ses: benchSes,
  pooler: () => benchPooler({ record: recordFigure, measureAcceptRate }),
  webhooks: () =>
    benchWebhooks({
      record: recordFigure,
      setLimits,
      load: ({ port, key }, connections, messages) => runLoad(port, key, connections, messages),
      measureSecondsUntilReceived,
    }),
};
const requestedParts = process.argv.slice(2);
const unknownParts = requestedParts.filter((name) => !BENCH_PARTS.some((part) => part === name));
if (unknownParts.length > 0) {
  console.error(`bench: unknown part ${unknownParts.join(', ')}; the parts are ${BENCH_PARTS.join(', ')}`);
  process.exit(2);
}
console.log(
  `Node ${process.versions.node}, ${cpus().length} cores, ${cpus()[0]?.model ?? 'unknown processor'}${isPostfixInstalled() ? '' : '; Postfix is not installed, so its ratios are omitted'}`,
);
for (const part of BENCH_PARTS) {
  if (requestedParts.length === 0 || requestedParts.includes(part)) await BENCH_FUNCTIONS[part]();
}
const RESULTS_FILE = new URL('results.json', import.meta.url);
const earlierFigures = (JSON.parse(readFileSync(RESULTS_FILE, 'utf8')) as { readonly figures: readonly Figure[] })
  .figures;
const unchangedFigures = earlierFigures.filter(({ measure }) => figures.every((figure) => figure.measure !== measure));
writeFileSync(
  RESULTS_FILE,
  `${JSON.stringify({ node: process.versions.node, cores: cpus().length, figures: [...unchangedFigures, ...figures] }, null, 2)}\n`,
);
