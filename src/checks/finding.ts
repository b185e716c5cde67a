/**
 * Facts are read once (facts.ts). Each subject has one file of pure checks over them, which `CHECKS` (list.ts) gathers.
 * `doctor` runs probes, which ask the network and the disk, and reports the same findings.
 */
import type { AttentionCode } from '../model/attention.ts';

export type Level = 'ok' | 'warning' | 'failure';

export interface Finding<Code extends string = string> {
  /** Stable. In `doctor` the name of the check, such as `transport`; `health` and `setup` have codes of their own. */
  readonly code: Code;
  /** The object of the finding, such as a domain; null for the installation. */
  readonly subject: string | null;
  readonly level: Level;
  /** The result in one line. It may contain untrusted text of a next hop. */
  readonly text: string;
  readonly remedy: string | null;
  /** The page of the dashboard, such as `/accounts/shop`, or null. */
  readonly page: string | null;
}

export type Problem = Finding<AttentionCode> & { readonly level: 'warning' | 'failure'; readonly remedy: string };

export type HealthPart = 'database' | 'transport' | 'domains' | 'feedback' | 'nodes';
export type Health = Finding<HealthPart>;

/** A step of the setup checklist. `text` is the fact from which the state follows, `remedy` completes the step. */
export interface Step extends Finding<StepCode> {
  readonly title: string;
  readonly state: 'done' | 'open' | 'optional' | 'not-needed';
  readonly command: string | null;
}
export const STEP_CODES = ['first-message', 'provider', 'domain', 'records', 'feedback', 'webhook'] as const;
export type StepCode = (typeof STEP_CODES)[number];

export function report<Code extends string>(code: Code, subject: string | null = null, page: string | null = null) {
  const base = { code, subject };
  return {
    ok: (text: string) => ({ ...base, level: 'ok' as const, text, remedy: null, page }),
    warning: (text: string, remedy: string) => ({ ...base, level: 'warning' as const, text, remedy, page }),
    failure: (text: string, remedy: string) => ({ ...base, level: 'failure' as const, text, remedy, page }),
  };
}

export function reportHealth(code: HealthPart, level: Level, text: string): Health {
  return { code, subject: null, level, text, remedy: null, page: null };
}

export function reportStep(code: StepCode, title: string, page: string) {
  const create = (state: Step['state'], text: string, remedy: string | null, command: string | null): Step => {
    const level = state === 'open' ? 'warning' : 'ok';
    return { code, subject: null, level, title, state, text, remedy, command, page };
  };
  return {
    done: (text: string) => create('done', text, null, null),
    notNeeded: (text: string) => create('not-needed', text, null, null),
    open: (text: string, remedy: string | null, command: string | null) => create('open', text, remedy, command),
    optional: (text: string, remedy: string | null, command: string | null) =>
      create('optional', text, remedy, command),
  };
}
