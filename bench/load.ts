/**
 * A load generator with raw sockets in a separate process. A benchmark that compares two services uses this generator
 * for both. Each connection has at most one request in progress. The generator sends a fixed number of requests.
 * `requestsPerSecond` limits the rate.
 *
 *   node bench/load.ts '{"port":8080,"key":"pr_…","connectionCount":64,"requestCount":20000,"messageBytes":2048,"requestsPerSecond":null}'
 *
 * Prints one JSON line: the number of responses per status, the start time (ms since the epoch), the duration in
 * seconds, the rate, and the latencies in ms.
 */
import { connect } from 'node:net';

interface Load {
  readonly port: number;
  readonly key: string;
  readonly connectionCount: number;
  readonly requestCount: number;
  /** The size of the member `message` of each request. */
  readonly messageBytes: number;
  /** The maximum rate, or null if the rate is not limited. */
  readonly requestsPerSecond: number | null;
}

const load = JSON.parse(process.argv[2] ?? '{}') as Load;
const HEADER_END = Buffer.from('\r\n\r\n');
const message = 'Thank you for your order. It is on its way to you.\n'
  .repeat(Math.ceil(load.messageBytes / 51))
  .slice(0, load.messageBytes);
const REQUEST_HEADER =
  `POST /api/v1/send-mail HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${load.key}\r\n` +
  'Content-Type: application/json\r\nContent-Length: ';
const CREATED_STATUS_LINE = Buffer.from('HTTP/1.1 201 ');
const statuses: Record<string, number> = {};
const latencies = new Float64Array(load.requestCount);
let sentCount = 0;
let answeredCount = 0;

/**
 * The part of the request body that is the same in every request. It is built only once, because the generator shares
 * the processor cores with the service and must use little processor time.
 */
const bodyEnd = `","from":"shop@example.org","subject":"Your receipt","message":${JSON.stringify(message)}}`;

function buildRequest(n: number): string {
  const body = `{"to":"rita.${n}@example.com${bodyEnd}`;
  return `${REQUEST_HEADER}${body.length}\r\n\r\n${body}`;
}

const idleConnections: (() => void)[] = [];

/** Returns the status of a complete response, or null if the response is incomplete. */
function parseStatus(bytes: Buffer): string | null {
  const end = bytes.indexOf(HEADER_END);
  const header = end < 0 ? '' : bytes.toString('latin1', 0, end).toLowerCase();
  const length = Number(header.slice(header.indexOf('content-length:') + 15).split('\r\n', 1)[0]);
  return end < 0 || bytes.length < end + 4 + length ? null : header.slice(9, 12);
}

function openConnection(): void {
  const socket = connect({ port: load.port, host: '127.0.0.1', noDelay: true });
  let requestStartedAt = 0;
  let bufferedBytes: Buffer | null = null;
  let previousLength = -1;
  const sendNext = () => {
    if (sentCount >= load.requestCount) {
      socket.end();
      return;
    }
    requestStartedAt = performance.now();
    socket.write(buildRequest(sentCount++), 'latin1');
  };
  socket.on('connect', () => (load.requestsPerSecond === null ? sendNext() : idleConnections.push(sendNext)));
  socket.on('data', (chunk) => {
    // A response with the status 201 and the length of the previous response is not parsed.
    const isKnownResponse =
      bufferedBytes === null &&
      chunk.length === previousLength &&
      chunk.compare(CREATED_STATUS_LINE, 0, 13, 0, 13) === 0;
    const bytes = bufferedBytes === null ? chunk : Buffer.concat([bufferedBytes, chunk]);
    const status = isKnownResponse ? '201' : parseStatus(bytes);
    if (status === null) {
      bufferedBytes = bytes;
      return;
    }
    bufferedBytes = null;
    previousLength = bytes.length;
    statuses[status] = (statuses[status] ?? 0) + 1;
    latencies[answeredCount++] = performance.now() - requestStartedAt;
    if (answeredCount === load.requestCount) printResult();
    else if (load.requestsPerSecond === null) sendNext();
    else idleConnections.push(sendNext);
  });
  socket.on('error', (error) => {
    console.error(`load: ${error.message}`);
    process.exit(1);
  });
}

const loadStartedAt = performance.now();
const startedAt = performance.timeOrigin + loadStartedAt;
for (let n = 0; n < load.connectionCount; n += 1) openConnection();
const paceTimer = load.requestsPerSecond === null ? null : setInterval(sendDueRequests, 1);

/**
 * Sends as many requests as `requestsPerSecond` allows. If no connection is idle, a due request waits. This waiting
 * time reduces the rate and is not part of the latencies.
 */
function sendDueRequests(): void {
  const dueCount = Math.min(
    load.requestCount,
    ((performance.now() - loadStartedAt) / 1000) * (load.requestsPerSecond ?? 0),
  );
  while (sentCount < dueCount) {
    const sendNext = idleConnections.shift();
    if (sendNext === undefined) return;
    sendNext();
  }
}

function printResult(): void {
  if (paceTimer !== null) clearInterval(paceTimer);
  const seconds = (performance.now() - loadStartedAt) / 1000;
  const sortedLatencies = latencies.subarray(0, answeredCount).sort();
  const findPercentile = (share: number) =>
    Number((sortedLatencies[Math.min(answeredCount - 1, Math.floor(answeredCount * share))] ?? 0).toFixed(2));
  console.log(
    JSON.stringify({
      statuses,
      startedAt,
      seconds,
      perSecond: Math.round(answeredCount / seconds),
      p50Ms: findPercentile(0.5),
      p99Ms: findPercentile(0.99),
      maxMs: findPercentile(1),
    }),
  );
  process.exit(0);
}
