/**
 * Leased mail requests that wait in memory for a free attempt. Accounts take turns, so that one account's thousand
 * messages do not stand before another's one.
 */
import type { LeasedMail } from '../model/message.ts';

export interface Ready {
  readonly size: number;
  add(mail: LeasedMail): void;
  /** The next one in turn. */
  take(): LeasedMail | undefined;
  /** All of them; afterwards there are none. */
  takeAll(): LeasedMail[];
}

/** An array with a moving head: taking is O(1) without shifting what is behind. */
interface Line {
  mails: LeasedMail[];
  head: number;
}

const COMPACT_AT = 256;

export function createReady(): Ready {
  const lines = new Map<number, Line>();
  let size = 0;

  function take(): LeasedMail | undefined {
    const first = lines.entries().next();
    if (first.done) return undefined;
    const [account, line] = first.value;
    const mail = line.mails[line.head];
    line.head += 1;
    size -= 1;
    if (line.head >= line.mails.length) {
      lines.delete(account);
      return mail;
    }
    if (line.head >= COMPACT_AT) {
      line.mails = line.mails.slice(line.head);
      line.head = 0;
    }
    if (lines.size > 1) {
      // A Map iterates in order of insertion: put back, the account stands last.
      lines.delete(account);
      lines.set(account, line);
    }
    return mail;
  }

  return {
    get size() {
      return size;
    },
    add(mail) {
      const line = lines.get(mail.accountId);
      if (line === undefined) lines.set(mail.accountId, { mails: [mail], head: 0 });
      else line.mails.push(mail);
      size += 1;
    },
    take,
    takeAll() {
      const all: LeasedMail[] = [];
      for (let mail = take(); mail !== undefined; mail = take()) all.push(mail);
      return all;
    },
  };
}
