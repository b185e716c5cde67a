/** Captured mail: one file per mail request, durable before it counts, readable by id alone. */
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { decodeEncodedWords } from '../../../src/deliver/capture/encoded-words.ts';
import { captureInbox } from '../../../src/deliver/capture/inbox.ts';
import { captureTransport } from '../../../src/deliver/capture/transport.ts';
import { temporaryFolder } from '../../rig/folder.ts';
import { outgoing } from '../../rig/smtp-message.ts';

describe('the capture transport', () => {
  test('a second attempt with the same id replaces the first file', async () => {
    const folder = temporaryFolder();
    const transport = captureTransport(folder, systemClock);
    const message = outgoing('Subject: first\r\n\r\n1\r\n');
    await transport.attempt(message, null);
    await transport.attempt({ ...message, data: Buffer.from('Subject: second\r\n\r\n2\r\n') }, null);
    expect(await readdir(join(folder, 'new'))).toEqual([`${message.id}.eml`]);
    expect(await readdir(join(folder, 'tmp'))).toEqual([]);
    expect((await captureInbox(folder).source(message.id))?.toString()).toContain('Subject: second');
  });

  test('a message that is not handed over leaves no file', async () => {
    const folder = temporaryFolder();
    await captureTransport(folder, systemClock).attempt(outgoing(), () => Promise.reject(new Error('no')));
    expect(await readdir(join(folder, 'new'))).toEqual([]);
    expect(await readdir(join(folder, 'tmp'))).toEqual([]);
  });

  test('an id that is no UUID never becomes a path', async () => {
    const folder = temporaryFolder();
    const transport = captureTransport(join(folder, 'inbox'), systemClock);
    for (const id of [
      '../../evil',
      '',
      '01890000-0000-7000-8000-00000000000/',
      '01890000-0000-7000-8000-00000000000G',
    ]) {
      const { outcome } = await transport.attempt({ ...outgoing(), id }, null);
      expect(outcome).toMatchObject({ kind: 'deferred', scope: 'message' });
    }
    expect(await readdir(folder)).toEqual([]);
  });

  test('a directory that cannot be written is a deferral that names it, and heals', async () => {
    const folder = join(temporaryFolder(), 'inbox');
    await writeFile(folder, 'in the way');
    const transport = captureTransport(folder, systemClock);
    const { outcome } = await transport.attempt(outgoing(), null);
    expect(outcome).toMatchObject({ kind: 'deferred', scope: 'transport' });
    expect(outcome.reply.text).toContain(folder);
    await rm(folder);
    expect((await transport.attempt(outgoing(), null)).outcome.kind).toBe('delivered');
    await rm(folder, { recursive: true });
    await transport.attempt(outgoing(), null);
    expect((await transport.attempt(outgoing(), null)).outcome.kind).toBe('delivered');
  });

  test('a full disk is a deferral that says so', async () => {
    const folder = temporaryFolder();
    const transport = captureTransport(folder, systemClock, {
      open: () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })),
    });
    const { outcome } = await transport.attempt(outgoing(), null);
    expect(outcome).toMatchObject({ kind: 'deferred', reason: 'unavailable', scope: 'transport' });
    expect(outcome.reply.text).toContain('no space left');
  });

  test('what a crash left in tmp is cleared after 36 hours, not before', async () => {
    const folder = temporaryFolder();
    await mkdir(join(folder, 'tmp'));
    await writeFile(join(folder, 'tmp', 'old'), '');
    await utimes(join(folder, 'tmp', 'old'), 0, 0);
    await writeFile(join(folder, 'tmp', 'recent'), '');
    await captureTransport(folder, systemClock).attempt(outgoing(), null);
    expect(await readdir(join(folder, 'tmp'))).toEqual(['recent']);
  });
});

describe('the inbox', () => {
  test('is empty before the first message', async () => {
    expect(await captureInbox(join(temporaryFolder(), 'none')).list(10)).toEqual([]);
  });

  test('lists the newest first, up to the limit, with envelope and subject', async () => {
    const folder = temporaryFolder();
    const transport = captureTransport(folder, systemClock);
    const messages = [1, 2, 3].map((n) =>
      outgoing(
        `From: x\r\nSubject: =?utf-8?B?${Buffer.from(`nº ${n}`).toString('base64')}?=\r\n folded\r\n\r\nbody\r\n`,
      ),
    );
    await Promise.all(messages.map((message) => transport.attempt(message, null)));
    await writeFile(join(folder, 'new', 'stray.eml'), 'not ours');
    const entries = await captureInbox(folder).list(2);
    expect(entries.map(({ id }) => id)).toEqual([messages[2]?.id, messages[1]?.id]);
    expect(entries[0]).toMatchObject({ from: 'a@sender.example', to: 'b@b.example', subject: 'nº 3 folded' });
  });

  test('reads nothing but messages by id', async () => {
    const folder = temporaryFolder();
    await writeFile(join(folder, 'secret.eml'), 'secret');
    const inbox = captureInbox(folder);
    for (const id of ['../secret', 'secret', '', '..', '../../etc/passwd', '01890000-0000-7000-8000-000000000001\0']) {
      expect(await inbox.source(id)).toBeNull();
    }
    expect(await inbox.source('01890000-0000-7000-8000-ffffffffffff')).toBeNull();
  });
});

test('encoded words are read, whatever else stays as it stands', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['plain text', 'plain text'],
    ['=?UTF-8?Q?caf=C3=A9_?= x', 'café  x'],
    ['=?utf-8?B?8J+Y?= =?utf-8?B?gA==?=', '😀'],
    ['a =?utf-8?B?YQ==?= b', 'a a b'],
    ['=?iso-2022-jp?B?YQ==?=', '=?iso-2022-jp?B?YQ==?='],
    ['=?utf-8?X?YQ==?=', '=?utf-8?X?YQ==?='],
    ['=?utf-8?Q?=ZZ?=', '=ZZ'],
    ['=??=', '=??='],
  ];
  for (const [value, expected] of cases) expect(decodeEncodedWords(value)).toBe(expected);
});
