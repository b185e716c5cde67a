/**
 * Reads the messages that the capture transport wrote, for the operator listener.
 *
 * Guarantees: a listing opens at most `limit` files and reads 8 KiB of each. The directory is read again only after a change. A name
 * that is no message id never becomes part of a path.
 */
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeEncodedWords } from '../../message/headers.ts';
import type { Inbox, InboxEntry } from '../../model/inbox.ts';
import { isMessageId, MESSAGE_SUFFIX, maildirAt } from './transport.ts';

/** The envelope, the signatures, From, To and an encoded Subject of 998 bytes need 6 KiB at most. They come first. */
const HEAD_BYTES = 8_192;
const MAX_LIMIT = 1_000;
/** A directory that changed within this time may change again without a new modification time: some file systems count in steps of 2 s. */
const MTIME_STEP_MS = 2_000;

/** The inbox of `createCaptureTransport(directory, …)`. Empty where the directory does not exist yet. */
export function createCaptureInbox(directory: string): Inbox {
  const maildir = maildirAt(directory);
  const pathOf = (id: string): string => join(maildir.new, `${id}${MESSAGE_SUFFIX}`);
  let known: { readonly changedAt: number; readonly names: readonly string[] } | null = null;

  /** All file names, in no order. Reading 60,000 names takes 80 ms. */
  async function allNames(): Promise<readonly string[]> {
    const before = Date.now();
    const changedAt = (await orNull(stat(maildir.new)))?.mtimeMs ?? null;
    if (known !== null && known.changedAt === changedAt) return known.names;
    const names = (await orNull(readdir(maildir.new))) ?? [];
    known = changedAt !== null && before - changedAt > MTIME_STEP_MS ? { changedAt, names } : null;
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

/** The `limit` greatest ids below `before`, the greatest first. Faster than sorting all names. */
function newest(names: readonly string[], limit: number, before: string | null): readonly string[] {
  const kept: string[] = [];
  for (const name of names) {
    if (!name.endsWith(MESSAGE_SUFFIX)) continue;
    const id = name.slice(0, -MESSAGE_SUFFIX.length);
    if ((before !== null && id >= before) || (kept.length >= limit && id <= (kept.at(-1) ?? ''))) continue;
    if (!isMessageId(id)) continue;
    const at = kept.findIndex((other) => other < id);
    kept.splice(at < 0 ? kept.length : at, 0, id);
    if (kept.length > limit) kept.pop();
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

/** Null where the file or directory does not exist. */
async function orNull<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
