import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createLog, LOG_FIELDS, LOG_VERBS, type LogLevel, type LogVerb } from '../../../src/observe/log.ts';

function logged(level: LogLevel, run: (log: ReturnType<typeof createLog>) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  const log = createLog(level, { write: (line) => lines.push(line) });
  run(log);
  log.close();
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
  expect(text.startsWith('a  b c ')).toBe(true);
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

test('what is buffered is written out at close, also when the process ends at once', () => {
  const path = new URL('../../../src/observe/log.ts', import.meta.url).href;
  const script = `const { createLog } = await import(${JSON.stringify(path)}); const log = createLog('info');
    for (let i = 0; i < 500; i += 1) log.delivered({ count: i }); log.close(); process.exit(0);`;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  const lines = run.stdout.trim().split('\n');
  expect(run.status).toBe(0);
  expect(lines).toHaveLength(500);
  expect(JSON.parse(lines[499] ?? '')).toMatchObject({ verb: 'delivered', count: 499 });
});
