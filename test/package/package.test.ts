/**
 * Tests the npm package, which is packed from a copy of the checkout and installed in an empty folder.
 */
import { execFile, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../house/source.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { installPackage, type PackResult } from '../rig/installed-package.ts';
import { buildEnvironment, startProcess, submitAccepted } from '../rig/service.ts';

const runFile = promisify(execFile);

/** Size limits of the package. */
const MAX_PACKED_BYTES = 3_000_000;
const MAX_UNPACKED_BYTES = 10_000_000;
const MAX_FILES = 600;

interface SourceMap {
  readonly sources: readonly string[];
  readonly sourcesContent: readonly string[];
}

const suiteFolder = mkdtempSync(join(tmpdir(), 'postrider-test-'));
afterAll(() => rmSync(suiteFolder, { recursive: true, force: true }));

let folder: string;
let packResult: PackResult;
let command: string;
beforeAll(async () => {
  ({ folder, packResult, command } = await installPackage(suiteFolder));
}, 300_000);

describe('the npm package', () => {
  test('contains the compiled service, the dashboard, the systemd unit and nothing else, within its size limits', () => {
    const paths = packResult.files.map(({ path }) => path);
    const allowedPathPattern =
      /^(package\.json|README\.md|LICENSE|bin\/postrider\.js|dist\/index\.d\.ts|dist\/.+\.(js|js\.map|sql)|dashboard\/dist\/.+|deploy\/systemd\/postrider\.service)$/;
    expect(paths.filter((path) => !allowedPathPattern.test(path))).toEqual([]);
    expect(paths).toContain('dashboard/dist/index.html');
    expect(packResult.files.length).toBeLessThan(MAX_FILES);
    expect(packResult.size).toBeLessThan(MAX_PACKED_BYTES);
    expect(packResult.unpackedSize).toBeLessThan(MAX_UNPACKED_BYTES);
    process.stderr.write(
      `package: ${packResult.size} bytes packed, ${packResult.unpackedSize} unpacked, ${packResult.files.length} files\n`,
    );
  });

  test('contains source maps with the source texts, so that stack traces refer to lines of the source files', () => {
    const dist = join(folder, 'node_modules', 'postrider', 'dist');
    const maps = readdirSync(dist).filter((name) => name.endsWith('.js.map'));
    const sources = maps.flatMap((name) => {
      const map = JSON.parse(readFileSync(join(dist, name), 'utf8')) as SourceMap;
      return map.sources.map((source, at) => ({ path: join(ROOT, 'dist', source), text: map.sourcesContent[at] }));
    });
    expect(sources.map(({ path }) => path)).toContain(join(ROOT, 'src', 'main.ts'));
    expect(sources.filter(({ path, text }) => readFileSync(path, 'utf8') !== text)).toEqual([]);
  });

  test('prints its version with --version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    const { stdout } = await runFile(join(folder, 'node_modules', '.bin', 'postrider'), ['--version'], {
      env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ''}` },
    });
    expect(stdout).toBe(`${version}\n`);
  });

  test('serves its dashboard and delivers a message, which its commands show and find', async () => {
    const dataFolder = createTemporaryFolder();
    const service = await startProcess(dataFolder, {}, { launcher: command });
    const id = await submitAccepted(service.publicUrl, service.key ?? '', {});
    const runCommand = async (...args: string[]) =>
      (await runFile(process.execPath, [command, ...args, '--json'], { cwd: dataFolder, env: buildEnvironment({}) }))
        .stdout;
    const readState = async () => (JSON.parse(await runCommand('message', 'show', id)) as { state: string }).state;
    await expect.poll(readState).toBe('delivered');
    // A separate thread builds the search index, so the search may find the message later.
    const search = async () => JSON.parse(await runCommand('message', 'search', 'rita')) as object;
    await expect.poll(search).toMatchObject({ messages: [{ id }] });
    const page = await fetch(service.operatorUrl);
    const html = await page.text();
    const scriptPath = /src="([^"]+\.js)"/.exec(html)?.[1] ?? '';
    expect((await fetch(new URL(scriptPath, service.operatorUrl))).headers.get('content-type')).toContain('javascript');
    service.kill('SIGTERM');
    expect(await service.exitPromise).toBe(0);
  });

  test('can start the service within another program', async () => {
    const program = `
      import { startService } from 'postrider';
      const folder = process.argv[2];
      const service = await startService({
        POSTRIDER_DATABASE: 'sqlite:' + folder + '/embedded.db',
        POSTRIDER_LISTEN: '127.0.0.1:0', POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0', POSTRIDER_LOG: 'silent',
      });
      const body = JSON.stringify({ to: 'rita@example.com', from: 'shop@example.org', subject: 's', message: 'm' });
      const headers = { 'Content-Type': 'application/json', Authorization: service.firstKey };
      const answer = await fetch(service.publicUrl + '/api/v1/send-mail', { method: 'POST', headers, body });
      process.stdout.write(String(answer.status));
      await service.stop();
      await startService({ POSTRIDER_ROLES: 'nothing' }).catch((error) => process.stdout.write(' ' + error.message));
    `;
    writeFileSync(join(folder, 'embedded.mjs'), program);
    const dataFolder = createTemporaryFolder();
    const { stdout } = await runFile(process.execPath, ['embedded.mjs', dataFolder], {
      cwd: folder,
      env: buildEnvironment({}),
    });
    expect(stdout).toMatch(/^201 POSTRIDER_ROLES: "nothing" is not /);
  });

  test('has declarations that compile in a strict program without @types packages', async () => {
    const program = `
      import { type RunningService, type SettingValues, startService } from 'postrider';
      const settings: SettingValues = { POSTRIDER_LISTEN: '127.0.0.1:0' };
      const service: RunningService = await startService(settings);
      export const url: string | null = service.publicUrl;
    `;
    expect(compileProgram(program)).toEqual({ output: '', status: 0 });
    const programWithUnknownSetting =
      "import { startService } from 'postrider'; void startService({ LISTEN: '127.0.0.1:0' });";
    expect(compileProgram(programWithUnknownSetting).output).toContain('TS2353');
  });
});

/** Compiles a program in the folder of the installation. Returns the output and the exit code of the compiler. */
function compileProgram(program: string): { readonly output: string; readonly status: number | null } {
  writeFileSync(join(folder, 'program.ts'), program);
  const compilerOptions = { module: 'nodenext', target: 'es2024', strict: true, noEmit: true, types: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
  return { output: stdout, status };
}

describe('the prepare script of a checkout', () => {
  test('prints one line with the remedy if npm installs the checkout without development dependencies', () => {
    const copy = createTemporaryFolder();
    for (const name of ['bin', 'package.json']) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
    const result = spawnSync(process.execPath, [join(copy, 'bin', 'prepare.js')], {
      encoding: 'utf8',
      env: { ...process.env, npm_command: 'ci' },
    });
    expect(result.stderr).toContain('without `--omit=dev`');
    expect(result.stderr.trim().split('\n')).toHaveLength(1);
    expect(result.status).toBe(1);
  });
});
