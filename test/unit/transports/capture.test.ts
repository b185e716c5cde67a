import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createCaptureInbox, createCaptureTransport } from '../../../src/transports/capture.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createOutgoingMessage } from '../../rig/smtp-message.ts';

describe('the capture transport', () => {
  test('a second attempt with the same id replaces the file of the first attempt', async () => {
    const folder = createTemporaryFolder();
    const transport = createCaptureTransport(folder, systemClock);
    const message = createOutgoingMessage('Subject: first\r\n\r\n1\r\n');
    await transport.attempt(message, null);
    await transport.attempt({ ...message, data: Buffer.from('Subject: second\r\n\r\n2\r\n') }, null);
    expect(await readdir(join(folder, 'new'))).toEqual([`${message.id}.eml`]);
    expect(await readdir(join(folder, 'tmp'))).toEqual([]);
    expect((await createCaptureInbox(folder).findSource(message.id))?.toString()).toContain('Subject: second');
  });

  test('a message that is not completed leaves no file', async () => {
    const folder = createTemporaryFolder();
    await createCaptureTransport(folder, systemClock).attempt(createOutgoingMessage(), () =>
      Promise.reject(new Error('no')),
    );
    expect(await readdir(join(folder, 'new'))).toEqual([]);
    expect(await readdir(join(folder, 'tmp'))).toEqual([]);
  });

  test('an id that is not a UUID never becomes a path', async () => {
    const folder = createTemporaryFolder();
    const transport = createCaptureTransport(join(folder, 'inbox'), systemClock);
    for (const id of [
      '../../evil',
      '',
      '01890000-0000-7000-8000-00000000000/',
      '01890000-0000-7000-8000-00000000000G',
    ]) {
      const { outcome } = await transport.attempt({ ...createOutgoingMessage(), id }, null);
      expect(outcome).toMatchObject({ kind: 'deferred', scope: 'message' });
    }
    expect(await readdir(folder)).toEqual([]);
  });

  test('as long as a directory cannot be written, messages are deferred, and the text names the directory', async () => {
    const folder = join(createTemporaryFolder(), 'inbox');
    await writeFile(folder, 'in the way');
    const transport = createCaptureTransport(folder, systemClock);
    const { outcome } = await transport.attempt(createOutgoingMessage(), null);
    expect(outcome).toMatchObject({ kind: 'deferred', scope: 'route' });
    expect(outcome.reply.text).toContain(folder);
    await rm(folder);
    expect((await transport.attempt(createOutgoingMessage(), null)).outcome.kind).toBe('delivered');
    await rm(folder, { recursive: true });
    await transport.attempt(createOutgoingMessage(), null);
    expect((await transport.attempt(createOutgoingMessage(), null)).outcome.kind).toBe('delivered');
  });

  test('on a full disk messages are deferred, and the text names the cause', async () => {
    const folder = createTemporaryFolder();
    const transport = createCaptureTransport(folder, systemClock, {
      open: () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })),
    });
    const { outcome } = await transport.attempt(createOutgoingMessage(), null);
    expect(outcome).toMatchObject({ kind: 'deferred', reason: 'unavailable', scope: 'route' });
    expect(outcome.reply.text).toContain('no space left');
  });

  test('a file that a crash left in tmp is removed after 36 hours, not before', async () => {
    const folder = createTemporaryFolder();
    await mkdir(join(folder, 'tmp'));
    await writeFile(join(folder, 'tmp', 'old'), '');
    await utimes(join(folder, 'tmp', 'old'), 0, 0);
    await writeFile(join(folder, 'tmp', 'recent'), '');
    await createCaptureTransport(folder, systemClock).attempt(createOutgoingMessage(), null);
    expect(await readdir(join(folder, 'tmp'))).toEqual(['recent']);
  });
});

describe('the inbox', () => {
  test('lists the newest messages first, up to the limit, with sender, return path, recipient and subject', async () => {
    const folder = createTemporaryFolder();
    const transport = createCaptureTransport(folder, systemClock);
    const messages = [1, 2, 3].map((n) =>
      createOutgoingMessage(
        `From: =?utf-8?Q?L=C3=BCx?= <x@from.example>\r\nSubject: =?utf-8?B?${Buffer.from(`nº ${n}`).toString('base64')}?=\r\n folded\r\n\r\nbody\r\n`,
      ),
    );
    await Promise.all(messages.map((message) => transport.attempt(message, null)));
    await writeFile(join(folder, 'new', 'stray.eml'), 'not a message');
    const entries = await createCaptureInbox(folder).list(2);
    expect(entries.map(({ id }) => id)).toEqual([messages[2]?.id, messages[1]?.id]);
    expect(entries[0]).toMatchObject({
      from: 'Lüx <x@from.example>',
      returnPath: 'a@sender.example',
      to: 'b@b.example',
      subject: 'nº 3 folded',
    });
  });

  test('lists pages in order of the ids, and reads one message by its id', async () => {
    const folder = createTemporaryFolder();
    const transport = createCaptureTransport(folder, systemClock);
    const messages = Array.from({ length: 7 }, () => createOutgoingMessage());
    for (const index of [3, 0, 6, 1, 5, 2, 4])
      await transport.attempt(messages[index] ?? createOutgoingMessage(), null);
    const inbox = createCaptureInbox(folder);
    const pages: string[] = [];
    for (let cursor: string | null = null; ; cursor = pages.at(-1) ?? null) {
      const page = await inbox.list(3, cursor);
      if (page.length === 0) break;
      pages.push(...page.map(({ id }) => id));
    }
    expect(pages).toEqual(
      messages
        .map(({ id }) => id)
        .sort()
        .reverse(),
    );
    expect((await inbox.list(0)).length).toBe(0);
    expect(await inbox.findEntry(pages[2] ?? '')).toEqual((await inbox.list(3))[2]);
    expect(await inbox.findEntry('01890000-0000-7000-8000-ffffffffffff')).toBeNull();
    expect(await inbox.findEntry('../new/x')).toBeNull();
  });
});
