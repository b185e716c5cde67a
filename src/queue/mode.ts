/**
 * The mode of a dispatcher and its transitions.
 *
 * | mode | leases for new messages | claims | attempts begin | leases held in memory | ends of leases are written |
 * |---|---|---|---|---|---|
 * | `starting` | no | no | no | none | |
 * | `running` | yes | yes | yes | wait for their attempt | until the store takes them |
 * | `draining` | no | no | no | are released | until the store takes them |
 * | `stopped` | no | no | no | are released | once more at most |
 *
 * A transition that the table does not have throws: it is a bug.
 */
export type Mode = 'starting' | 'running' | 'draining' | 'stopped';

/** The modes that may follow each. */
export const TRANSITIONS: Readonly<Record<Mode, readonly Mode[]>> = {
  starting: ['running', 'draining'],
  running: ['draining'],
  draining: ['stopped'],
  stopped: [],
};

export interface ModeHolder {
  readonly current: Mode;
  /** Changes the mode; throws where the table has no such transition, and changes nothing. */
  enter(next: Mode): void;
}

/** The mode of one dispatcher, `starting`. */
export function createMode(): ModeHolder {
  let current: Mode = 'starting';
  return {
    get current() {
      return current;
    },
    enter(next) {
      if (!TRANSITIONS[current].includes(next)) throw new Error(`no transition from ${current} to ${next}`);
      current = next;
    },
  };
}
