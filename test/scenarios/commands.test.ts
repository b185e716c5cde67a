/** Tests the output of commands: the exact members of `--json`, plain text in a pipe, and one line per error. */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { createTemporaryFolder } from '../rig/folder.ts';
import { runCommand, runJsonCommand, startProcess, submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService, UUID_V7 } from './running-service.ts';

const rig = createScenario();
let folder = '';
let service: RunningService;
let id = '';
beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder);
  id = await submitAccepted(service.publicUrl, service.key, { subject: 'Rechnung \u202e Nr. 1' });
});

const ISO_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe('--json', () => {
  test('`key create --json` prints the id and the key', async () => {
    expect(await runJsonCommand(folder, ['key', 'create', 'default', '--name', 'ci', '--expires', '90d'])).toEqual({
      id: expect.stringMatching(/^key_\d+$/),
      key: expect.stringMatching(/^pr_[A-Za-z0-9_-]{43}$/),
    });
  });

  test('`message list --json` prints id, state, to, from, subject and at', async () => {
    const listMessages = () => runJsonCommand<object[]>(folder, ['message', 'list', '--to', 'rita@example.com']);
    const message = {
      id,
      to: 'rita@example.com',
      from: 'shop@example.org',
      subject: 'Rechnung \u202e Nr. 1',
      at: ISO_TIME,
    };
    await expect.poll(listMessages).toMatchObject([{ ...message, state: 'delivered' }]);
    expect(await runJsonCommand(folder, ['message', 'list', '--state', 'bounced'])).toEqual([]);
    expect(
      await runJsonCommand(folder, ['message', 'list', '--account', 'default', '--since', '1h', '--limit', '1']),
    ).toHaveLength(1);
  });

  test('`message show --json` prints id, state, to, from, subject, attempts and events', async () => {
    const shownMessage = await runJsonCommand<Record<string, unknown>>(folder, ['message', 'show', id]);
    expect(shownMessage).toMatchObject({
      id,
      to: 'rita@example.com',
      from: 'shop@example.org',
      state: expect.any(String),
    });
    expect(shownMessage).toHaveProperty('subject');
    expect(shownMessage.attempts).toBeInstanceOf(Array);
    expect(shownMessage.events).toBeInstanceOf(Array);
  });

  test('`send` prints the id from the 201 response', async () => {
    const flags = { to: 'rita@example.com', from: 'shop@example.org', subject: 's', message: 'm', key: service.key };
    const args = Object.entries({ ...flags, url: service.publicUrl }).flatMap(([name, value]) => [`--${name}`, value]);
    expect(await runJsonCommand(folder, ['send', ...args])).toEqual({ id: expect.stringMatching(UUID_V7) });
  });

  test('`send` needs no key on the machine of the store, and no temporary key remains valid', async () => {
    const flags = { to: 'rita@example.com', from: 'shop@example.org', subject: 's', message: 'm' };
    const args = Object.entries({ ...flags, url: service.publicUrl }).flatMap(([name, value]) => [`--${name}`, value]);
    expect(await runJsonCommand(folder, ['send', ...args])).toEqual({ id: expect.stringMatching(UUID_V7) });
    const keys = await runJsonCommand<{ name: string; state: string }[]>(folder, ['key', 'list', 'default']);
    expect(keys.filter(({ name }) => name === 'send')).toMatchObject([{ state: 'revoked' }]);
  });
});

test('`send` submits a message through the unix socket in POSTRIDER_LISTEN or in `--url`, with and without an API key', async () => {
  const folder = createTemporaryFolder();
  const socket = `unix:${join(folder, 'api.sock')}`;
  const service = await startProcess(folder, { POSTRIDER_LISTEN: socket });
  expect(service.publicUrl).toBe(socket);
  const flags = ['send', '--to', 'rita@example.com', '--from', 'shop@example.org', '--subject', 's', '--message', 'ü'];
  const acceptedResult = { id: expect.stringMatching(UUID_V7) };
  expect(await runJsonCommand(folder, flags, { POSTRIDER_LISTEN: socket })).toEqual(acceptedResult);
  expect(await runJsonCommand(folder, [...flags, '--url', socket, '--key', service.key ?? ''])).toEqual(acceptedResult);
  const refusedResult = await runCommand(folder, [...flags, '--url', socket, '--key', 'pr_unknown']);
  expect([refusedResult.code, refusedResult.stderr]).toEqual([1, 'postrider: 401 Invalid API key\n']);
  service.kill('SIGTERM');
  expect(await service.exitPromise).toBe(0);
  const stoppedResult = await runCommand(folder, [...flags, '--url', socket, '--key', 'pr_unknown']);
  expect([stoppedResult.code, stoppedResult.stderr]).toEqual([
    1,
    expect.stringMatching(/^postrider: no response from unix:[^\n]+\n$/),
  ]);
  const relativePathResult = await runCommand(folder, [...flags, '--url', 'unix:api.sock', '--key', 'pr_unknown']);
  expect([relativePathResult.code, relativePathResult.stderr]).toEqual([
    2,
    expect.stringMatching(/^postrider: --url: [^\n]+\n$/),
  ]);
});

test('text output in a pipe contains no colors and no control characters from messages', async () => {
  for (const args of [
    ['message', 'list'],
    ['message', 'show', id],
    ['message', 'explain', id],
    ['account', 'list'],
    ['key', 'list', 'default'],
    ['config'],
  ]) {
    const { code, stdout, stderr } = await runCommand(folder, args);
    expect([args, code, stderr]).toEqual([args, 0, '']);
    expect(stdout.length).toBeGreaterThan(10);
    expect(/[\p{Cc}\u202e]/u.test(stdout.replaceAll('\n', ''))).toBe(false);
  }
});

const FAULTS: readonly (readonly [args: readonly string[], expectedLine: RegExp])[] = [
  [[], /no command/],
  [['srve'], /srve/],
  [['account', 'show', 'unknown'], /no account "unknown"/],
  [['account', 'create', 'a', '--rate', '10'], /--rate/],
  [['account', 'set', 'default'], /there is nothing to change/],
  [['key', 'create', 'unknown'], /no account "unknown"/],
  [['key', 'revoke', 'key_999'], /key_999/],
  [['key', 'rotate', 'first'], /key id/],
  [['message', 'show', 'nothing'], /"nothing"/],
  [['message', 'show', '0199aaaa-0000-7000-8000-000000000000'], /there is no message/],
  [['message', 'list', '--state', 'sent'], /--state/],
  [['message', 'list', '--since', 'yesterday'], /--since/],
  [
    [
      'send',
      '--to',
      'a@b.example',
      '--from',
      'a@b.example',
      '--subject',
      's',
      '--message',
      'm',
      '--key',
      'pr_x',
      '--url',
      'http://127.0.0.1:1',
    ],
    /no response/,
  ],
];

test.each(FAULTS)('the command with the arguments %j fails with a one-line error', async (args, expectedLine) => {
  const { code, stdout, stderr } = await runCommand(folder, args);
  expect(code).toBeGreaterThan(0);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/^postrider: [^\n]+\n$/);
  expect(stderr).toMatch(expectedLine);
});
