/** What a check of the installation finds, and how checks are run: together, within a bound, each fault its own. */
import type { Clock } from '../clock.ts';
import { maskSecrets } from '../printing/escape.ts';

export type FindingResult = 'ok' | 'warning' | 'failure';

export interface Finding {
  /** What was looked at, such as `transport` or `domain example.com`. */
  readonly check: string;
  readonly result: FindingResult;
  /** One line: what was found. */
  readonly detail: string;
  /** One line: what to do; null where there is nothing to do. */
  readonly remedy: string | null;
}

export interface Check {
  readonly name: string;
  /** What it means where there is no answer in time: a warning where nothing can be concluded. */
  readonly onTimeout: 'warning' | 'failure';
  /** Resolves to its findings; a rejection is a failure of its own. */
  run(): Promise<readonly Finding[]>;
}

export interface RunChecksOptions {
  readonly clock: Clock;
  /** For each check, from its begin. */
  readonly timeoutMs: number;
  /** For all together: those not begun by then are warnings. */
  readonly totalTimeoutMs: number;
  readonly concurrency: number;
  /** Called whenever a check begins or ends, with the names of those under way. */
  readonly onProgress: (done: number, running: readonly string[]) => void;
}

export function ok(check: string, detail: string): Finding {
  return { check, result: 'ok', detail: maskSecrets(detail), remedy: null };
}

export function warning(check: string, detail: string, remedy: string): Finding {
  return { check, result: 'warning', detail: maskSecrets(detail), remedy };
}

export function failure(check: string, detail: string, remedy: string): Finding {
  return { check, result: 'failure', detail: maskSecrets(detail), remedy };
}

/** The findings of all checks in the order of the checks. Never rejects, and resolves within `totalTimeoutMs` and `timeoutMs`. */
export async function runChecks(checks: readonly Check[], options: RunChecksOptions): Promise<readonly Finding[]> {
  const { clock, timeoutMs, totalTimeoutMs: wholeMs, concurrency, onProgress } = options;
  const startedAt = clock.now();
  const findings: (readonly Finding[])[] = [];
  const running = new Set<string>();
  let next = 0;
  let done = 0;
  const work = async () => {
    for (let at = next++; at < checks.length; at = next++) {
      const check = checks[at] as Check;
      if (clock.now() - startedAt >= wholeMs) {
        findings[at] = [warning(check.name, 'not checked: the others took too long', 'run doctor once more')];
        continue;
      }
      running.add(check.name);
      onProgress(done, [...running]);
      findings[at] = await within(check, timeoutMs, clock);
      running.delete(check.name);
      done += 1;
      onProgress(done, [...running]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, checks.length) }, work));
  return findings.flat();
}

async function within(check: Check, timeoutMs: number, clock: Clock): Promise<readonly Finding[]> {
  const { promise, resolve } = Promise.withResolvers<readonly Finding[]>();
  const cancel = clock.after(timeoutMs, () => {
    const detail = `no answer within ${Math.round(timeoutMs / 1000)} s`;
    resolve([
      {
        check: check.name,
        result: check.onTimeout,
        detail,
        remedy: 'see what keeps it waiting, and run doctor once more',
      },
    ]);
  });
  check.run().then(resolve, (error: unknown) => {
    const detail = error instanceof Error && error.message !== '' ? error.message : String(error);
    resolve([failure(check.name, detail, 'put that right, and run doctor once more')]);
  });
  const findings = await promise;
  cancel();
  return findings;
}
