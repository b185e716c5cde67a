import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import type { Settings } from '../../../src/config/settings.ts';
import { parseAddress } from '../../../src/model/address.ts';
import { createLog, type Log } from '../../../src/observability/log.ts';
import {
  formatLogEventsPage,
  LOG_EVENTS,
  LOG_FIELDS,
  type LogEventName,
  type LogLevel,
} from '../../../src/observability/log-events.ts';

const LOG_MODULE = new URL('../../../src/observability/log.ts', import.meta.url).href;
const EVENT_NAMES = Object.entries(LOG_EVENTS).flatMap(([name, event]) =>
  event === null ? [] : [name as LogEventName],
);

function collectLines(
  logLevel: LogLevel,
  writeLines: (log: Log) => void,
  logRecipients: Settings['logRecipients'] = 'masked',
): Record<string, unknown>[] {
  const lines: string[] = [];
  const log = createLog({ logLevel, logRecipients }, { write: (line) => lines.push(line) });
  writeLines(log);
  void log.close();
  return lines.map((line) => {
    expect(line).toMatch(/^[^\p{Cc}\u202e\u2028]*\n$/u);
    return JSON.parse(line);
  });
}

test('a line consists of level, time, the name of the event and the fields of the event', () => {
  const fields = { id: 'm-1', nextHop: 'relay:25', durationMs: 12, attemptCount: 1 };
  const [line] = collectLines('info', (log) => log.write('message.delivered', fields));
  expect(line).toEqual({ level: 'info', time: expect.any(String), event: 'message.delivered', ...fields });
  expect(Object.keys(line ?? {}).slice(0, 3)).toEqual(['level', 'time', 'event']);
});

test('every log event has a name of the shape noun.verb, and every field is camelCase and used', () => {
  for (const name of EVENT_NAMES) expect(name).toMatch(/^[a-z]+(?:_[a-z]+)*\.[a-z]+(?:_[a-z]+)*$/);
  for (const field of Object.keys(LOG_FIELDS)) expect(field).toMatch(/^[a-z]+(?:[A-Z][a-z]+)*$/);
  const usedFields = new Set<string>(EVENT_NAMES.flatMap((name) => [...LOG_EVENTS[name].fields]));
  expect(Object.keys(LOG_FIELDS).filter((field) => !usedFields.has(field))).toEqual([]);
});

test('docs/log-events.md equals the page that is generated from the definitions', () => {
  const page = readFileSync(new URL('../../../docs/log-events.md', import.meta.url), 'utf8');
  expect(page).toBe(formatLogEventsPage());
});

test('fields that the event does not list, objects and errors are not logged', () => {
  const secrets = {
    message: 'SECRET-1',
    subject: 'SECRET-2',
    password: 'SECRET-3',
    authorization: 'SECRET-4',
    apiKey: 'SECRET-5',
  };
  const nestedValue: unknown = { detail: { inner: 'SECRET-6' }, error: new Error('SECRET-7'), ...secrets };
  const lines = collectLines('debug', (log) => {
    for (const name of EVENT_NAMES) log.write(name, Object.assign({ id: 'm' }, nestedValue));
  });
  expect(lines.map(({ event }) => event)).toEqual(EVENT_NAMES);
  expect(JSON.stringify(lines)).not.toContain('SECRET');
  for (const name of ['message', 'subject', 'password', 'body', 'authorization'])
    expect(Object.keys(LOG_FIELDS)).not.toContain(name);
});

test('passwords in URLs and API keys are masked', () => {
  const error = `postgres://me:SECRET@db.example/mail refused the key pr_${'x'.repeat(40)}`;
  const [line] = collectLines('info', (log) => log.write('node.operation_failed', { operation: 'x', error }));
  expect(line?.error).toBe('postgres://me:********@db.example/mail refused the key pr_xxxxxxx********');
});

test('a line contains the recipient only if recipients are logged in full', () => {
  const replyText = '550 <ada@example.com>: ada%40example.com is unknown';
  const readLine = (logRecipients: Settings['logRecipients']) => {
    const fields = { to: 'ada@example.com', replyText };
    const [line = {}] = collectLines('info', (log) => log.write('message.bounced', fields), logRecipients);
    return [line.to, line.replyText];
  };
  expect(readLine('masked')).toEqual(['a…@example.com', '550 <a…@example.com>: a…%40example.com is unknown']);
  expect(readLine('none')).toEqual([undefined, '550 <…>: … is unknown']);
  expect(readLine('full')).toEqual(['ada@example.com', replyText]);
});

test('with `masked` and `none` no field of any event contains an accepted recipient', () => {
  const localPart = fc.oneof(
    fc.stringMatching(/^[a-z0-9!#$%&'*+/=?^_`{|}~-]{1,30}(?:\.[a-z0-9ä漢-]{1,20})?$/u),
    fc.stringMatching(/^"(?:[ !#-[\]-~]|\\["\\]){1,30}"$/),
  );
  const recipient = fc
    .tuple(localPart, fc.constantFrom('example.com', 'münchen.example', 'a.b-c.example'))
    .map(([local, domain]) => `${local}@${domain}`)
    .filter((address) => parseAddress(address) !== null);
  fc.assert(
    fc.property(recipient, fc.constantFrom('masked', 'none'), (to, recipients) => {
      const text = `550 5.1.1 RCPT TO:<${to}>... no "${to}" here, write to ${to}.`;
      const fields = Object.fromEntries(Object.keys(LOG_FIELDS).map((name) => [name, text]));
      const lines = collectLines(
        'debug',
        (log) => {
          for (const name of EVENT_NAMES) log.write(name, { ...fields, to });
        },
        recipients,
      );
      expect(lines.filter((line) => Object.values(line).some((value) => String(value).includes(to)))).toEqual([]);
    }),
  );
});

test('each logged text is one line of limited length without control characters', () => {
  const replyText = `a\r\nb\u2028c\u0000\u0085\u202e${'x'.repeat(5000)}`;
  const [line] = collectLines('info', (log) => log.write('message.bounced', { replyText }));
  const text = String(line?.replyText);
  expect(text.startsWith('a\r\nb\u2028c\u0000\u0085\u202ex')).toBe(true);
  expect(text.length).toBeLessThanOrEqual(1001);
});

test('each level writes its events and those of higher levels, and silent writes nothing', () => {
  const writeLines = (log: Log) => {
    log.write('message.accepted', { id: 'm' });
    log.write('message.bounced', { id: 'm' });
    log.write('node.warned', { detail: 'x' });
    log.write('node.operation_failed', { operation: 'x' });
  };
  const listNames = (level: LogLevel) => collectLines(level, writeLines).map((line) => line.event);
  expect(listNames('debug')).toEqual(['message.accepted', 'message.bounced', 'node.warned', 'node.operation_failed']);
  expect(listNames('info')).toEqual(['message.bounced', 'node.warned', 'node.operation_failed']);
  expect(listNames('error')).toEqual(['node.operation_failed']);
  expect(listNames('silent')).toEqual([]);
});

test('buffered lines are written when the log is closed or the process ends', () => {
  for (const endStatement of ['await log.close(); process.exit(0);', 'process.exit(0);', '']) {
    const { status, lines } = logInProcess(endStatement);
    expect(status).toBe(0);
    expect(lines.map((line) => JSON.parse(line).count)).toEqual(Array.from({ length: 500 }, (_, index) => index));
  }
});

function logInProcess(endStatement: string): { status: number | null; lines: string[] } {
  const script = `const { createLog } = await import(${JSON.stringify(LOG_MODULE)}); const log = createLog({ logLevel: 'info', logRecipients: 'masked' });
    for (let i = 0; i < 500; i += 1) log.write('node.leases_recovered', { count: i }); ${endStatement}`;
  const processRun = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  return { status: processRun.status, lines: processRun.stdout.trim().split('\n') };
}

const LINE_COUNT = 20_000;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Logs `LINE_COUNT` lines, then writes `alive` to standard error ten times per second. */
const SCRIPT = `
  process.stdout.on('error', () => {}); // as the command line does
  const { createLog } = await import(${JSON.stringify(LOG_MODULE)});
  const log = createLog({ logLevel: 'info', logRecipients: 'masked' });
  for (let i = 0; i < ${LINE_COUNT}; i += 1) log.write('node.leases_recovered', { node: 'x'.repeat(200), count: i });
  setInterval(() => process.stderr.write('alive ' + log.getDroppedLineCount() + '\\n'), 100);`;

function startProcess() {
  const child = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT], { stdio: ['pipe', 'pipe', 'pipe'] });
  children.push(child);
  let stderrText = '';
  child.stderr.on('data', (chunk) => {
    stderrText += chunk;
  });
  return { child, stderr: () => stderrText };
}

test('a stalled reader does not block the process, and lines beyond the limit are dropped and counted', async () => {
  const { child, stderr } = startProcess();
  // The process writes more than twenty lines to standard error while the pipe is full.
  await expect.poll(() => stderr().match(/alive \d+\n/g)?.length ?? 0).toBeGreaterThan(20);
  const droppedCount = Number(/alive (\d+)\n$/.exec(stderr())?.[1]);
  expect(droppedCount).toBeGreaterThan(LINE_COUNT / 2);
  expect(droppedCount).toBeLessThan(LINE_COUNT);

  // The reader continues: the buffered lines arrive complete and in order,
  // followed by the number of dropped lines.
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  await expect.poll(() => text.includes('"event":"log.lines_dropped"')).toBe(true);
  const lines = text.trimEnd().split('\n');
  const entries = lines.map((line) => JSON.parse(line));
  expect(entries.at(-1)).toMatchObject({ event: 'log.lines_dropped', count: droppedCount });
  expect(entries.slice(0, -1).map(({ count }) => count)).toEqual(
    Array.from({ length: LINE_COUNT - droppedCount }, (_, index) => index),
  );
  expect(Buffer.byteLength(text)).toBeLessThan(1.3 * 1_048_576);
});
