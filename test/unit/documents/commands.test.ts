/**
 * Commands of the manual work as printed. A code block behind the line `<!-- run -->` is run by a shell, block after block of a
 * page in one folder beside a service of its own. Addresses and the key are the service's; nothing else is changed.
 * test/unit/cli/printed-commands.test.ts holds every other printed command against the definitions of the commands.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { filesUnder, ROOT } from '../../house/source.ts';
import { temporaryFolder } from '../../rig/folder.ts';
import { environment, type ServiceProcess, startProcess } from '../../rig/service.ts';

const LAUNCHER = join(ROOT, 'bin/postrider.js');

/** The code blocks that a page marks as ones that run, without the indentation of a list. */
function markedBlocks(text: string): readonly string[] {
  return [...text.matchAll(/^( *)<!-- run -->\n+\1```sh\n([\s\S]*?)^\1```$/gm)].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

const MARKED_PAGES = [...readdirSync(ROOT).filter((name) => name.endsWith('.md')), ...filesUnder('docs', '.md')]
  .map((page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    return { page, blocks: markedBlocks(text), marks: text.split('<!-- run -->').length - 1 };
  })
  .filter(({ marks }) => marks > 0);

/** Runs a block; the first command that fails ends it. */
function runBlock(block: string, folder: string, service: ServiceProcess) {
  const binFolder = join(folder, 'tools');
  mkdirSync(binFolder, { recursive: true });
  // What npx does in a checkout.
  writeFileSync(join(binFolder, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' '${LAUNCHER}' "$@"\n`);
  chmodSync(join(binFolder, 'npx'), 0o755);
  const script = block
    .replaceAll('http://127.0.0.1:8080', service.publicUrl)
    .replaceAll('http://127.0.0.1:8081', service.operatorUrl)
    .replaceAll('pr_…', service.key ?? '')
    // `curl` ends with 0 whatever the server answers; here an error is a failure.
    .replaceAll(/\bcurl /g, 'curl --fail-with-body -sS ');
  const address = new URL(service.publicUrl).host;
  const { PATH = '' } = process.env;
  const child = spawn('sh', ['-e', '-c', script], {
    cwd: folder,
    env: { ...environment({ POSTRIDER_LISTEN: address }), PATH: `${binFolder}:${PATH}` },
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

test('quick-start.md, sending.md and simulator.md have blocks that run', () => {
  expect(MARKED_PAGES.map(({ page }) => page)).toEqual(
    expect.arrayContaining(['docs/quick-start.md', 'docs/sending.md', 'docs/simulator.md']),
  );
  // A mark that belongs to no shell block would hide a block that is not run.
  for (const { page, blocks, marks } of MARKED_PAGES) expect([page, blocks.length]).toEqual([page, marks]);
});

describe.each(MARKED_PAGES)('the commands of $page', ({ page, blocks }) => {
  test('run as printed', async () => {
    const folder = temporaryFolder();
    const service = await startProcess(folder);
    for (const block of blocks) {
      const { code, output } = await runBlock(block, folder, service);
      if (code !== 0) throw new Error(`${page}: this block ended with ${code}:\n\n${block}\n${output}`);
    }
  });
});

test('a failing command is found, also before others', async () => {
  const folder = temporaryFolder();
  const service = await startProcess(folder);
  expect((await runBlock('npx postrider account show nobody\ntrue\n', folder, service)).code).toBe(1);
  expect((await runBlock('curl http://127.0.0.1:8080/nothing\n', folder, service)).code).not.toBe(0);
});
