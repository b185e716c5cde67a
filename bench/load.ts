/**
 * A load generator with raw sockets in a separate process. It measures both services that a benchmark compares.
 * Each connection has one request in progress. The generator sends a fixed number of requests. `requestsPerSecond`
 * limits the rate.
 *
 *   node bench/load.ts '{"port":8080,"key":"pr_…","connectionCount":64,"requestCount":20000,"messageBytes":2048,"requestsPerSecond":null}'
 *
 * Prints one JSON line: statuses, time of the first connection (ms since the epoch), seconds, rate and latencies in ms.
 */
import { connect } from 'node:net';

interface Load {
  readonly port: number;
  readonly key: string;
  readonly connectionCount: number;
  readonly requestCount: number;
  /** The size of the member `message` of each request. */
  readonly messageBytes: number;
  /** Null for no limit. */
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
 * The end of the request body, which is built once. The generator shares the cores with the service, so it must use
 * little processor time.
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
  let usualLength = -1;
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
    // A response of the usual length with the status 201 is not parsed.
    const isUsualResponse =
      bufferedBytes === null && chunk.length === usualLength && chunk.compare(CREATED_STATUS_LINE, 0, 13, 0, 13) === 0;
    const bytes = bufferedBytes === null ? chunk : Buffer.concat([bufferedBytes, chunk]);
    const status = isUsualResponse ? '201' : parseStatus(bytes);
    if (status === null) {
      bufferedBytes = bytes;
      return;
    }
    bufferedBytes = null;
    usualLength = bytes.length;
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
 * Sends as many requests as `requestsPerSecond` allows. If no connection is idle, a request waits. This wait
 * reduces the rate. The latencies do not include it.
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
