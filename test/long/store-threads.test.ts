import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createTemporaryFolder } from '../rig/folder.ts';

test('no WebAssembly code is collected after a thread has started, because V8 13.6 can abort the process', async () => {
  const module = new URL('../../src/store/sqlite/store.ts', import.meta.url);
  const code = `const { openSqliteStore } = await import('${module}');
    for (const name of ['first', 'second', 'third']) {
      const store = await openSqliteStore({ path: process.argv[1] + name, exclusive: false });
      if (name === 'first') console.log('OPENED');
      await store.readQueueStatistics();
      await store.close();
    }
    console.log('CLOSED');`;
  // Each unused function would start a collection, and V8 reports each collection.
  const flags = ['--stress-wasm-code-gc', '--trace-wasm-code-gc', '--eval', code];
  const folder = createTemporaryFolder();
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--', join(folder, 'store-')]);
  const outputSinceOpen = stdout.slice(stdout.indexOf('OPENED'));
  expect(outputSinceOpen).toContain('CLOSED');
  expect(outputSinceOpen).not.toContain('[wasm-gc] Triggering');
});

test('a limit of the main thread’s young generation does not apply to the store’s threads', async () => {
  const client = new URL('../../src/store/sqlite/store.ts', import.meta.url);
  const thread = `import { getHeapStatistics } from 'node:v8';
    import { parentPort } from 'node:worker_threads';
    parentPort.postMessage({ failed: String(getHeapStatistics().heap_size_limit) });`;
  const code = `const { startThread } = await import('${client}');
    const module = new URL('data:text/javascript,' + ${JSON.stringify(encodeURIComponent(thread))});
    for (const maxYoungGenerationSizeMb of [8, 24, 48])
      await startThread(module, {}, { maxYoungGenerationSizeMb, maxOldGenerationSizeMb: 256 }).catch(({ message }) => console.log(message));`;
  const readLimits = async (...flags: string[]) => {
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--eval', code]);
    return stdout.trim().split('\n');
  };
  const expectedLimits = await readLimits();
  expect(new Set(expectedLimits).size).toBe(3);
  expect(await readLimits('--max-semi-space-size=16')).toEqual(expectedLimits);
});
