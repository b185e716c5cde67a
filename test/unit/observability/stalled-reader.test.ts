import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, expect, test } from 'vitest';

const LOG_MODULE = new URL('../../../src/observability/log.ts', import.meta.url).href;
const LINE_COUNT = 20_000;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Logs `LINE_COUNT` lines, then writes `alive` to standard error ten times per second. */
const SCRIPT = `
  process.stdout.on('error', () => {}); // as the command line does
  const { createLog } = await import(${JSON.stringify(LOG_MODULE)});
  const log = createLog('info');
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
