/**
 * The test command: lint, types, house rules, then every Vitest test. The command continues after a failure, so that
 * one run reports every failure. The last line is `N passed, N failed`. The exit code is 1 if a check failed or no test
 * passed. With `--long` (`npm run test:long`), it also runs the tests below test/long, and runs every test with its
 * full number of cases. Further arguments select test files by a part of their path.
 */
import { spawnSync } from 'node:child_process';
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

interface VitestReport {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

const MODULES = join(ROOT, 'node_modules');

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

/**
 * Runs a tool of this checkout with the Node executable of this process. Returns its output if the exit code is not 0.
 */
function runTool(script: string, args: readonly string[]): readonly string[] {
  const toolRun = spawnSync(process.execPath, [join(MODULES, script), ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (toolRun.status === 0) return [];
  return [`${toolRun.stdout}${toolRun.stderr}`.trim() || `${script} ${describeExit(toolRun.status ?? toolRun.signal)}`];
}

function runVitest(counts: TestCounts, filters: readonly string[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-test-'));
  const outputFile = join(folder, 'vitest.json');
  try {
    const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${outputFile}`, ...filters];
    const vitestRun = spawnSync(process.execPath, [join(MODULES, 'vitest/vitest.mjs'), ...args], {
      cwd: ROOT,
      stdio: 'inherit',
      // With this compile cache, the threads and processes of the tests compile each file only once. The launcher
      // also sets the variable.
      env: {
        NODE_COMPILE_CACHE: join(MODULES, '.cache', 'compiled'),
        ...process.env,
        ...(isLong ? { TEST_EXTENT: 'long' } : {}),
      },
    });
    const report = readReport(outputFile);
    if (report === null) {
      recordResult(
        counts,
        'vitest',
        [`Vitest ${describeExit(vitestRun.status ?? vitestRun.signal)} and wrote no report`],
        null,
      );
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
    else if (failedCount === 0 && vitestRun.status !== 0) {
      recordResult(
        counts,
        'vitest',
        [`Vitest ${describeExit(vitestRun.status ?? vitestRun.signal)}`],
        'an error occurred outside a test',
      );
    }
    for (const line of listMissingResults(report, filters)) console.log(`  FAIL  ${line}`);
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
  const expectedFiles = listFiles('test', '.test.ts').filter((file) => isLong || !file.startsWith('test/long/'));
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

const filters = process.argv.slice(2).filter((argument) => argument !== '--long');
const isLong = process.argv.includes('--long');
const counts: TestCounts = { passedCount: 0, failedCount: 0 };
console.log('lint and format');
recordResult(
  counts,
  'biome',
  runTool('@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '--max-diagnostics=50']),
  null,
);
console.log('types');
recordResult(counts, 'tsc', runTool('typescript/bin/tsc', ['-p', '.']), null);
recordResult(counts, 'tsc of the dashboard', runTool('typescript/bin/tsc', ['-p', 'dashboard']), null);
recordResult(counts, 'tsc of the client library', runTool('typescript/bin/tsc', ['-p', 'clients/typescript']), null);
console.log('house rules');
const sources = readSources();
for (const rule of RULES) recordResult(counts, rule.name, rule.check(sources), rule.reason);
console.log('tests');
runVitest(counts, filters);
console.log(`\n${counts.passedCount} passed, ${counts.failedCount} failed`);
process.exitCode = counts.failedCount > 0 || counts.passedCount === 0 ? 1 : 0;
