/** Searches for mail requests, and the work on their index. The words of a search are read by search/query.ts. */

import type { MailSummary } from '../model/message.ts';
import type { State } from '../model/state-machine.ts';
import type { Want } from './search/query.ts';

export interface MailSearch {
  /** All of them; none for every mail request. */
  readonly wants: readonly Want[];
  readonly accountId: number | null;
  readonly state: State | null;
  /** Accepted at or after it; times are those in the ids. */
  readonly since: number | null;
  /** Accepted before it. */
  readonly until: number | null;
  /** With an id less than this one, for the next page. */
  readonly before: string | null;
  readonly limit: number;
}

export interface MailFound {
  /** The newest first, `limit` at most. */
  readonly mails: readonly MailSummary[];
  /**
   * Null where everything has been searched. Else the search goes on with it as `before`: the page is full, or the time was
   * over, and then there may be fewer mails than wanted, or none.
   */
  readonly searchedTo: string | null;
}

/** One step of the work on the index. */
export interface IndexStep {
  /** Mail requests with lesser ids have all been committed, but for a few that come late. */
  readonly horizon: string;
  /** So many that are newer than the index are worth a segment of it. */
  readonly least: number;
  readonly now: number;
}

export interface IndexProgress {
  /** True where something was done: the next step may find more to do. */
  readonly worked: boolean;
  /** Mail requests up to the horizon that are newer than the index, as far as they were counted. */
  readonly waiting: number;
  /** Of those that were, so many have been indexed. */
  readonly newer: number;
}
