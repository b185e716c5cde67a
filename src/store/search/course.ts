/**
 * The course of a search: newest first, until the page is full, everything is searched or the time is over. What a store must
 * be able to do for it is in `SearchSource`; what a mail request must hold is decided by query.ts alone.
 */
import type { State } from '../../record/states.ts';
import type { MailSearch } from '../search.ts';
import { matches, type SearchedMail } from './query.ts';
import { got, type Soon, type Step } from './step.ts';

/** A range of ids: from `first` to before `past`. */
export interface Window {
  readonly first: string;
  readonly past: string;
}

/** What the store itself can tell without looking at words. Null is any. */
export interface Narrow {
  readonly accountId: number | null;
  readonly state: State | null;
}

export interface SearchSource<Mail extends SearchedMail> {
  byId(id: string, narrow: Narrow): Soon<Mail | null>;
  /** Of a window, the newest first. */
  rows(window: Window, narrow: Narrow, limit: number): Soon<readonly Mail[]>;
  /** Those in one state, by the state's own index; never asked for a state that has none. */
  inState(state: State, window: Window, limit: number): Soon<readonly Mail[]>;
  /** The id of the `count`th mail request of the window, counted from the newest; null where it has fewer. */
  nth(window: Window, count: number): Soon<string | null>;
}

export interface Found<Mail> {
  readonly mails: readonly Mail[];
  readonly searchedTo: string | null;
}

/** Rows looked at between two looks at the time: the first so many, later more. */
const FIRST_ROWS = 128;
const MOST_ROWS = 4_096;
/** Where the store alone decides, it passes rows over much faster. */
const MOST_ROWS_NATIVE = 65_536;
/** Only the most frequent state has no index. */
const WITHOUT_INDEX: State = 'delivered';

/** Before and past every id. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const PAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export function* searchCourse<Mail extends SearchedMail>(
  source: SearchSource<Mail>,
  search: MailSearch,
  isOver: () => boolean,
): Step<Found<Mail>> {
  const { wants, accountId, state, limit } = search;
  const narrow = { accountId, state };
  const window = windowOf(search);
  const found: Mail[] = [];

  const id = wants.find((want) => want.kind === 'id')?.id;
  if (id !== undefined) {
    const mail = id >= window.first && id < window.past ? yield* got(source.byId(id, narrow)) : null;
    return { mails: mail !== null && matches(wants, mail) ? [mail] : [], searchedTo: null };
  }

  const byState = state !== null && state !== WITHOUT_INDEX;
  let { past } = window;
  for (let count = Math.max(FIRST_ROWS, limit); past > window.first; count = Math.min(count * 4, most())) {
    const within = { first: window.first, past };
    let rows: readonly Mail[];
    let end: string | null;
    if (byState) {
      rows = yield* got(source.inState(state, within, count));
      end = rows.length < count ? null : (rows.at(-1)?.id ?? null);
    } else {
      end = yield* got(source.nth(within, count));
      const part = { first: end ?? window.first, past };
      rows = yield* got(source.rows(part, narrow, wants.length === 0 ? limit - found.length : count));
    }
    for (const mail of rows) {
      if (accountId !== null && mail.accountId !== accountId) continue;
      if (!matches(wants, mail)) continue;
      found.push(mail);
      if (found.length >= limit) return { mails: found, searchedTo: mail.id };
    }
    if (end === null) break;
    past = end;
    if (isOver()) return { mails: found, searchedTo: past };
  }
  return { mails: found, searchedTo: null };

  function most(): number {
    return wants.length === 0 && !byState ? MOST_ROWS_NATIVE : MOST_ROWS;
  }
}

function windowOf({ since, until, before }: MailSearch): Window {
  const past = until === null ? PAST_ID : leastIdAt(until);
  return {
    first: since === null ? FIRST_ID : leastIdAt(since),
    past: before !== null && before < past ? before : past,
  };
}

/** Less than every id made at `ms` or later, and greater than all before. */
function leastIdAt(ms: number): string {
  const time = Math.min(Math.max(0, Math.floor(ms)), 0xffff_ffff_ffff)
    .toString(16)
    .padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
