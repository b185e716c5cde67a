/** Defines the findings of `postrider doctor`, and runs its checks concurrently within a bounded time. */
import type { Clock } from '../clock.ts';
import { maskSecrets } from '../printing/escape.ts';

export type FindingResult = 'ok' | 'warning' | 'failure';

export interface Finding {
  /** The name of the check, such as `transport` or `domain example.com`. */
  readonly check: string;
  readonly result: FindingResult;
  /** The result in one line. */
  readonly detail: string;
  /** The remedy in one line. Null when no remedy is required. */
  readonly remedy: string | null;
}

export interface Check {
  readonly name: string;
  /** The result of the check after a timeout. `warning` if a timeout does not prove a fault. */
  readonly onTimeout: 'warning' | 'failure';
  /** Runs the check and resolves to its findings. A rejection becomes a finding with the result `failure`. */
  run(): Promise<readonly Finding[]>;
}

export interface RunChecksOptions {
  readonly clock: Clock;
  /** Timeout of each check. */
  readonly timeoutMs: number;
  /** Timeout for all checks together. A check that has not started when this timeout expires results in a warning. */
  readonly totalTimeoutMs: number;
  readonly concurrency: number;
  /** Called when a check starts or ends, with the number of completed checks and the names of the running checks. */
  readonly onProgress: (completedCount: number, runningNames: readonly string[]) => void;
}

export function createOkFinding(check: string, detail: string): Finding {
  return { check, result: 'ok', detail: maskSecrets(detail), remedy: null };
}

export function createWarning(check: string, detail: string, remedy: string): Finding {
  return { check, result: 'warning', detail: maskSecrets(detail), remedy };
}

export function createFailure(check: string, detail: string, remedy: string): Finding {
  return { check, result: 'failure', detail: maskSecrets(detail), remedy };
}

/**
 * Runs all checks and returns their findings in the order of the checks. Never rejects. Resolves within the sum of both
 * timeouts.
 */
export async function runChecks(checks: readonly Check[], options: RunChecksOptions): Promise<readonly Finding[]> {
  const { clock, timeoutMs, totalTimeoutMs, concurrency, onProgress } = options;
  const startedAt = clock.now();
  const findings: (readonly Finding[])[] = [];
  const runningNames = new Set<string>();
  let nextIndex = 0;
  let completedCount = 0;
  const runNextChecks = async () => {
    for (let index = nextIndex++; index < checks.length; index = nextIndex++) {
      const check = checks[index] as Check;
      if (clock.now() - startedAt >= totalTimeoutMs) {
        findings[index] = [
          createWarning(check.name, 'not checked: the other checks took too long', 'run `postrider doctor` again'),
        ];
        continue;
      }
      runningNames.add(check.name);
      onProgress(completedCount, [...runningNames]);
      findings[index] = await runWithTimeout(check, timeoutMs, clock);
      runningNames.delete(check.name);
      completedCount += 1;
      onProgress(completedCount, [...runningNames]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, checks.length) }, runNextChecks));
  return findings.flat();
}

async function runWithTimeout(check: Check, timeoutMs: number, clock: Clock): Promise<readonly Finding[]> {
  const { promise, resolve } = Promise.withResolvers<readonly Finding[]>();
  const cancelTimeout = clock.after(timeoutMs, () => {
    const detail = `no result within ${Math.round(timeoutMs / 1000)} s`;
    resolve([
      {
        check: check.name,
        result: check.onTimeout,
        detail,
        remedy: 'find the cause of the delay, then run `postrider doctor` again',
      },
    ]);
  });
  check.run().then(resolve, (error: unknown) => {
    const detail = error instanceof Error && error.message !== '' ? error.message : String(error);
    resolve([createFailure(check.name, detail, 'correct the cause, then run `postrider doctor` again')]);
  });
  const findings = await promise;
  cancelTimeout();
  return findings;
}
