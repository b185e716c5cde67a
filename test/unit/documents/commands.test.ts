/**
 * Tests that the commands of the manual succeed as printed. A shell runs each code block after a line `<!-- run -->`,
 * in the order of the page, in one folder with one running service per page. For a page about moving from a provider,
 * the folder contains the sample exports of that provider, and no service runs. The addresses and the key in a block
 * are replaced with those of the service. test/unit/cli/printed-commands.test.ts compares the other printed commands
 * with the definitions of the commands.
 */
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listFiles, ROOT } from '../../house/source.ts';
import { describeExit } from '../../rig/exit.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { buildEnvironment, type ServiceProcess, startProcess } from '../../rig/service.ts';

const LAUNCHER = join(ROOT, 'bin/postrider.js');

/** Returns the code blocks of a page that follow a line `<!-- run -->`, without the indentation of a list. */
function findMarkedBlocks(text: string): readonly string[] {
  return [...text.matchAll(/^( *)<!-- run -->\n+\1```sh\n([\s\S]*?)^\1```$/gm)].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

const MARKED_PAGES = [...readdirSync(ROOT).filter((name) => name.endsWith('.md')), ...listFiles('docs', '.md')]
  .map((page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    return { page, blocks: findMarkedBlocks(text), marks: text.split('<!-- run -->').length - 1 };
  })
  .filter(({ marks }) => marks > 0);

const MOVING_PAGE = /^docs\/moving\/from-([a-z]+)\.md$/;

/** Copies the sample exports of the provider to the folder if the page is about the move from a provider. */
function copyExports(page: string, folder: string): void {
  const provider = MOVING_PAGE.exec(page)?.[1];
  if (provider === undefined) return;
  cpSync(join(ROOT, 'test/corpus/exports', provider), folder, { recursive: true });
}

/** Runs a block. The first command that fails ends the block. */
function runBlock(block: string, folder: string, service: ServiceProcess | null) {
  const binFolder = join(folder, 'tools');
  mkdirSync(binFolder, { recursive: true });
  // The installed command runs the launcher of this checkout.
  writeFileSync(join(binFolder, 'postrider'), `#!/bin/sh\nexec '${process.execPath}' '${LAUNCHER}' "$@"\n`);
  chmodSync(join(binFolder, 'postrider'), 0o755);
  const script = block
    .replaceAll('http://127.0.0.1:8080', service?.publicUrl ?? '')
    .replaceAll('http://127.0.0.1:8081', service?.operatorUrl ?? '')
    .replaceAll('pr_…', service?.key ?? '')
    // `curl` exits with 0 after an error status unless it has the option --fail-with-body.
    .replaceAll(/\bcurl /g, 'curl --fail-with-body -sS ');
  const listenSetting = service === null ? {} : { POSTRIDER_LISTEN: new URL(service.publicUrl).host };
  const { PATH = '' } = process.env;
  const child = spawn('sh', ['-e', '-c', script], {
    cwd: folder,
    env: { ...buildEnvironment(listenSetting), PATH: `${binFolder}:${PATH}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return new Promise<{ code: number | null; output: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, output })),
  );
}

test('quick-start.md, sending.md and simulator.md have blocks to run', () => {
  expect(MARKED_PAGES.map(({ page }) => page)).toEqual(
    expect.arrayContaining(['docs/quick-start.md', 'docs/sending.md', 'docs/simulator.md']),
  );
  // A marker that no shell block follows would run no command.
  for (const { page, blocks, marks } of MARKED_PAGES) expect([page, blocks.length]).toEqual([page, marks]);
});

describe.each(MARKED_PAGES)('the commands of $page', ({ page, blocks }) => {
  test('succeed as printed', async () => {
    const folder = createTemporaryFolder();
    copyExports(page, folder);
    // The commands on the pages about moving use the store directly, so no service is started.
    const service = MOVING_PAGE.test(page) ? null : await startProcess(folder);
    for (const block of blocks) {
      const { code, output } = await runBlock(block, folder, service);
      if (code !== 0) throw new Error(`${page}: this block ${describeExit(code)}:\n\n${block}\n${output}`);
    }
  });
});

test('a failing command is detected, even if other commands follow', async () => {
  const folder = createTemporaryFolder();
  const service = await startProcess(folder);
  expect((await runBlock('postrider account show nobody\ntrue\n', folder, service)).code).toBe(1);
  expect((await runBlock('curl http://127.0.0.1:8080/nothing\n', folder, service)).code).not.toBe(0);
});
