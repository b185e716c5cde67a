/**
 * Measures webhooks: how many a node sends per second to a receiver in a process of its own, and what an endpoint that
 * subscribes to all types costs the acceptance and the delivery of messages. Two services, with and without an endpoint,
 * are measured in alternating rounds with the same load. The processor time does not depend on other load of the machine.
 */
import { type BenchService, removeFolder, runCommand, startPostrider } from './postrider.ts';
import { withSink } from './script.ts';

const ROUNDS = 5;
const MESSAGES = 10_000;
/** The events of one delivered message: accepted and delivered. */
const EVENTS_PER_MESSAGE = 2;
const TARGETS = { POSTRIDER_WEBHOOK_TARGETS: 'any' };
const CONNECTIONS = 64;

type ReceivedCount = () => Promise<number>;

export interface WebhookBenchParts {
  readonly record: (measure: string, value: number, unit: string, target?: string | null) => void;
  /** Submits messages. Resolves to the time of the first request and the accepted messages per second. */
  readonly load: (
    target: Pick<BenchService, 'port' | 'key'>,
    connections: number,
    messages: number,
  ) => Promise<{ readonly startedAt: number; readonly perSecond: number }>;
  readonly setLimits: (service: BenchService) => Promise<BenchService>;
  readonly measureSecondsUntilReceived: (
    receivedCount: ReceivedCount,
    count: number,
    startLoad: () => Promise<{ readonly startedAt: number }>,
  ) => Promise<number>;
}

/** The medians of the rounds of one service: messages per second, and processor time of one message in µs. */
interface Medians {
  readonly perSecond: number;
  readonly cpuUs: number;
}

export async function benchWebhooks(parts: WebhookBenchParts): Promise<void> {
  await withSink((port, receivedCount) => benchWithReceiver(parts, port, receivedCount), 'webhook-sink.ts');
}

async function benchWithReceiver(parts: WebhookBenchParts, port: number, receivedCount: ReceivedCount): Promise<void> {
  const { record, load, setLimits } = parts;
  const url = `http://127.0.0.1:${port}/`;
  const start = async (settings: Record<string, string>, isSubscribed: boolean): Promise<BenchService> => {
    const service = await setLimits(await startPostrider({ ...TARGETS, ...settings }));
    if (isSubscribed) await runCommand(service.folder, TARGETS, 'webhook', 'create', url, '--events', 'all');
    return service;
  };

  // Measures the acceptance without webhooks. Nodes with the role `deliver` send the webhooks.
  const api = { POSTRIDER_ROLES: 'api' };
  const acceptors = [await start(api, false), await start(api, true)] as const;
  const accepting = await measurePairs(acceptors, 4 * MESSAGES, async (service) => {
    return (await load(service, CONNECTIONS, 4 * MESSAGES)).perSecond;
  });
  recordRatios(record, 'accept', accepting);
  for (const service of acceptors) await stopAndRemove(service);

  await withSink(async (sinkPort, deliveredCount) => {
    const relay = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinkPort}` };
    const services = [await start(relay, false), await start(relay, true)] as const;
    const [, subscribed] = services;
    let expectedWebhooks = await receivedCount();
    const delivering = await measurePairs(services, MESSAGES, async (service) => {
      const seconds = await parts.measureSecondsUntilReceived(deliveredCount, MESSAGES, () =>
        load(service, CONNECTIONS, MESSAGES),
      );
      // The processor time of a message includes its webhooks.
      if (service === subscribed) expectedWebhooks += MESSAGES * EVENTS_PER_MESSAGE;
      await waitForCount(receivedCount, expectedWebhooks);
      return MESSAGES / seconds;
    });
    recordRatios(record, 'end to end', delivering);
    await stopAndRemove(services[0]);

    // Measures the sending of webhooks. A disabled endpoint keeps the events of all messages, and is then enabled.
    const rates: number[] = [];
    const cpuUs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await runCommand(subscribed.folder, TARGETS, 'webhook', 'disable', 'wh_1');
      await parts.measureSecondsUntilReceived(deliveredCount, MESSAGES, () => load(subscribed, CONNECTIONS, MESSAGES));
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      const count = MESSAGES * EVENTS_PER_MESSAGE;
      const cpuBefore = subscribed.readCpuMs();
      const seconds = await parts.measureSecondsUntilReceived(receivedCount, count, async () => {
        const startedAt = performance.timeOrigin + performance.now();
        await runCommand(subscribed.folder, TARGETS, 'webhook', 'enable', 'wh_1');
        return { startedAt };
      });
      rates.push(count / seconds);
      cpuUs.push(((subscribed.readCpuMs() - cpuBefore) * 1_000) / count);
    }
    record('webhooks sent to one endpoint', findMedian(rates), '/s');
    record('processor time of one webhook, with fan-out and record', findMedian(cpuUs), 'µs');
    await stopAndRemove(subscribed);
  });
}

/**
 * Measures both services in alternating rounds. The first round of each is not counted.
 */
async function measurePairs(
  services: readonly [BenchService, BenchService],
  messages: number,
  measure: (service: BenchService) => Promise<number>,
): Promise<readonly [Medians, Medians]> {
  const rates: [number[], number[]] = [[], []];
  const cpuUs: [number[], number[]] = [[], []];
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const index of [0, 1] as const) {
      const service = services[index];
      const cpuBefore = service.readCpuMs();
      const rate = await measure(service);
      if (round === 0) continue;
      rates[index].push(rate);
      cpuUs[index].push(((service.readCpuMs() - cpuBefore) * 1_000) / messages);
    }
  }
  const toMedians = (index: 0 | 1): Medians => ({
    perSecond: findMedian(rates[index]),
    cpuUs: findMedian(cpuUs[index]),
  });
  return [toMedians(0), toMedians(1)];
}

function recordRatios(
  record: WebhookBenchParts['record'],
  measure: string,
  [without, all]: readonly [Medians, Medians],
): void {
  record(`${measure} without an endpoint`, without.perSecond, '/s');
  record(`${measure} with a subscription to all events`, all.perSecond, '/s');
  record(
    `${measure} with a subscription to all events over without`,
    all.perSecond / without.perSecond,
    'ratio',
    '0.9',
  );
  record(`processor time of one message, ${measure}, without an endpoint`, without.cpuUs, 'µs');
  record(`processor time of one message, ${measure}, with a subscription to all events`, all.cpuUs, 'µs');
}

async function waitForCount(receivedCount: ReceivedCount, count: number): Promise<void> {
  while ((await receivedCount()) < count) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function stopAndRemove(service: BenchService): Promise<void> {
  await service.stop();
  removeFolder(service.folder);
}

function findMedian(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
