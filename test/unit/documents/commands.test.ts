/**
 * A shell runs each code block of the manual after a line `<!-- run -->`, in the order of the page. `postrider` passes
 * its arguments to this process. For a page about moving from a provider, the folder contains its sample exports, and
 * no service runs.
 */
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import { type Service, startService } from '../../../src/main.ts';
import { listFiles, ROOT } from '../../house/source.ts';
import { describeExit } from '../../rig/exit.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { selectCaseCount } from '../../rig/sample.ts';
import { buildEnvironment, runCommand, spawnProgram } from '../../rig/service.ts';

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
const OTHER_PAGES = MARKED_PAGES.filter(({ page }) => !MOVING_PAGE.test(page) && page !== 'docs/accounts.md');

/** Pages that run in the same folder. docs/accounts.md names the second key of a new installation. */
const PAGE_GROUPS = [
  ...MARKED_PAGES.filter(({ page }) => page === 'docs/accounts.md').map((page) => [page]),
  OTHER_PAGES,
  // The commands of these pages differ only in the names of the files.
  ...MARKED_PAGES.filter(({ page }) => MOVING_PAGE.test(page))
    .slice(0, selectCaseCount(2, Number.POSITIVE_INFINITY))
    .map((page) => [page]),
].map((pages) => ({ pages, names: pages.map(({ page }) => page).join(', ') }));

/** The program `postrider` of the shell: writes arguments and input to files, and lets this process run the command. */
const PROGRAM = `#!/bin/sh
call=$(mktemp -d)
for argument; do printf '%s\\0' "$argument"; done > "$call/args"
cat > "$call/input"
exec curl -sS --fail-with-body --unix-socket "$RUNNER" "http://runner$call"
`;

interface Installation {
  readonly folder: string;
  readonly service: Service | null;
}

async function createInstallation(page: string): Promise<Installation> {
  const folder = createTemporaryFolder();
  const provider = MOVING_PAGE.exec(page)?.[1];
  if (provider !== undefined) cpSync(join(ROOT, 'test/corpus/exports', provider), folder, { recursive: true });
  const environment: Record<string, string> = {
    POSTRIDER_DATABASE: `sqlite:${join(folder, 'data/postrider.db')}`,
    POSTRIDER_LISTEN: '127.0.0.1:0',
    POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
    POSTRIDER_LOG: 'silent',
  };
  // The commands on the pages about moving use the store directly, so no service is started.
  const service = provider !== undefined ? null : await startService(loadSettings(environment, null));
  onTestFinished(() => service?.stop());
  if (service !== null) environment.POSTRIDER_LISTEN = new URL(service.publicUrl ?? '').host;
  const server = createServer(async (request, response) => {
    const [args, input] = ['args', 'input'].map((name) => readFileSync(join(request.url ?? '', name), 'utf8'));
    const { code, stdout, stderr } = await runCommand(
      folder,
      (args ?? '').split('\0').slice(0, -1),
      environment,
      input,
    );
    response.writeHead(code === 0 ? 200 : 500).end(stdout + stderr);
  });
  server.listen(join(folder, 'runner'));
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  mkdirSync(join(folder, 'tools'));
  writeFileSync(join(folder, 'tools/postrider'), PROGRAM);
  chmodSync(join(folder, 'tools/postrider'), 0o755);
  return { folder, service };
}

async function runBlock(block: string, { folder, service }: Installation) {
  const script = block
    .replaceAll('http://127.0.0.1:8080', service?.publicUrl ?? '')
    .replaceAll('http://127.0.0.1:8081', service?.operatorUrl ?? '')
    .replaceAll('pr_…', service?.firstKey ?? '')
    // `curl` exits with 0 after an error status unless it has the option --fail-with-body.
    .replaceAll(/\bcurl /g, 'curl --fail-with-body -sS ');
  const { PATH = '' } = process.env;
  const { stdout, stderr, exitPromise } = spawnProgram('sh', ['-e', '-c', script], {
    cwd: folder,
    env: {
      ...buildEnvironment({}),
      PATH: `${join(folder, 'tools')}:${PATH}`,
      RUNNER: join(folder, 'runner'),
      TMPDIR: folder,
    },
  });
  return { code: await exitPromise, output: stdout() + stderr() };
}

test('quick-start.md, sending.md and simulator.md have blocks to run', () => {
  expect(MARKED_PAGES.map(({ page }) => page)).toEqual(
    expect.arrayContaining(['docs/quick-start.md', 'docs/sending.md', 'docs/simulator.md']),
  );
  // A marker that no shell block follows would run no command.
  for (const { page, blocks, marks } of MARKED_PAGES) expect([page, blocks.length]).toEqual([page, marks]);
});

test.each(PAGE_GROUPS)('the commands of $names succeed as printed', async ({ pages }) => {
  const installation = await createInstallation(pages[0]?.page ?? '');
  for (const { page, blocks } of pages)
    for (const block of blocks) {
      const { code, output } = await runBlock(block, installation);
      if (code !== 0) throw new Error(`${page}: this block ${describeExit(code)}:\n\n${block}\n${output}`);
    }
  // A failing command is detected, even if other commands follow.
  expect((await runBlock('postrider account show nobody\ntrue\n', installation)).code).not.toBe(0);
  expect((await runBlock('curl http://127.0.0.1:8080/nothing\n', installation)).code).not.toBe(0);
});
