import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createLog, LOG_FIELDS, LOG_VERBS, type LogLevel, type LogVerb } from '../../../src/observability/log.ts';

function logged(level: LogLevel, run: (log: ReturnType<typeof createLog>) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  const log = createLog(level, { write: (line) => lines.push(line) });
  run(log);
  void log.close();
  return lines.map((line) => {
    expect(line.endsWith('\n') && line.indexOf('\n') === line.length - 1).toBe(true);
    return JSON.parse(line);
  });
}

test('a line is one verb with its fields', () => {
  const [line] = logged('info', (log) => log.delivered({ id: 'm-1', remote: 'relay:25', tookMs: 12, attempts: 1 }));
  expect(line).toMatchObject({ verb: 'delivered', id: 'm-1', remote: 'relay:25', tookMs: 12, attempts: 1 });
  expect(typeof line?.time).toBe('string');
});

test('what is not in the list of fields never gets out, nor do objects and errors', () => {
  const secrets = {
    message: 'SECRET-1',
    subject: 'SECRET-2',
    password: 'SECRET-3',
    authorization: 'SECRET-4',
    apiKey: 'SECRET-5',
  };
  const nested: unknown = { text: { inner: 'SECRET-6' }, error: new Error('SECRET-7'), ...secrets };
  const lines = logged('debug', (log) => {
    for (const verb of Object.keys(LOG_VERBS) as LogVerb[]) log[verb](Object.assign({ id: 'm' }, nested));
  });
  expect(lines).toHaveLength(Object.keys(LOG_VERBS).length);
  expect(JSON.stringify(lines)).not.toContain('SECRET');
  for (const name of ['message', 'subject', 'password', 'body', 'authorization'])
    expect(LOG_FIELDS).not.toContain(name);
});

test('texts are one line and bounded', () => {
  const [line] = logged('info', (log) => log.bounced({ text: `a\r\nb\u2028c\u0000${'x'.repeat(5000)}` }));
  const text = String(line?.text);
  expect(text.startsWith('a\r\nb\u2028c\u0000x')).toBe(true);
  expect(text.length).toBeLessThanOrEqual(1001);
});

test('accepted is for debugging, outcomes are information, silent is silent', () => {
  const run = (log: ReturnType<typeof createLog>) => {
    log.accepted({ id: 'm' });
    log.bounced({ id: 'm' });
    log.warned({ text: 'x' });
    log.failed({ text: 'x' });
  };
  const verbs = (level: LogLevel) => logged(level, run).map((line) => line.verb);
  expect(verbs('debug')).toEqual(['accepted', 'bounced', 'warned', 'failed']);
  expect(verbs('info')).toEqual(['bounced', 'warned', 'failed']);
  expect(verbs('error')).toEqual(['failed']);
  expect(verbs('silent')).toEqual([]);
});

test('what is buffered is written out at close, and by a process that ends without one', () => {
  for (const end of ['await log.close(); process.exit(0);', 'process.exit(0);', '']) {
    const { status, lines } = loggedByProcess(end);
    expect(status).toBe(0);
    expect(lines.map((line) => JSON.parse(line).count)).toEqual(Array.from({ length: 500 }, (_, index) => index));
  }
});

function loggedByProcess(end: string): { status: number | null; lines: string[] } {
  const path = new URL('../../../src/observability/log.ts', import.meta.url).href;
  const script = `const { createLog } = await import(${JSON.stringify(path)}); const log = createLog('info');
    for (let i = 0; i < 500; i += 1) log.delivered({ count: i }); ${end}`;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  return { status: run.status, lines: run.stdout.trim().split('\n') };
}
