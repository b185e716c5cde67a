/** How every writer of a store asks the one table of transitions before it changes a state. */
import type { Cause, State } from '../../model/state-machine.ts';
import { allowed } from '../../model/state-machine.ts';
import { StoreError } from '../error.ts';

/** The state `to`, where the table has the transition; throws a StoreError where it has not, and nothing is written. */
export function transition<To extends State>(from: State | null, to: To, by: Cause): To {
  if (allowed(from, to, by)) return to;
  throw new StoreError(`no mail request goes from ${from ?? 'nothing'} to ${to} (${by}): see docs/states.md.`);
}
