/** Commands inside the running service: what the operator API does, it does through these, over the service's own store. */
import { randomBytes } from 'node:crypto';
import type { SteadyClock } from '../clock.ts';
import type { Environment } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import type { RuntimeStatus } from '../model/runtime-status.ts';
import type { Ran } from '../operator/api.ts';
import { audited } from '../operator/audited.ts';
import { describeError } from '../printing/error-line.ts';
import type { Store } from '../store/contract.ts';
import { StoreError } from '../store/error.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { runCommand } from './main.ts';

export interface CommandSurroundings {
  readonly settings: Settings;
  readonly environment: Environment;
  readonly dotEnv: () => string | null;
  readonly clock: SteadyClock;
}

/** Runs one command for `who` and gives its JSON. Rejects where it failed for a reason that is not the caller's. */
export async function runForApi(
  { settings, environment, dotEnv, clock }: CommandSurroundings,
  store: Store,
  service: () => RuntimeStatus,
  args: readonly string[],
  who: string,
): Promise<Ran> {
  let text = '';
  let value: unknown;
  const context: Context = {
    environment,
    clock,
    dotEnv,
    service,
    settings: () => settings,
    out: (more) => {
      text += more;
    },
    data: (more) => {
      text += more;
    },
    inputLine: (flag) => Promise.reject(new CommandFailure(`${flag} - is for the command line`, 2)),
    json: (told, written) => {
      value = told;
      written?.();
    },
    warn: () => undefined,
    operate: (work) =>
      work({ actor: who, clock, store: audited(store, who, clock.now), settings, random: randomBytes }),
    withStore: (work) => work(audited(store, who, clock.now), settings),
  };
  try {
    await runCommand(args, context);
  } catch (error) {
    if (error instanceof StoreError) return { ok: false, fault: 'broken', message: describeError(error) };
    if (!(error instanceof CommandFailure)) throw error;
    // A check that found a fault has told it in its answer (`domain verify`, `doctor`).
    if (value === undefined) return { ok: false, fault: faultOf(error), message: describeError(error) };
  }
  return { ok: true, value: value ?? JSON.parse(text) };
}

function faultOf({ exitCode, message }: CommandFailure): 'misused' | 'missing' | 'refused' {
  if (exitCode === 2) return 'misused';
  return /^there is no /.test(message) ? 'missing' : 'refused';
}
