/**
 * A client in a separate process that submits messages at a fixed rate for a fixed time and continues when the service
 * restarts. A failed submission is counted and is not repeated. The message ids in all 201 responses are appended to a
 * file.
 *
 *   node bench/steady.ts '{"port":8080,"key":"pr_…","perSecond":2000,"seconds":20,"messageBytes":2048,"idsFile":"/tmp/ids"}'
 *
 * Prints one JSON line: the numbers of due, accepted and failed submissions, and the latencies of the accepted
 * submissions in ms.
 */
import { appendFileSync } from 'node:fs';
import { Agent, request } from 'node:http';

interface SteadyLoad {
  readonly port: number;
  readonly key: string;
  readonly perSecond: number;
  readonly seconds: number;
  /** The size of the member `message` of each request. */
  readonly messageBytes: number;
  readonly idsFile: string;
}

const load = JSON.parse(process.argv[2] ?? '{}') as SteadyLoad;
const MAX_IN_PROGRESS = 512;
/** The time limit of a submission. A submission without a response within this time counts as failed. */
const TIMEOUT_MS = 10_000;
const agent = new Agent({ keepAlive: true, maxSockets: MAX_IN_PROGRESS });
const message = 'Thank you for your order. It is on its way to you.\n'
  .repeat(Math.ceil(load.messageBytes / 51))
  .slice(0, load.messageBytes);
const headers = { Authorization: load.key, 'Content-Type': 'application/json' };
const latencies: number[] = [];
const ids: string[] = [];
let [dueCount, inProgressCount, failedCount, n] = [0, 0, 0, 0];

function submitMessage(): void {
  const requestStartedAt = performance.now();
  inProgressCount += 1;
  let isFinished = false;
  const completeSubmission = (id: string | null) => {
    if (isFinished) return;
    isFinished = true;
    inProgressCount -= 1;
    if (id === null) failedCount += 1;
    else {
      ids.push(id);
      latencies.push(performance.now() - requestStartedAt);
    }
  };
  const httpRequest = request(
    {
      host: '127.0.0.1',
      port: load.port,
      method: 'POST',
      path: '/api/v1/send-mail',
      headers,
      agent,
      timeout: TIMEOUT_MS,
    },
    (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', () => completeSubmission(null));
      response.on('end', () =>
        completeSubmission(
          response.statusCode === 201 ? (JSON.parse(text) as { result: { id: string } }).result.id : null,
        ),
      );
    },
  );
  httpRequest.on('timeout', () => httpRequest.destroy());
  httpRequest.on('error', () => completeSubmission(null));
  const body = { to: `rita.${n}@example.com`, from: 'shop@example.org', subject: 'Your receipt', message };
  n += 1;
  httpRequest.end(JSON.stringify(body));
}

const loadStartedAt = performance.now();
const timer = setInterval(() => {
  const elapsedSeconds = Math.min(load.seconds, (performance.now() - loadStartedAt) / 1000);
  const targetCount = Math.floor(elapsedSeconds * load.perSecond);
  for (; dueCount < targetCount; dueCount += 1) {
    // The load does not wait for responses (open loop). A submission that cannot be sent at its due time therefore
    // counts as failed.
    if (inProgressCount < MAX_IN_PROGRESS) submitMessage();
    else failedCount += 1;
  }
  if (elapsedSeconds >= load.seconds && inProgressCount === 0) printResult();
}, 2);

function printResult(): void {
  clearInterval(timer);
  agent.destroy();
  appendFileSync(load.idsFile, ids.map((id) => `${id}\n`).join(''));
  latencies.sort((a, b) => a - b);
  const findPercentile = (share: number) =>
    Number((latencies[Math.floor((latencies.length - 1) * share)] ?? 0).toFixed(2));
  console.log(
    JSON.stringify({
      dueCount,
      acceptedCount: ids.length,
      failedCount,
      p50Ms: findPercentile(0.5),
      p99Ms: findPercentile(0.99),
      maxMs: findPercentile(1),
    }),
  );
}
