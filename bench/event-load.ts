/**
 * Sends provider events in the format of SparkPost with raw sockets, in a separate process. Each connection has at most
 * one request in progress.
 *
 *   node bench/event-load.ts '{"port":8443,"connectionCount":4,"file":"events.jsonl","eventsPerBatch":1000,"eventsPerSecond":null}'
 *
 * Reads `file`, which has one JSON array of events (one batch) per line. `eventsPerSecond` limits the rate. Prints a
 * JSON line when the first batch has been answered. At the end, prints a JSON line with the number of responses per
 * status, the duration in seconds, and the events per second.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

interface EventLoad {
  readonly port: number;
  readonly connectionCount: number;
  /** The path of the file with the batches. */
  readonly file: string;
  readonly eventsPerBatch: number;
  /** The maximum rate, or null if the rate is not limited. */
  readonly eventsPerSecond: number | null;
}

const LINE_FEED = 0x0a;
const load = JSON.parse(process.argv[2] ?? '{}') as EventLoad;
/** The lines of the file. They are not parsed, because the generator shares the processor cores with the service. */
const batches = splitLines(readFileSync(load.file));
const authorization = `Basic ${Buffer.from('bench:bench-password').toString('base64')}`;
const statuses: Record<string, number> = {};
let nextBatchIndex = 0;
let hasStarted = false;

function splitLines(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let lineStart = 0; lineStart < bytes.length; ) {
    const end = bytes.indexOf(LINE_FEED, lineStart);
    lines.push(bytes.subarray(lineStart, end < 0 ? bytes.length : end));
    lineStart = end < 0 ? bytes.length : end + 1;
  }
  return lines;
}

function openConnection(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: load.port, host: '127.0.0.1', noDelay: true }, () => resolve(socket));
    socket.once('error', reject);
    socket.once('end', () => exitWithError('the service closed the connection'));
  });
}

function exitWithError(reason: string): never {
  console.error(`event-load: ${reason}`);
  process.exit(1);
}

/** Sends a batch and waits for the response. A response is short, so it arrives in a single `data` event. */
function sendBatch(socket: Socket, batch: Buffer): Promise<void> {
  return new Promise((resolve) => {
    socket.once('data', (response) => {
      const status = response.toString('latin1', 9, 12);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (!hasStarted) console.log(JSON.stringify({ started: true }));
      hasStarted = true;
      resolve();
    });
    socket.cork();
    socket.write(
      `POST /events/sparkpost HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${batch.length}\r\n\r\n`,
    );
    socket.write(batch);
    socket.uncork();
  });
}

const sockets = await Promise.all(Array.from({ length: load.connectionCount }, openConnection));
const startedAt = performance.now();
const intervalMs = load.eventsPerSecond === null ? 0 : (load.eventsPerBatch * 1_000) / load.eventsPerSecond;

async function sendBatches(socket: Socket): Promise<void> {
  for (;;) {
    const index = nextBatchIndex;
    nextBatchIndex += 1;
    const batch = batches[index];
    if (batch === undefined) return;
    const waitMs = startedAt + index * intervalMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    await sendBatch(socket, batch);
  }
}

await Promise.all(sockets.map(sendBatches));
const seconds = (performance.now() - startedAt) / 1_000;
for (const socket of sockets) socket.destroy();
console.log(JSON.stringify({ statuses, seconds, perSecond: (batches.length * load.eventsPerBatch) / seconds }));
