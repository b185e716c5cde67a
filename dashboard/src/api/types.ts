/** What the operator API answers, as the pages read it. Times are ISO 8601 in UTC. */

import type { State } from '../../../src/model/state-machine.ts';
import type { Figures, Range } from '../../../src/operations/overview/figures.ts';

export { STATES, type State } from '../../../src/model/state-machine.ts';
export type { Figures, Range };

/** GET /session */
export interface Session {
  readonly who: string;
  readonly version: string;
  /** The kind of transport, such as `capture`, `smtp`, `ses`. */
  readonly transport: string;
  /** False where the way in is the one-time link. */
  readonly password: boolean;
  /** Of the public listener, or null where this node has none. */
  readonly publicUrl: string | null;
  /** The key made on the empty store at this start, while the service that made it runs; else null. */
  readonly firstKey: string | null;
}

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────

export interface MessageSummary {
  readonly id: string;
  readonly state: State;
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly at: string;
  readonly account: string | null;
  /** Where it is asked for: what one that has not ended waits for; null for one that has. */
  readonly waitsFor?: string | null;
}

/** GET /messages */
export interface MessagePage {
  readonly messages: readonly MessageSummary[];
  /** For the next page; null where everything has been searched. */
  readonly next: string | null;
  /** Mail accepted since then has been searched; null where all of it. */
  readonly searchedTo: string | null;
}

export interface MessageAttempt {
  readonly at: string;
  readonly tookMs: number;
  readonly remote: string | null;
  readonly outcome: string;
  readonly reason: string | null;
  readonly stage: string | null;
  readonly code: number | null;
  readonly enhanced: string | null;
  readonly text: string | null;
  readonly conversation: readonly string[];
}

export interface MessageEvent {
  readonly at: string;
  readonly verb: string;
  readonly by: string;
  readonly detail: string | null;
  /** Which of `attempts` it tells of, from 0; null where of none. */
  readonly attempt: number | null;
}

/** GET /messages/{id} */
export interface MessageDetails extends MessageSummary {
  readonly key: string;
  /** Null where the key is gone. */
  readonly keyName: string | null;
  readonly due: string | null;
  readonly owner: string | null;
  readonly tries: number;
  readonly ended: string | null;
  /** Null once erased. */
  readonly message: string | null;
  readonly attempts: readonly MessageAttempt[];
  readonly events: readonly MessageEvent[];
  /** Lists that the recipient is on now; `list` is an account's name, or `*` for the whole service's. */
  readonly suppressions: readonly {
    readonly list: string;
    readonly reason: string;
    /** The mail request that caused it. */
    readonly source: string | null;
    readonly at: string;
  }[];
}

/** GET /messages/{id}/explain */
export interface Explanation {
  readonly id: string;
  readonly explanation: readonly string[];
}

// ── Overview ─────────────────────────────────────────────────────────────────────────────────────────────────

export type Level = 'ok' | 'warning' | 'failure';

/** GET /overview?range= */
export interface Overview {
  readonly range: Range;
  readonly stepMs: number;
  /** False on a new installation. */
  readonly everAccepted: boolean;
  /** The oldest first, without gaps; `at` is the beginning of the step, the last of which is under way. */
  readonly points: readonly ({ readonly at: string } & Figures)[];
  readonly totals: Figures;
  readonly queue: {
    readonly queued: number;
    readonly sending: number;
    readonly uncertain: number;
    readonly oldestId: string | null;
    readonly oldestAt: string | null;
    /** Mail requests that leave and that come, over the last minutes. */
    readonly leavingPerMinute: number;
    readonly comingPerMinute: number;
    readonly trend: 'empty' | 'draining' | 'steady' | 'growing' | 'waiting';
    /** Where it is draining. */
    readonly emptyAt: string | null;
    /** Where it is waiting for a time: when the next one is due. */
    readonly nextDueAt: string | null;
  };
  readonly health: readonly {
    readonly part: 'database' | 'transport' | 'domains' | 'feedback' | 'nodes';
    readonly level: Level;
    readonly text: string;
  }[];
  /** The gravest first. */
  readonly attention: readonly {
    readonly level: 'warning' | 'failure';
    readonly text: string;
    readonly remedy: string;
    /** The page that it is about, such as `/accounts/shop`; null where there is none. */
    readonly page: string | null;
  }[];
}

// ── Inbox ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface InboxEntry {
  readonly id: string;
  readonly at: string;
  readonly to: string;
  /** As the From header says: what the recipient sees. */
  readonly from: string;
  /** The envelope's sender, to which bounces come back. */
  readonly returnPath: string;
  readonly subject: string;
}

/** GET /inbox */
export interface InboxPage {
  readonly messages: readonly InboxEntry[];
  /** `before` of the next page; null on the last. */
  readonly next: string | null;
}

/** GET /inbox/{id}; its HTML is at /inbox/{id}/html, for a frame of its own, its source at /inbox/{id}/source. */
export interface InboxMail extends InboxEntry {
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly text: string | null;
  readonly html: boolean;
  readonly bytes: number;
}
