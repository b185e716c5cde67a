/**
 * Sends provider events in the format of SparkPost, in a separate process. Each connection has one request in progress.
 *
 *   node bench/event-load.ts '{"port":8443,"connections":4,"file":"events.jsonl","eventsPerBatch":1000,"eventsPerSecond":null}'
 *
 * Reads `file`, which has one JSON array per line. `eventsPerSecond` limits the rate. Prints one JSON line: statuses,
 * seconds, and events per second.
 */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';

interface EventLoad {
  readonly port: number;
  readonly connections: number;
  /** The path of the file with the batches. */
  readonly file: string;
  readonly eventsPerBatch: number;
  /** Null for no limit. */
  readonly eventsPerSecond: number | null;
}

const load = JSON.parse(process.argv[2] ?? '{}') as EventLoad;
const batches = readFileSync(load.file, 'utf8')
  .split('\n')
  .filter((line) => line !== '');
const agent = new Agent({ keepAlive: true, maxSockets: load.connections });
const authorization = `Basic ${Buffer.from('bench:bench-password').toString('base64')}`;
const statuses: Record<string, number> = {};
let nextBatch = 0;

function send(batch: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, 'content-type': 'application/json', 'content-length': Buffer.byteLength(batch) };
    const options = { port: load.port, host: '127.0.0.1', method: 'POST', path: '/events/sparkpost', agent, headers };
    const outgoing = request(options, (response) => {
      const status = String(response.statusCode);
      statuses[status] = (statuses[status] ?? 0) + 1;
      response.resume();
      response.once('end', resolve);
    });
    outgoing.once('error', reject);
    outgoing.end(batch);
  });
}

const startedAt = performance.now();
const intervalMs = load.eventsPerSecond === null ? 0 : (load.eventsPerBatch * 1_000) / load.eventsPerSecond;

async function sendBatches(): Promise<void> {
  for (;;) {
    const index = nextBatch;
    nextBatch += 1;
    const batch = batches[index];
    if (batch === undefined) return;
    const waitMs = startedAt + index * intervalMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    await send(batch);
  }
}

await Promise.all(Array.from({ length: load.connections }, sendBatches));
const seconds = (performance.now() - startedAt) / 1_000;
agent.destroy();
const perSecond = (batches.length * load.eventsPerBatch) / seconds;
console.log(JSON.stringify({ statuses, seconds, perSecond }));
