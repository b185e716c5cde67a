/**
 * A load generator over raw sockets in a separate process; both sides of every ratio use it. Each connection has one request in
 * progress. It sends a fixed number of requests; `rate` limits the requests per second.
 *
 *   node bench/load.ts '{"port":8080,"key":"pr_…","connections":64,"requests":20000,"bytes":2048,"rate":null}'
 *
 * Prints one JSON line: statuses, time of the first connection (ms since the epoch), seconds, rate and latencies in ms.
 */
import { connect } from 'node:net';

interface Load {
  readonly port: number;
  readonly key: string;
  readonly connections: number;
  readonly requests: number;
  /** Size of the message member. */
  readonly bytes: number;
  /** Requests per second; null for no limit. */
  readonly rate: number | null;
}

const load = JSON.parse(process.argv[2] ?? '{}') as Load;
const HEAD_END = Buffer.from('\r\n\r\n');
const message = 'Thank you for your order. It is on its way to you.\n'
  .repeat(Math.ceil(load.bytes / 51))
  .slice(0, load.bytes);
const HEAD =
  `POST /api/v1/send-mail HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${load.key}\r\n` +
  'Content-Type: application/json\r\nContent-Length: ';
const CREATED = Buffer.from('HTTP/1.1 201 ');
const statuses: Record<string, number> = {};
const latencies = new Float64Array(load.requests);
let sent = 0;
let answered = 0;

/** The message as JSON, built once: the generator shares the cores with the service, so it must use little processor time. */
const tail = `","from":"shop@example.org","subject":"Your receipt","message":${JSON.stringify(message)}}`;

function request(n: number): string {
  const body = `{"to":"rita.${n}@example.com${tail}`;
  return `${HEAD}${body.length}\r\n\r\n${body}`;
}

const idle: (() => void)[] = [];

/** The status of a complete response, or null if it is incomplete. */
function statusOf(bytes: Buffer): string | null {
  const end = bytes.indexOf(HEAD_END);
  const head = end < 0 ? '' : bytes.toString('latin1', 0, end).toLowerCase();
  const length = Number(head.slice(head.indexOf('content-length:') + 15).split('\r\n', 1)[0]);
  return end < 0 || bytes.length < end + 4 + length ? null : head.slice(9, 12);
}

function begin(): void {
  const socket = connect({ port: load.port, host: '127.0.0.1', noDelay: true });
  let began = 0;
  let buffered: Buffer | null = null;
  let usual = -1;
  const next = () => {
    if (sent >= load.requests) {
      socket.end();
      return;
    }
    began = performance.now();
    socket.write(request(sent++), 'latin1');
  };
  socket.on('connect', () => (load.rate === null ? next() : idle.push(next)));
  socket.on('data', (chunk) => {
    // A response of the usual length that begins with 201 is not parsed.
    const alike = buffered === null && chunk.length === usual && chunk.compare(CREATED, 0, 13, 0, 13) === 0;
    const bytes = buffered === null ? chunk : Buffer.concat([buffered, chunk]);
    const status = alike ? '201' : statusOf(bytes);
    if (status === null) {
      buffered = bytes;
      return;
    }
    buffered = null;
    usual = bytes.length;
    statuses[status] = (statuses[status] ?? 0) + 1;
    latencies[answered++] = performance.now() - began;
    if (answered === load.requests) finish();
    else if (load.rate === null) next();
    else idle.push(next);
  });
  socket.on('error', (error) => {
    console.error(`load: ${error.message}`);
    process.exit(1);
  });
}

const started = performance.now();
const startedAt = performance.timeOrigin + started;
for (let n = 0; n < load.connections; n += 1) begin();
const pace = load.rate === null ? null : setInterval(keepPace, 1);

/** Sends as many requests as the rate allows. The wait for a free connection counts in the rate, not in a latency. */
function keepPace(): void {
  const due = Math.min(load.requests, ((performance.now() - started) / 1000) * (load.rate ?? 0));
  while (sent < due) {
    const next = idle.shift();
    if (next === undefined) return;
    next();
  }
}

function finish(): void {
  if (pace !== null) clearInterval(pace);
  const seconds = (performance.now() - started) / 1000;
  const sorted = latencies.subarray(0, answered).sort();
  const at = (part: number) => Number((sorted[Math.min(answered - 1, Math.floor(answered * part))] ?? 0).toFixed(2));
  console.log(
    JSON.stringify({
      statuses,
      startedAt,
      seconds,
      perSecond: Math.round(answered / seconds),
      p50: at(0.5),
      p99: at(0.99),
      max: at(1),
    }),
  );
  process.exit(0);
}
