/**
 * Checks that the tests catch the deliberate faults of deliberate-faults-list.ts: applies each fault to a copy of the
 * checkout and runs the part of the default tests that concerns it. `node test/long/deliberate-faults.ts [NAME…]` runs
 * all faults or the named ones, and exits with 1 if a fault is missed or no longer fits the source.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { listFiles, ROOT } from '../house/source.ts';
import { setup as startPostgresServers } from '../rig/postgres-setup.ts';
import { SHARED_SERVERS } from '../rig/postgres-version.ts';
import { DELIBERATE_FAULTS, type DeliberateFault } from './deliberate-faults-list.ts';

const DASHBOARD_BUILD = 'dashboard/dist';

/** `caught`: a test failed. `missed`: all tests passed. `invalid`: the tests did not run. */
export interface FaultResult {
  readonly kind: 'caught' | 'missed' | 'invalid';
  readonly detail: string;
  readonly seconds: number;
}

export interface FaultyCopy {
  runUnchanged(): Promise<FaultResult>;
  run(fault: DeliberateFault): Promise<FaultResult>;
  dispose(): Promise<void>;
}

export function findInvalidFaults(faults: readonly DeliberateFault[]): readonly string[] {
  const testFiles = listFiles('test', '.test.ts').filter((path) => !path.startsWith('test/long/'));
  return faults.flatMap(({ name, file, find, part }) => {
    const path = join(ROOT, file);
    if (!existsSync(path)) return [`${name}: there is no ${file}`];
    const text = readFileSync(path, 'utf8');
    const count = text.split(find).length - 1;
    const lines = part
      .filter((filter) => !testFiles.some((testFile) => testFile.includes(filter)))
      .map((filter) => `${name}: no test file matches ${filter}`);
    if (count !== 1) lines.push(`${name}: ${file} contains the text of the fault ${count} times`);
    return lines;
  });
}

export async function createFaultyCopy(faults: readonly DeliberateFault[]): Promise<FaultyCopy> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-faults-'));
  const copy = join(folder, 'checkout');
  let child: ChildProcess | null = null;

  // The tests run in their own process group, so that their processes end with them.
  function removeCopy(): void {
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
  const removeOnSignal = (signal: NodeJS.Signals) => {
    removeCopy();
    process.off(signal, removeOnSignal);
    process.kill(process.pid, signal);
  };
  process.on('exit', removeCopy);
  process.on('SIGINT', removeOnSignal);
  process.on('SIGTERM', removeOnSignal);

  const options = { recursive: true, preserveTimestamps: true };
  const listArgs = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const sourcePaths = execFileSync('git', listArgs, { cwd: ROOT, encoding: 'utf8' }).split('\0').slice(0, -1);
  for (const path of [...sourcePaths, DASHBOARD_BUILD].filter((path) => existsSync(join(ROOT, path))))
    cpSync(join(ROOT, path), join(copy, path), options);
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const stopPostgresServers = await startPostgresServers();
  const serverNames = Object.values(SHARED_SERVERS);
  const environment = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST_)/.test(name) || serverNames.includes(name)),
  );

  async function runTests(filters: readonly string[]): Promise<FaultResult> {
    const startedAt = performance.now();
    const outputFile = join(folder, 'report.json');
    rmSync(outputFile, { force: true });
    const reporter = ['--reporter=json', `--outputFile.json=${outputFile}`];
    const args = ['run', '--project=sqlite', '--bail=1', ...reporter, ...new Set(filters)];
    const testProcess = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...args], {
      cwd: copy,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...environment, NODE_COMPILE_CACHE: join(folder, 'compiled') },
    });
    child = testProcess;
    let errors = '';
    testProcess.stderr.on('data', (chunk: Buffer) => {
      errors = `${errors}${chunk.toString()}`.slice(-2_000);
    });
    const code = await new Promise((resolve) => testProcess.once('close', resolve));
    child = null;
    const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
    if (!existsSync(outputFile)) return { kind: 'invalid', detail: `the tests did not run: ${errors.trim()}`, seconds };
    const failedTest = findFailedTest(readFileSync(outputFile, 'utf8'), copy);
    if (failedTest !== null) return { kind: 'caught', detail: failedTest, seconds };
    if (code === 0) return { kind: 'missed', detail: 'no test failed', seconds };
    return { kind: 'invalid', detail: `no test failed, but the tests did not end: ${errors.trim()}`, seconds };
  }

  return {
    runUnchanged: () => runTests(faults.flatMap(({ part }) => part)),
    async run({ file, find, replace, part }) {
      const path = join(copy, file);
      const text = readFileSync(path, 'utf8');
      const { atime, mtime } = statSync(path);
      const isDashboard = file.startsWith('dashboard/');
      const savedBuild = join(folder, 'dashboard-build');
      if (isDashboard) cpSync(join(copy, DASHBOARD_BUILD), savedBuild, options);
      writeFileSync(
        path,
        text.replace(find, () => replace),
      );
      // Without the earlier time, the tests would build the dashboard, which takes longer than most parts.
      if (!isDashboard) utimesSync(path, atime, mtime);
      try {
        return await runTests(part);
      } finally {
        if (existsSync(dirname(path))) {
          writeFileSync(path, text);
          utimesSync(path, atime, mtime);
          if (isDashboard) {
            rmSync(join(copy, DASHBOARD_BUILD), { recursive: true, force: true });
            cpSync(savedBuild, join(copy, DASHBOARD_BUILD), options);
          }
        }
      }
    },
    async dispose() {
      removeCopy();
      process.off('exit', removeCopy);
      process.off('SIGINT', removeOnSignal);
      process.off('SIGTERM', removeOnSignal);
      await stopPostgresServers?.();
    },
  };
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/** Returns the first failed test, or null. A file that cannot be loaded is no failed test. */
function findFailedTest(reportText: string, root: string): string | null {
  const { testResults } = JSON.parse(reportText) as Report;
  for (const { name, assertionResults } of testResults) {
    const failedTest = assertionResults.find(({ status }) => status === 'failed');
    if (failedTest === undefined) continue;
    const [error = ''] = failedTest.failureMessages[0]?.split('\n') ?? [];
    return `${relative(root, name)}: ${failedTest.fullName.trim()} (${error.slice(0, 100)})`;
  }
  return null;
}

async function main(names: readonly string[]): Promise<number> {
  const print = (line: string) => process.stdout.write(`${line}\n`);
  const unknownNames = names.filter((name) => !DELIBERATE_FAULTS.some((fault) => fault.name === name));
  const faults = DELIBERATE_FAULTS.filter(({ name }) => names.length === 0 || names.includes(name));
  const invalidFaults = [...unknownNames.map((name) => `there is no fault ${name}`), ...findInvalidFaults(faults)];
  for (const line of invalidFaults) print(line);
  if (invalidFaults.length > 0) return 1;
  const startedAt = performance.now();
  const faultyCopy = await createFaultyCopy(faults);
  try {
    const unchanged = await faultyCopy.runUnchanged();
    print(
      `without a fault: ${unchanged.kind === 'missed' ? 'all tests pass' : unchanged.detail} (${unchanged.seconds} s)`,
    );
    if (unchanged.kind !== 'missed') return 1;
    const counts = { caught: 0, missed: 0, invalid: 0 };
    const nameWidth = Math.max(...faults.map(({ name }) => name.length));
    for (const fault of faults) {
      const { kind, detail, seconds } = await faultyCopy.run(fault);
      counts[kind] += 1;
      print(`${kind.padEnd(7)}  ${fault.name.padEnd(nameWidth)}  ${String(seconds).padStart(5)} s  ${detail}`);
    }
    const minutes = Math.round((performance.now() - startedAt) / 6_000) / 10;
    print(`${counts.caught} caught, ${counts.missed} missed, ${counts.invalid} invalid, in ${minutes} min`);
    return counts.caught === faults.length ? 0 : 1;
  } finally {
    await faultyCopy.dispose();
  }
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
