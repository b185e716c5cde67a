/** Starts the scripts of this folder, such as the load generators and the sinks, as separate processes. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { readFirstLine } from './postrider.ts';

/** Starts a script of this folder. */
export function startScript(name: string, ...args: string[]): ChildProcess {
  return spawn(process.execPath, [new URL(name, import.meta.url).pathname, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

/** Starts a script with a JSON argument and resolves to the value of the first output line, which is JSON. */
export async function runScript<T>(name: string, argument: unknown): Promise<T> {
  return JSON.parse(await readFirstLine(startScript(name, JSON.stringify(argument)))) as T;
}

/**
 * Starts a sink and calls `run` with its port and a function that returns the number of received messages. After
 * the promise of `run` is settled, the sink ends. `script` is the file of the sink, and `args` are its arguments.
 */
export async function withSink<T>(
  run: (port: number, readReceivedCount: () => Promise<number>) => Promise<T>,
  script = 'sink.ts',
  ...args: string[]
): Promise<T> {
  const sink = startScript(script, ...args);
  const { port } = JSON.parse(await readFirstLine(sink)) as { port: number };
  const lines = createInterface(sink.stdout ?? process.stdin);
  const readReceivedCount = () =>
    new Promise<number>((resolve) => {
      lines.once('line', (line) => resolve((JSON.parse(line) as { receivedCount: number }).receivedCount));
      sink.stdin?.write('?\n');
    });
  try {
    return await run(port, readReceivedCount);
  } finally {
    sink.stdin?.end();
  }
}
