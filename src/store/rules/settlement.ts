/** What the changes of one settlement do to a message, the same in both databases. Pure. */
import { RECORDED } from '../../model/events.ts';
import { allowed, type State } from '../../model/state-machine.ts';
import { transition } from './transition.ts';

/**
 * The state `to`, which one change of a settlement enters from `from`. Only the first is the attempt's own; what follows may also be
 * a report about it (the simulator's complaint). Throws a StoreError where the table of transitions lacks it.
 */
export function settledState(from: State, to: State, isFirst: boolean): State {
  return !isFirst && allowed(from, to, 'feedback') ? to : transition(from, to, 'queue');
}

/** The lane in which a message waits after its attempt: 0 for first attempts, 1 for retries. */
export function laneAfter(verb: string): 0 | 1 {
  return verb === RECORDED['message.deferred'].verb ? 1 : 0;
}
