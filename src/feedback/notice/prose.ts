/**
 * Bounces that only people were meant to read: the text before the returned message, the addresses in it, and what the
 * words around each of them say. Knowledge is in words.ts and in classify's rules. Only what looks like a bounce is one.
 */
import type { Notice } from '../../record/notice.ts';
import { addressesIn, oneLine } from './text.ts';
import { has, type Judgement, judge, statusIn } from './verdict.ts';
import { CONTACTS, FAILED, FINAL, HEADER_LINES, RETURNED, WAITING } from './words.ts';

/** Of the text, before the returned message. */
const LONGEST = 16_384;
/** What is said of one recipient. */
const LONGEST_PASSAGE = 1_000;

export interface ProseMail {
  readonly subject: string;
  /** True where a mail server speaks: by its name, or by an empty return path. */
  readonly fromServer: boolean;
  /** Addresses of the notice's own header, which are no recipients of ours. */
  readonly own: readonly string[];
  /** Recipients that the notice's header names as failed. */
  readonly failed: readonly string[];
  readonly text: string;
}

/** The notices of the text, or an empty list where it is no bounce. */
export function proseNotices({ subject, fromServer, own, failed, text }: ProseMail): readonly Notice[] {
  const told = beforeReturned(text.slice(0, 4 * LONGEST)).slice(0, LONGEST);
  const all = `${subject}\n${told}`.toLowerCase();
  const fails = has(all, FAILED);
  const waits = has(all, WAITING) && !has(all, FINAL);
  const whole = judge(told.slice(0, 4 * LONGEST_PASSAGE), statusIn(told));
  if (!fails && !waits && !(fromServer && whole.certain)) return [];
  // Words of failure in a person's mail are not a bounce.
  if (!fromServer && !has(subject.toLowerCase(), FAILED) && !whole.certain && !waits) return [];
  const named =
    failed.length > 0 ? failed : addressesIn(withoutHeaderLines(told)).filter((address) => isFailing(address, own));
  if (named.length === 0) return [noticeOf(null, told, whole, waits)];
  return named.map((address, index) => {
    const passage = passageOf(told, address, named[index + 1]);
    const own = judge(passage, statusIn(passage));
    return noticeOf(address, passage, own.certain || named.length > 1 ? better(own, whole) : whole, waits);
  });
}

function isFailing(address: string, own: readonly string[]): boolean {
  const lower = address.toLowerCase();
  return !own.includes(lower) && !CONTACTS.includes(lower.slice(0, lower.indexOf('@')));
}

/** Without the lines of a header that the text quotes, and what continues them. */
function withoutHeaderLines(text: string): string {
  let quoted = false;
  const kept = text.split('\n').filter((line) => {
    const plain = line.replaceAll('>', ' ');
    const words = plain.trimStart().toLowerCase();
    const continues = quoted && words !== '' && plain.startsWith(' ');
    quoted = continues || HEADER_LINES.some((name) => words.startsWith(name));
    return !quoted;
  });
  return kept.join('\n');
}

/** What is said of this one where it says anything, else what is said of all. */
function better(own: Judgement, whole: Judgement): Judgement {
  return own.certain ? own : whole;
}

function noticeOf(
  recipient: string | null,
  passage: string,
  { permanent, mailboxMissing }: Judgement,
  waits: boolean,
): Notice {
  const evidence = {
    status: statusIn(passage),
    diagnostic: oneLine(passage, 500),
    reportingHost: null,
  };
  const about = { recipient, alias: null, evidence };
  return waits ? { ...about, kind: 'delayed' } : { ...about, kind: 'bounce', permanent, mailboxMissing };
}

/** From the line of an address to that of the next one. */
function passageOf(text: string, address: string, next: string | undefined): string {
  const lower = text.toLowerCase();
  const at = lower.indexOf(address.toLowerCase());
  const line = Math.max(0, text.lastIndexOf('\n', at));
  const following = next === undefined ? -1 : lower.indexOf(next.toLowerCase(), at + address.length);
  const end = following < 0 ? undefined : Math.max(at + address.length, text.lastIndexOf('\n', following));
  return text.slice(line, end).slice(0, LONGEST_PASSAGE);
}

/** The text up to where the returned message begins: a line that says so, or its header. */
export function beforeReturned(text: string): string {
  let at = 0;
  for (const line of text.split('\n')) {
    const plain = line.trim().toLowerCase();
    const short = plain.length <= 120;
    if (short && at > 0 && (plain.startsWith('received: ') || plain.startsWith('return-path: ')))
      return text.slice(0, at);
    if (short && isDivider(plain) && has(plain, RETURNED)) return text.slice(0, at);
    if (
      short &&
      at > 0 &&
      RETURNED.some((words) => plain === `${words}.` || plain === `${words}:` || plain === words)
    ) {
      return text.slice(0, at);
    }
    at += line.length + 1;
  }
  return text;
}

function isDivider(line: string): boolean {
  return (
    line.startsWith('--') ||
    line.startsWith('==') ||
    line.startsWith('**') ||
    line.startsWith('__') ||
    line.startsWith('> ')
  );
}
