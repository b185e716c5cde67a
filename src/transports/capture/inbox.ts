/**
 * Reads the messages that the capture transport wrote, for the operator listener.
 *
 * Guarantees: a listing opens at most `limit` files and reads 8 KiB of each. The directory is read again only after a
 * change. Only a message id becomes part of a path.
 */
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeEncodedWords } from '../../message/headers.ts';
import type { Inbox, InboxEntry } from '../../model/inbox.ts';
import { getMaildir, isMessageId, MESSAGE_SUFFIX } from './transport.ts';

/**
 * The first fields of a message are the envelope, the signatures, From, To and Subject. With an encoded subject of 998
 * bytes, these fields need at most 6 KiB.
 */
const HEAD_BYTES = 8_192;
const MAX_LISTED_ENTRIES = 1_000;
/**
 * A directory that changed less than this time ago may change again without a new modification time, because some file
 * systems have a resolution of 2 s.
 */
const MTIME_STEP_MS = 2_000;

/**
 * Creates the inbox of `createCaptureTransport(directory, …)`. The inbox is empty if the directory does not exist yet.
 */
export function createCaptureInbox(directory: string): Inbox {
  const maildir = getMaildir(directory);
  const getPath = (id: string): string => join(maildir.new, `${id}${MESSAGE_SUFFIX}`);
  let cachedNames: { readonly changedAt: number; readonly names: readonly string[] } | null = null;

  /** Returns all file names, unordered. Reading 60,000 file names takes 80 ms. */
  async function listNames(): Promise<readonly string[]> {
    const startedAt = Date.now();
    const changedAt = (await resolveNullIfMissing(stat(maildir.new)))?.mtimeMs ?? null;
    if (cachedNames !== null && cachedNames.changedAt === changedAt) return cachedNames.names;
    const names = (await resolveNullIfMissing(readdir(maildir.new))) ?? [];
    cachedNames = changedAt !== null && startedAt - changedAt > MTIME_STEP_MS ? { changedAt, names } : null;
    return names;
  }

  return {
    async list(limit: number, before: string | null = null): Promise<readonly InboxEntry[]> {
      const names = await listNames();
      const entries: InboxEntry[] = [];
      for (const id of selectNewestIds(names, Math.max(0, Math.min(limit, MAX_LISTED_ENTRIES)), before)) {
        const entry = await resolveNullIfMissing(readEntry(id, getPath(id)));
        if (entry !== null) entries.push(entry);
      }
      return entries;
    },

    findEntry(id: string): Promise<InboxEntry | null> {
      return isMessageId(id) ? resolveNullIfMissing(readEntry(id, getPath(id))) : Promise.resolve(null);
    },

    findSource(id: string): Promise<Buffer | null> {
      return isMessageId(id) ? resolveNullIfMissing(readFile(getPath(id))) : Promise.resolve(null);
    },
  };
}

/**
 * Returns the `limit` greatest ids in `names` that are less than `before`, in descending order. The function does not
 * sort all names, because that is slower.
 */
function selectNewestIds(names: readonly string[], limit: number, before: string | null): readonly string[] {
  const ids: string[] = [];
  for (const name of names) {
    if (!name.endsWith(MESSAGE_SUFFIX)) continue;
    const id = name.slice(0, -MESSAGE_SUFFIX.length);
    if ((before !== null && id >= before) || (ids.length >= limit && id <= (ids.at(-1) ?? ''))) continue;
    if (!isMessageId(id)) continue;
    const index = ids.findIndex((listedId) => listedId < id);
    ids.splice(index < 0 ? ids.length : index, 0, id);
    if (ids.length > limit) ids.pop();
  }
  return ids;
}

async function readEntry(id: string, path: string): Promise<InboxEntry> {
  const { mtimeMs } = await stat(path);
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const lines = buffer.toString('utf8', 0, bytesRead).split('\r\n');
    return {
      id,
      at: Math.round(mtimeMs),
      from: decodeEncodedWords(findHeaderField(lines, 'from:') ?? ''),
      returnPath: (findHeaderField(lines, 'return-path:') ?? '').slice(1, -1),
      to: findHeaderField(lines, 'delivered-to:') ?? '',
      subject: decodeEncodedWords(findHeaderField(lines, 'subject:') ?? ''),
    };
  } finally {
    await file.close();
  }
}

/** Returns the first header field with this name, unfolded (RFC 5322 section 2.2.3), or null. */
function findHeaderField(lines: readonly string[], name: string): string | null {
  const end = lines.indexOf('');
  const header = end < 0 ? lines : lines.slice(0, end);
  const index = header.findIndex((line) => line.slice(0, name.length).toLowerCase() === name);
  if (index < 0) return null;
  let value = (header[index] ?? '').slice(name.length);
  for (const line of header.slice(index + 1)) {
    if (!line.startsWith(' ') && !line.startsWith('\t')) break;
    value += line;
  }
  return value.trim();
}

/** Resolves to null if the file or directory does not exist. */
async function resolveNullIfMissing<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
