/**
 * Plays attacks together: four on the capacity of the listeners, and outsiders' reports about one message
 * (report-attack.ts). An authenticated client submits and reads within its limits. Prints the median latency of this client
 * without and with the attacks, its 429 and 503 answers, the stored history of the reported message and the locked accounts.
 *
 *   node bench/abuse.ts MINUTES
 *
 * Windows without and with the attacks alternate on one service. The attacks run in a process of their own.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { deriveKey, loadOrCreateSecret } from '../src/domains/secret.ts';
import { createReturnPathToken } from '../src/message/return-path.ts';
import { calculateMedian } from './median.ts';
import { findFreePort, removeFolder, runCommand, startPostrider } from './postrider.ts';
import { runScript } from './script.ts';

const WINDOW_MS = 15_000;
const REQUEST_INTERVAL_MS = 50;
const REPORTS_PER_SECOND = 150;
const DOMAIN = 'bounces.example.org';
/** The time after which a closed connection of an attack is opened again. */
const REOPEN_DELAY_MS = 2_000;

interface Attack {
  readonly publicPort: number;
  readonly smtpPort: number;
  readonly eventsPort: number;
  readonly keys: readonly string[];
}

const [argument = '', attackText] = process.argv.slice(2);
if (argument === 'attack') startAttacks(JSON.parse(attackText ?? '{}') as Attack);
else await measure(Number(argument) * 60_000);

async function measure(durationMs: number): Promise<void> {
  if (!(durationMs > 0)) throw new Error('usage: node bench/abuse.ts MINUTES');
  const [smtpPort, eventsPort] = [await findFreePort(), await findFreePort()];
  const service = await startPostrider({
    POSTRIDER_TRANSPORT: 'capture:',
    POSTRIDER_OPERATOR_PASSWORD: 'a password of the load',
    POSTRIDER_FEEDBACK_LISTEN: `127.0.0.1:${smtpPort}`,
    POSTRIDER_RETURN_PATH_DOMAIN: DOMAIN,
    POSTRIDER_FEEDBACK_HTTP_LISTEN: `127.0.0.1:${eventsPort}`,
    POSTRIDER_EVENTS_MAILGUN: '5f1c0a9be3d24786a1c7d90be4f83a26',
    POSTRIDER_EVENTS_MAILERSEND: 'a secret of the load',
  });
  const keys: string[] = [];
  for (const account of ['first', 'second']) {
    await runCommand(service.folder, {}, 'account', 'create', account, '--json');
    const text = await runCommand(service.folder, {}, 'key', 'create', account, '--json');
    keys.push((JSON.parse(text) as { readonly key: string }).key);
  }
  const attack: Attack = { publicPort: service.port, smtpPort, eventsPort, keys };
  const latencies = { without: [] as number[], with: [] as number[] };
  const refusals = { 429: 0, 503: 0, other: 0 };
  const submit = (to: string, message: string) =>
    fetch(`http://127.0.0.1:${service.port}/api/v1/send-mail`, {
      method: 'POST',
      headers: { Authorization: service.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ to, from: 'b@example.org', subject: 's', message }),
    });
  const readMessage = (id: string) =>
    fetch(`http://127.0.0.1:${service.operatorPort}/api/v1/messages/${id}`, {
      headers: { Authorization: `Basic ${Buffer.from(':a password of the load').toString('base64')}` },
    });
  const ids: string[] = [];
  for (const name of ['flooded', 'mallory', 'trudy']) {
    const submitted = await submit(`${name}@${name}.example`, 'Thank you.');
    ids.push(((await submitted.json()) as { readonly result: { readonly id: string } }).result.id);
  }
  const [reportedId = ''] = ids;
  const key = deriveKey(loadOrCreateSecret(join(service.folder, 'data/secret')), 'return-path');
  const returnPaths = ids.map((id) => `${createReturnPathToken(key, id, Date.now())}@${DOMAIN}`);
  const request = async (kind: keyof typeof latencies): Promise<void> => {
    const startedAt = performance.now();
    const submitted = await submit('a@example.com', 'm'.repeat(2_000));
    await submitted.arrayBuffer();
    const read = await readMessage(reportedId);
    await read.arrayBuffer();
    latencies[kind].push(performance.now() - startedAt);
    for (const { status } of [submitted, read])
      if (status === 429 || status === 503) refusals[status] += 1;
      else if (status !== 200 && status !== 201) refusals.other += 1;
  };
  const replies: Record<string, number> = {};
  let seed = 0;
  const endAt = performance.now() + durationMs;
  while (performance.now() < endAt) {
    for (const kind of ['without', 'with'] as const) {
      const attacker = kind === 'with' ? startAttacker(attack) : null;
      const reports =
        kind === 'with'
          ? runScript<Record<string, number>>('report-attack.ts', {
              ...{ smtpPort, returnPaths, perSecond: REPORTS_PER_SECOND, seconds: WINDOW_MS / 1_000, seed },
            })
          : null;
      const windowEndAt = performance.now() + WINDOW_MS;
      while (performance.now() < windowEndAt) {
        await request(kind);
        await wait(REQUEST_INTERVAL_MS);
      }
      attacker?.kill('SIGKILL');
      for (const [code, count] of Object.entries((await reports) ?? {})) replies[code] = (replies[code] ?? 0) + count;
      seed += 1;
    }
  }
  const [without, withAttacks] = [calculateMedian(latencies.without), calculateMedian(latencies.with)];
  process.stdout.write(
    `median latency without the attacks ${without.toFixed(1)} ms, with them ${withAttacks.toFixed(1)} ms (${(withAttacks / without).toFixed(2)}), ` +
      `${latencies.with.length} requests with them; 429: ${refusals[429]}, 503: ${refusals[503]}, other errors: ${refusals.other}\n`,
  );
  const details = (await (await readMessage(reportedId)).json()) as Record<string, unknown>;
  const accounts = JSON.parse(await runCommand(service.folder, {}, 'account', 'list', '--json')) as { state: string }[];
  process.stdout.write(
    `replies to reports ${JSON.stringify(replies)}; the reported message has ${JSON.stringify(details).length} bytes and ${JSON.stringify(details.furtherReports)} further reports; accounts: ${accounts.map(({ state }) => state).join(', ')}\n`,
  );
  await service.stop();
  removeFolder(service.folder);
}

function startAttacker(attack: Attack): ChildProcess {
  return fork(fileURLToPath(import.meta.url), ['attack', JSON.stringify(attack)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

function startAttacks({ publicPort, smtpPort, eventsPort, keys }: Attack): void {
  process.on('disconnect', () => process.exit());
  /** Opens a connection again and again, and sends what `begin` sends. */
  const repeat = (port: number, localAddress: string, begin: (socket: Socket) => void): void => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }, () => begin(socket));
    socket.on('error', () => undefined);
    socket.resume();
    socket.once('close', () => setTimeout(() => repeat(port, localAddress, begin), REOPEN_DELAY_MS));
  };
  const post = (path: string, lengthBytes: number, headers: string): string =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${headers}Content-Length: ${lengthBytes}\r\n\r\n`;
  const megabyte = Buffer.from(`${'x'.repeat(998)}\r\n`.repeat(1_000));
  for (let n = 0; n < 64; n += 1)
    repeat(smtpPort, `127.0.0.${2 + (n % 4)}`, (socket) => {
      socket.write('EHLO a.example\r\nMAIL FROM:<>\r\nRCPT TO:<abuse@bounces.example.org>\r\n');
      socket.once('data', () => setTimeout(() => socket.write('DATA\r\n', () => socket.write(megabyte)), 100));
    });
  for (let n = 0; n < 7; n += 1)
    repeat(eventsPort, '127.0.0.2', (socket) => {
      socket.write(post('/events/mailersend', 10_000_000, ''));
      socket.write(Buffer.alloc(9_900_000, ' '));
    });
  for (let n = 0; n < 4; n += 1)
    repeat(eventsPort, '127.0.0.2', (socket) => {
      socket.end(post('/events/mailgun', 1_048_576, '') + '['.repeat(1_048_576));
    });
  for (const key of keys)
    for (let n = 0; n < 128; n += 1)
      repeat(publicPort, '127.0.0.2', (socket) => {
        socket.write(post('/api/v1/send-mail', 1_048_576, `Authorization: ${key}\r\n`));
        socket.write(Buffer.alloc(1_048_575, ' '));
      });
}
