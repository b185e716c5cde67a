/**
 * Reads what the capture transport wrote, for the operator's listener. Bounded: a listing opens at most `limit`
 * files and reads 8 KiB of each; the folder is read again only where something has come or gone. A name that is no id is never
 * turned into a path.
 */
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeEncodedWords } from '../../message/headers.ts';
import type { Inbox, InboxEntry } from '../../model/inbox.ts';
import { isMessageId, MESSAGE_SUFFIX, maildirAt } from './transport.ts';

/** Envelope, signatures, From, To and an encoded Subject of 998 bytes take 6 KiB at most; they come first. */
const HEAD_BYTES = 8_192;
const MAX_LIMIT = 1_000;
/** A folder changed so shortly before it was read may change again within the same tick of its clock; some file systems count in 2 s. */
const TICK_MS = 2_000;

/** The inbox that `createCaptureTransport(directory, …)` fills. Empty where the directory does not exist yet. */
export function createCaptureInbox(directory: string): Inbox {
  const maildir = maildirAt(directory);
  const pathOf = (id: string): string => join(maildir.new, `${id}${MESSAGE_SUFFIX}`);
  let known: { readonly changedAt: number; readonly names: readonly string[] } | null = null;

  /** All names in the folder, in no order: reading 60,000 takes 80 ms, looking through them a few. */
  async function allNames(): Promise<readonly string[]> {
    const before = Date.now();
    const changedAt = (await orNull(stat(maildir.new)))?.mtimeMs ?? null;
    if (known !== null && known.changedAt === changedAt) return known.names;
    const names = (await orNull(readdir(maildir.new))) ?? [];
    known = changedAt !== null && before - changedAt > TICK_MS ? { changedAt, names } : null;
    return names;
  }

  return {
    async list(limit: number, before: string | null = null): Promise<readonly InboxEntry[]> {
      const names = await allNames();
      const entries: InboxEntry[] = [];
      for (const id of newest(names, Math.max(0, Math.min(limit, MAX_LIMIT)), before)) {
        const entry = await orNull(entryOf(id, pathOf(id)));
        if (entry !== null) entries.push(entry);
      }
      return entries;
    },

    entry(id: string): Promise<InboxEntry | null> {
      return isMessageId(id) ? orNull(entryOf(id, pathOf(id))) : Promise.resolve(null);
    },

    source(id: string): Promise<Buffer | null> {
      return isMessageId(id) ? orNull(readFile(pathOf(id))) : Promise.resolve(null);
    },
  };
}

/** The greatest ids below `before`, the greatest first. Keeps no more than it gives: sorting 100,000 names takes far longer. */
function newest(names: readonly string[], most: number, before: string | null): readonly string[] {
  const kept: string[] = [];
  for (const name of names) {
    if (!name.endsWith(MESSAGE_SUFFIX)) continue;
    const id = name.slice(0, -MESSAGE_SUFFIX.length);
    if ((before !== null && id >= before) || (kept.length >= most && id <= (kept.at(-1) ?? ''))) continue;
    if (!isMessageId(id)) continue;
    const at = kept.findIndex((other) => other < id);
    kept.splice(at < 0 ? kept.length : at, 0, id);
    if (kept.length > most) kept.pop();
  }
  return kept;
}

async function entryOf(id: string, path: string): Promise<InboxEntry> {
  const { mtimeMs } = await stat(path);
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const lines = buffer.toString('utf8', 0, bytesRead).split('\r\n');
    return {
      id,
      at: Math.round(mtimeMs),
      from: decodeEncodedWords(field(lines, 'from:') ?? ''),
      returnPath: (field(lines, 'return-path:') ?? '').slice(1, -1),
      to: field(lines, 'delivered-to:') ?? '',
      subject: decodeEncodedWords(field(lines, 'subject:') ?? ''),
    };
  } finally {
    await file.close();
  }
}

/** The first header field of this name, unfolded (RFC 5322 section 2.2.3), or null. */
function field(lines: readonly string[], name: string): string | null {
  const end = lines.indexOf('');
  const head = end < 0 ? lines : lines.slice(0, end);
  const at = head.findIndex((line) => line.slice(0, name.length).toLowerCase() === name);
  if (at < 0) return null;
  let value = (head[at] ?? '').slice(name.length);
  for (const line of head.slice(at + 1)) {
    if (!line.startsWith(' ') && !line.startsWith('\t')) break;
    value += line;
  }
  return value.trim();
}

/** Null where the file or directory is not there (any more). */
async function orNull<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
