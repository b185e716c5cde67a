/**
 * The test command: lint, types and house rules, beside every Vitest test. The command continues after a failure, so that
 * one run reports every failure. The last line is `N passed, N failed`. The exit code is 1 if a check failed or no test
 * passed. `--long` (`npm run test:long`) also runs the tests below test/long, the contract suites with every store, and
 * the full number of cases. `--contract` (`npm run test:contract`) runs only the contract suites with every store.
 * Further arguments select test files by a part of their path.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { RULES, readSources } from './house/rules.ts';
import { listFiles, ROOT } from './house/source.ts';
import { describeExit } from './rig/exit.ts';

interface TestCounts {
  passedCount: number;
  failedCount: number;
}

type Extent = 'default' | 'long' | 'contract';

interface VitestReport {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly startTime: number;
    readonly endTime: number;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

const MODULES = join(ROOT, 'node_modules');
/** The suites that `--contract` runs with every store. */
const CONTRACT_PATHS = ['test/contract/', 'test/unit/store/postgres-'];
const SLOWEST_COUNT = 10;

function recordResult(counts: TestCounts, name: string, faults: readonly string[], reason: string | null): void {
  if (faults.length === 0) {
    counts.passedCount += 1;
    console.log(`  ok    ${name}`);
    return;
  }
  counts.failedCount += 1;
  console.log(`  FAIL  ${name}`);
  if (reason !== null) console.log(`        because ${reason}`);
  for (const fault of faults) console.log(`        ${fault.replaceAll('\n', '\n        ')}`);
}

interface ProgramResult {
  /** The exit code, or the signal that ended the program. */
  readonly exit: number | string;
  readonly output: string;
}

/** Runs a script of this checkout with the Node executable of this process. With `shown`, its output is not returned. */
async function runScript(
  script: string,
  args: readonly string[],
  { shown, environment = {} }: { readonly shown: boolean; readonly environment?: NodeJS.ProcessEnv },
): Promise<ProgramResult> {
  const child = spawn(process.execPath, [join(MODULES, script), ...args], {
    cwd: ROOT,
    stdio: shown ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const exit = await new Promise<number | string>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  );
  return { exit, output };
}

/** Runs the checks of lint, types and house rules one after the other. Their results are recorded after the tests. */
async function runChecks(): Promise<
  readonly (readonly [name: string, faults: readonly string[], reason: string | null])[]
> {
  const results: [string, readonly string[], string | null][] = [];
  // Several type checkers in parallel check the same types several times.
  const tools = [
    ['biome', '@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '--max-diagnostics=50'],
    ['tsc', 'typescript/bin/tsc', '--singleThreaded', '-p', '.'],
    ['tsc of the dashboard', 'typescript/bin/tsc', '--singleThreaded', '-p', 'dashboard'],
    ['tsc of the client library', 'typescript/bin/tsc', '--singleThreaded', '-p', 'clients/typescript'],
  ] as const;
  for (const [name, script, ...args] of tools) {
    const { exit, output } = await runScript(script, args, { shown: false });
    results.push([name, exit === 0 ? [] : [output.trim() || `${script} ${describeExit(exit)}`], null]);
  }
  const sources = readSources();
  for (const rule of RULES) results.push([rule.name, rule.check(sources), rule.reason]);
  return results;
}

async function runVitest(counts: TestCounts, filters: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-test-'));
  const outputFile = join(folder, 'vitest.json');
  try {
    const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${outputFile}`, ...filters];
    const { exit } = await runScript('vitest/vitest.mjs', args, {
      shown: true,
      environment: {
        // With this compile cache, the threads and processes of the tests compile each file only once. The launcher
        // also sets the variable.
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(MODULES, '.cache', 'compiled'),
        TEST_EXTENT: extent,
      },
    });
    const report = readReport(outputFile);
    if (report === null) {
      recordResult(counts, 'vitest', [`Vitest ${describeExit(exit)} and wrote no report`], null);
      return;
    }
    counts.passedCount += report.numPassedTests;
    // Skipped tests and files that could not be loaded count as failed.
    const unloadedFiles = report.testResults.filter(
      (file) => file.status === 'failed' && !file.assertionResults.some((assertion) => assertion.status === 'failed'),
    );
    const failedCount = report.numFailedTests + report.numPendingTests + report.numTodoTests + unloadedFiles.length;
    counts.failedCount += failedCount;
    if (report.numPassedTests === 0) recordResult(counts, 'vitest', ['no test passed'], null);
    else if (failedCount === 0 && exit !== 0)
      recordResult(counts, 'vitest', [`Vitest ${describeExit(exit)}`], 'an error occurred outside a test');
    for (const line of listMissingResults(report, filters)) console.log(`  FAIL  ${line}`);
    console.log('slowest test files');
    const durations = report.testResults.map(({ name, startTime, endTime }) => [name, endTime - startTime] as const);
    for (const [name, ms] of durations.toSorted((one, other) => other[1] - one[1]).slice(0, SLOWEST_COUNT))
      console.log(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${relative(ROOT, name)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Returns one line per test file whose process ended before all tests of the file ended; Vitest does not count the
 * remaining tests as failed. The output above contains the last output of that process, such as a `Fatal error` of V8.
 */
function listMissingResults(report: VitestReport, filters: readonly string[]): readonly string[] {
  const lines: string[] = [];
  for (const { name, assertionResults } of report.testResults) {
    const missingCount = assertionResults.filter(({ status }) => status !== 'passed' && status !== 'failed').length;
    if (missingCount > 0)
      lines.push(`${relative(ROOT, name)}: ${missingCount} of ${assertionResults.length} tests did not end`);
  }
  if (filters.length > 0) return lines;
  const reportedFiles = new Set(report.testResults.map(({ name }) => relative(ROOT, name)));
  const expectedFiles = listFiles('test', '.test.ts').filter(
    (file) => extent === 'long' || !file.startsWith('test/long/'),
  );
  const filesWithoutResult = expectedFiles.filter((file) => !reportedFiles.has(file));
  return [...lines, ...filesWithoutResult.map((file) => `${file}: Vitest reported no result`)];
}

function readReport(path: string): VitestReport | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as VitestReport;
  } catch {
    return null;
  }
}

function parseExtent(args: readonly string[]): Extent {
  if (args.includes('--long')) return 'long';
  return args.includes('--contract') ? 'contract' : 'default';
}

const extent = parseExtent(process.argv);
const givenFilters = process.argv.slice(2).filter((argument) => !['--long', '--contract'].includes(argument));
const filters = extent === 'contract' && givenFilters.length === 0 ? CONTRACT_PATHS : givenFilters;
const counts: TestCounts = { passedCount: 0, failedCount: 0 };
const checks = runChecks();
await runVitest(counts, filters);
console.log('lint, types and house rules');
for (const [name, faults, reason] of await checks) recordResult(counts, name, faults, reason);
console.log(`\n${counts.passedCount} passed, ${counts.failedCount} failed`);
process.exitCode = counts.failedCount > 0 || counts.passedCount === 0 ? 1 : 0;
