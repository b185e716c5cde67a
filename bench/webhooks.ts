/**
 * Measures the number of webhooks that a node sends per second to a receiver in a separate process. Also measures how
 * much an endpoint that subscribes to all event types reduces the rates of accepting and delivering. Two services, with
 * and without an endpoint, are measured in alternating rounds with the same load. The benchmark also
 * records the processor time, because other load on the machine affects the processor time less than the rates.
 */
import { calculateMedian } from './median.ts';
import { type BenchService, removeFolder, runCommand, startPostrider } from './postrider.ts';
import { withSink } from './script.ts';

const ROUND_COUNT = 5;
const MESSAGES_PER_ROUND = 10_000;
/** The number of events of one delivered message: accepted and delivered. */
const EVENTS_PER_MESSAGE = 2;
const TARGET_SETTINGS = { POSTRIDER_WEBHOOK_TARGETS: 'any' };
const CONNECTION_COUNT = 64;

type ReadReceivedCount = () => Promise<number>;

export interface WebhookBenchParts {
  readonly record: (measure: string, value: number, unit: string, target?: string | null) => void;
  /** Submits messages. Resolves to the time of the first request and the number of accepted messages per second. */
  readonly load: (
    target: Pick<BenchService, 'port' | 'key'>,
    connectionCount: number,
    messageCount: number,
  ) => Promise<{ readonly startedAt: number; readonly perSecond: number }>;
  readonly setLimits: (service: BenchService) => Promise<BenchService>;
  readonly measureSecondsUntilReceived: (
    readReceivedCount: ReadReceivedCount,
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
  await withSink((port, readReceivedCount) => benchWithReceiver(parts, port, readReceivedCount), 'webhook-sink.ts');
}

async function benchWithReceiver(
  parts: WebhookBenchParts,
  port: number,
  readReceivedCount: ReadReceivedCount,
): Promise<void> {
  const { record, load, setLimits } = parts;
  const url = `http://127.0.0.1:${port}/`;
  const startService = async (settings: Record<string, string>, isSubscribed: boolean): Promise<BenchService> => {
    const service = await setLimits(await startPostrider({ ...TARGET_SETTINGS, ...settings }));
    if (isSubscribed) await runCommand(service.folder, TARGET_SETTINGS, 'webhook', 'create', url, '--events', 'all');
    return service;
  };

  // The services with the role `api` measure the accept rate. They send no webhooks, because only nodes with the role
  // `deliver` send webhooks.
  const apiSettings = { POSTRIDER_ROLES: 'api' };
  const apiServices = [await startService(apiSettings, false), await startService(apiSettings, true)] as const;
  const acceptMedians = await measurePairs(apiServices, 4 * MESSAGES_PER_ROUND, async (service) => {
    return (await load(service, CONNECTION_COUNT, 4 * MESSAGES_PER_ROUND)).perSecond;
  });
  recordRatios(record, 'accept', acceptMedians);
  for (const service of apiServices) await stopAndRemove(service);

  await withSink(async (sinkPort, readDeliveredCount) => {
    const relaySettings = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinkPort}` };
    const services = [await startService(relaySettings, false), await startService(relaySettings, true)] as const;
    const [, subscribedService] = services;
    let expectedWebhookCount = await readReceivedCount();
    const deliveryMedians = await measurePairs(services, MESSAGES_PER_ROUND, async (service) => {
      const seconds = await parts.measureSecondsUntilReceived(readDeliveredCount, MESSAGES_PER_ROUND, () =>
        load(service, CONNECTION_COUNT, MESSAGES_PER_ROUND),
      );
      // Waits for the webhooks, because the processor time of a message includes the sending of its webhooks.
      if (service === subscribedService) expectedWebhookCount += MESSAGES_PER_ROUND * EVENTS_PER_MESSAGE;
      await waitForCount(readReceivedCount, expectedWebhookCount);
      return MESSAGES_PER_ROUND / seconds;
    });
    recordRatios(record, 'end to end', deliveryMedians);
    await stopAndRemove(services[0]);

    // Measures the sending of webhooks. The endpoint is disabled while the messages are delivered, so that all events
    // wait. The measurement starts when the endpoint is enabled.
    const rates: number[] = [];
    const cpuUs: number[] = [];
    for (let round = 0; round < ROUND_COUNT; round += 1) {
      await runCommand(subscribedService.folder, TARGET_SETTINGS, 'webhook', 'disable', 'wh_1');
      await parts.measureSecondsUntilReceived(readDeliveredCount, MESSAGES_PER_ROUND, () =>
        load(subscribedService, CONNECTION_COUNT, MESSAGES_PER_ROUND),
      );
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      const count = MESSAGES_PER_ROUND * EVENTS_PER_MESSAGE;
      const cpuBeforeMs = subscribedService.readCpuMs();
      const seconds = await parts.measureSecondsUntilReceived(readReceivedCount, count, async () => {
        const startedAt = performance.timeOrigin + performance.now();
        await runCommand(subscribedService.folder, TARGET_SETTINGS, 'webhook', 'enable', 'wh_1');
        return { startedAt };
      });
      rates.push(count / seconds);
      cpuUs.push(((subscribedService.readCpuMs() - cpuBeforeMs) * 1_000) / count);
    }
    record('webhooks sent to one endpoint', calculateMedian(rates), '/s');
    record('processor time of one webhook, including fan-out and recording', calculateMedian(cpuUs), 'µs');
    await stopAndRemove(subscribedService);
  });
}

/** Measures both services in alternating rounds. The first round of each service is not counted. */
async function measurePairs(
  services: readonly [BenchService, BenchService],
  messageCount: number,
  measure: (service: BenchService) => Promise<number>,
): Promise<readonly [Medians, Medians]> {
  const rates: [number[], number[]] = [[], []];
  const cpuUs: [number[], number[]] = [[], []];
  for (let round = 0; round <= ROUND_COUNT; round += 1) {
    for (const index of [0, 1] as const) {
      const service = services[index];
      const cpuBeforeMs = service.readCpuMs();
      const rate = await measure(service);
      if (round === 0) continue;
      rates[index].push(rate);
      cpuUs[index].push(((service.readCpuMs() - cpuBeforeMs) * 1_000) / messageCount);
    }
  }
  const toMedians = (index: 0 | 1): Medians => ({
    perSecond: calculateMedian(rates[index]),
    cpuUs: calculateMedian(cpuUs[index]),
  });
  return [toMedians(0), toMedians(1)];
}

function recordRatios(
  record: WebhookBenchParts['record'],
  measure: string,
  [withoutEndpoint, withEndpoint]: readonly [Medians, Medians],
): void {
  record(`${measure} without an endpoint`, withoutEndpoint.perSecond, '/s');
  record(`${measure} with a subscription to all events`, withEndpoint.perSecond, '/s');
  record(
    `${measure} with a subscription to all events, relative to no endpoint`,
    withEndpoint.perSecond / withoutEndpoint.perSecond,
    'ratio',
    '0.9',
  );
  record(`processor time of one message, ${measure}, without an endpoint`, withoutEndpoint.cpuUs, 'µs');
  record(`processor time of one message, ${measure}, with a subscription to all events`, withEndpoint.cpuUs, 'µs');
}

async function waitForCount(readReceivedCount: ReadReceivedCount, count: number): Promise<void> {
  while ((await readReceivedCount()) < count) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function stopAndRemove(service: BenchService): Promise<void> {
  await service.stop();
  removeFolder(service.folder);
}
