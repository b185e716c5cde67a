import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT_INVALID_SETTINGS } from '../../../src/cli/failure.ts';
import type { Attempt } from '../../../src/model/outcome.ts';
import { openStore } from '../../../src/store/open.ts';
import { getCertificate } from '../../rig/smtp-certificate.ts';

const LAUNCHER = join(import.meta.dirname, '../../../bin/postrider.js');
const MESSAGE_ID = '01990000-0000-7000-8000-000000000001';
const QUEUED_ID = '01990000-0000-7001-8000-000000000002';

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Returns an environment without the POSTRIDER_ settings of the machine. */
function createEnvironment(extraSettings: Readonly<Record<string, string>>): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: tmpdir(), ...extraSettings };
}

function runProgram(
  folder: string,
  args: readonly string[],
  extraSettings: Readonly<Record<string, string>> = {},
  input = '',
): Promise<Result> {
  const child = spawn(process.execPath, [LAUNCHER, ...args], { cwd: folder, env: createEnvironment(extraSettings) });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined).end(input);
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  child.on('error', reject).on('close', (code) => resolve({ code, stdout, stderr }));
  return promise;
}

async function runJson(folder: string, args: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await runProgram(folder, [...args, '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

/** Expects the exit code, no standard output, and one line on standard error that contains `expectedPart`. */
function expectFailure(result: Result, code: number, expectedPart: string): void {
  expect(result.stderr).toContain(expectedPart);
  expect(result.stderr).toMatch(/^postrider: [^\n]+\n$/);
  expect(result.stderr).not.toContain('    at ');
  expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
}

async function runInFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-cli-'));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const BOUNCED_ATTEMPT: Attempt = {
  outcome: {
    kind: 'bounced',
    reason: 'recipient-unknown',
    suppress: true,
    reply: { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: 'no such mailbox' },
  },
  startedAt: 1_900_000_001_000,
  tookMs: 12,
  remote: 'relay.example:25',
  transcript: ['C: RCPT TO:<bob@example.com>', 'S: 550 5.1.1 no such mailbox'],
  lineOffsetsMs: [4, 12],
};

/**
 * Creates a store with an account, a bounced message and a queued message. The subjects of both messages contain
 * terminal escapes.
 */
async function createStore(folder: string): Promise<void> {
  const store = await openStore({ kind: 'sqlite', path: join(folder, 'data/postrider.db') }, { exclusive: false });
  try {
    const createdAt = 1_900_000_000_000;
    const limits = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };
    const account = await store.createAccount('acme', limits, createdAt);
    const key = await store.createKey(
      'acme',
      { name: 'k', prefix: 'pr_aaaaaaa', hash: '0'.repeat(64), expiresAt: null },
      createdAt,
    );
    if (account.kind !== 'done' || key.kind !== 'done') throw new Error('the store is not empty');
    const messageParts = {
      accountId: account.value.id,
      keyId: key.value.id,
      acceptedAt: createdAt,
      to: 'bob@example.com',
      recipient: 'bob@example.com',
      from: 'ann@example.org',
      subject: 'Hi \u001b[31mred\u202e',
      message: 'body',
      idempotency: null,
      suppressedBy: null,
    };
    const lease = { owner: 'node-1', until: createdAt + 60_000 };
    await store.accept([
      { ...messageParts, id: MESSAGE_ID, lease },
      {
        ...messageParts,
        id: QUEUED_ID,
        acceptedAt: createdAt + 1,
        to: 'eve@example.com',
        recipient: 'eve@example.com',
        lease: null,
      },
    ]);
    const event = {
      at: createdAt + 1000,
      verb: 'bounced',
      by: 'node-1',
      detail: '550 5.1.1 no such mailbox',
      failure: {
        class: 'hard',
        category: 'mailbox-unknown',
        status: '5.1.1',
        diagnostic: '550 5.1.1 no such mailbox',
      } as const,
      attempt: BOUNCED_ATTEMPT,
    };
    const change = { to: 'bounced', dueAt: null, event, suppress: 'bounce' } as const;
    const settleResults = await store.settle([
      { id: MESSAGE_ID, owner: 'node-1', attempts: 1, changes: [change], refundAttempt: false },
    ]);
    expect(settleResults).toEqual(['settled']);
  } finally {
    await store.close();
  }
}

describe('accounts and keys', () => {
  it('an account is created, changed, locked and unlocked, and its limits are printed', () =>
    runInFolder(async (folder) => {
      const createResult = await runProgram(folder, [
        'account',
        'create',
        'acme',
        '--volume',
        '100',
        '--rate',
        '1000/1h',
        '--throttle',
        '50/s:200',
      ]);
      expect({ code: createResult.code, stderr: createResult.stderr }).toEqual({ code: 0, stderr: '' });
      expect(createResult.stdout).not.toContain('\u001b');
      expect(await runJson(folder, ['account', 'show', 'acme'])).toMatchObject({
        name: 'acme',
        state: 'active',
        reason: null,
        volume: 100,
        volumeUsed: 0,
        volumeLeft: 100,
        volumeExpires: null,
        rate: '1000/1h',
        rateUsed: 0,
        rateLeft: 1000,
        throttle: '50/s:200',
      });
      const changeArguments = [
        'account',
        'set',
        'acme',
        '--volume-expires',
        '2030-12-31',
        '--rate',
        'none',
        '--throttle',
        '5/s',
      ];
      expect(await runJson(folder, changeArguments)).toMatchObject({
        volume: 100,
        volumeExpires: '2030-12-31T00:00:00.000Z',
        rate: null,
        throttle: '5/s',
      });
      expect(await runJson(folder, ['account', 'set', 'acme', '--no-volume'])).toMatchObject({
        volume: null,
        volumeExpires: null,
      });
      expect(await runJson(folder, ['account', 'lock', 'acme', '--reason', 'unpaid'])).toMatchObject({
        state: 'locked',
        reason: 'unpaid',
      });
      expect(await runJson(folder, ['account', 'list'])).toMatchObject([{ name: 'acme', state: 'locked' }]);
      expect(await runJson(folder, ['account', 'unlock', 'acme'])).toMatchObject({ state: 'active', reason: null });
      expectFailure(await runProgram(folder, ['account', 'create', 'acme']), 1, 'account "acme" already exists');
      expectFailure(
        await runProgram(folder, ['account', 'lock', 'unknown', '--reason', 'x']),
        1,
        'there is no account "unknown"',
      );
    }));

  it('a key is printed once, listed by its prefix, rotated with a grace period and revoked', () =>
    runInFolder(async (folder) => {
      await runJson(folder, ['account', 'create', 'acme']);
      const createdKey = await runJson(folder, ['key', 'create', 'acme', '--name', 'web', '--expires', '90d']);
      expect(createdKey).toEqual({
        id: expect.stringMatching(/^key_\d+$/),
        key: expect.stringMatching(/^pr_[A-Za-z0-9_-]{43}$/),
      });
      const { id, key } = createdKey as { id: string; key: string };
      const listResult = await runProgram(folder, ['key', 'list', 'acme', '--json']);
      expect(listResult.stdout).not.toContain(key);
      expect(JSON.parse(listResult.stdout)).toMatchObject([
        { id, account: 'acme', name: 'web', prefix: key.slice(0, 10), state: 'active' },
      ]);
      const rotatedKey = await runJson(folder, ['key', 'rotate', id, '--grace', '1h']);
      expect(rotatedKey).toMatchObject({
        id: expect.not.stringMatching(id),
        key: expect.stringMatching(/^pr_/),
        replaces: id,
      });
      expect(await runJson(folder, ['key', 'revoke', id.slice('key_'.length)])).toMatchObject({ id });
      expect(await runJson(folder, ['key', 'list', 'acme'])).toMatchObject([
        { id, state: 'revoked' },
        { state: 'active', name: 'web' },
      ]);
      expectFailure(await runProgram(folder, ['key', 'create', 'unknown']), 1, 'there is no account "unknown"');
      expectFailure(await runProgram(folder, ['key', 'revoke', 'key_999']), 1, 'there is no valid key key_999');
    }));
});

describe('messages', () => {
  let folder = '';
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'postrider-cli-'));
    await createStore(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('`message list` filters messages by account, state, recipient and time', async () => {
    const bouncedMessage = {
      id: MESSAGE_ID,
      state: 'bounced',
      to: 'bob@example.com',
      from: 'ann@example.org',
      subject: 'Hi \u001b[31mred\u202e',
      at: '2030-03-17T17:46:40.000Z',
    };
    expect(await runJson(folder, ['message', 'list', '--state', 'bounced'])).toMatchObject([bouncedMessage]);
    expect(await runJson(folder, ['message', 'list', '--account', 'acme', '--to', 'eve@example.com'])).toMatchObject([
      { id: QUEUED_ID },
    ]);
    expect(await runJson(folder, ['message', 'list', '--limit', '1'])).toHaveLength(1);
    expect(await runJson(folder, ['message', 'list', '--since', '2031-01-01'])).toEqual([]);
    expectFailure(
      await runProgram(folder, ['message', 'list', '--account', 'unknown']),
      1,
      'there is no account "unknown"',
    );
  });

  it('the content of a message cannot control the terminal', async () => {
    for (const args of [
      ['message', 'list'],
      ['message', 'show', MESSAGE_ID],
      ['message', 'explain', MESSAGE_ID],
    ]) {
      const { code, stdout } = await runProgram(folder, args);
      expect(code).toBe(0);
      expect(stdout).not.toMatch(/[\u202e]|\p{Cc}(?<!\n)/u);
    }
  });

  it('`message show` prints the attempts, their transcripts and the events', async () => {
    expect(await runJson(folder, ['message', 'show', MESSAGE_ID])).toMatchObject({
      id: MESSAGE_ID,
      state: 'bounced',
      account: 'acme',
      message: 'body',
      attempts: [
        {
          outcome: 'bounced',
          reason: 'recipient-unknown',
          code: 550,
          enhancedCode: '5.1.1',
          transcript: BOUNCED_ATTEMPT.transcript,
        },
      ],
      events: [
        { sequence: 0, type: 'accepted' },
        { sequence: 1, type: 'bounced', by: 'node-1' },
      ],
    });
    const showResult = await runProgram(folder, ['message', 'show', MESSAGE_ID.toUpperCase()]);
    expect(showResult.stdout).toContain('C: RCPT TO:<bob@example.com>');
  });

  it('`message source` writes the raw source of a message with its line ends, or only its header fields', async () => {
    const { source, signature } = (await runJson(folder, ['message', 'source', MESSAGE_ID])) as Record<string, string>;
    expect([source?.endsWith('\r\n'), source?.includes('\r\n\r\nbody'), signature]).toEqual([true, true, 'none']);
    expect((await runProgram(folder, ['message', 'source', MESSAGE_ID])).stdout).toBe(source);
    const { stdout } = await runProgram(folder, ['message', 'source', MESSAGE_ID, '--headers-only']);
    expect(source?.startsWith(`${stdout}\r\n`)).toBe(true);
  });

  it('`message show` prints the time of each transcript line if the transcript contains times', async () => {
    const { stdout } = await runProgram(folder, ['message', 'show', MESSAGE_ID]);
    expect(stdout).toMatch(/^ {4} +\+4 ms {2}C: RCPT TO:<bob@example\.com>$/m);
  });

  it('`message explain` prints the reason for the state', async () => {
    const { stdout } = await runProgram(folder, ['message', 'explain', MESSAGE_ID]);
    expect(stdout).toContain('is bounced: the next hop permanently refused it');
    expect(stdout).toContain('relay.example:25 answered 550 5.1.1 no such mailbox');
  });

  it('a queued message can be retried and cancelled, and a message in a terminal state cannot', async () => {
    expectFailure(
      await runProgram(folder, ['message', 'retry', MESSAGE_ID]),
      1,
      'is bounced; only queued and uncertain messages can be retried',
    );
    expectFailure(
      await runProgram(folder, ['message', 'cancel', MESSAGE_ID]),
      1,
      'is bounced; only queued and uncertain messages can be cancelled',
    );
    expect(await runJson(folder, ['message', 'retry', QUEUED_ID])).toEqual({ id: QUEUED_ID, state: 'queued' });
    expect(await runJson(folder, ['message', 'cancel', QUEUED_ID])).toEqual({ id: QUEUED_ID, state: 'cancelled' });
    expect(await runJson(folder, ['message', 'show', QUEUED_ID])).toMatchObject({ state: 'cancelled' });
    const unknownId = MESSAGE_ID.replace('0199', '0198');
    expectFailure(await runProgram(folder, ['message', 'show', unknownId]), 1, `there is no message ${unknownId}`);
  });
});

describe('wrong usage', () => {
  it.each([
    [['acount'], "unknown command 'acount' (Did you mean account?)"],
    [[], 'no command is given'],
    [['key'], 'no command is given'],
    [['account', 'create'], "missing required argument 'name'"],
    [['account', 'create', 'a', 'b'], 'too many arguments'],
    [['account', 'create', 'a', '--volum', '1'], "unknown option '--volum'"],
    [['account', 'create', 'a', '--volume', 'ten'], '--volume: "ten" is not a whole number'],
    [['account', 'create', 'a', '--rate', '5'], '--rate: "5" is not a rate such as 1000/1h'],
    [['account', 'create', 'a', '--throttle', '5/m'], '--throttle: "5/m" is not a throttle such as 50/s'],
    [['account', 'create', 'a', '--volume-expires', 'soon'], '--volume-expires: "soon" is not a date such as'],
    [['account', 'create', 'a\u001b[31m'], 'NAME: "a\uFFFD[31m" is not 1 to 64 visible characters'],
    [['account', 'set', 'a'], 'there is nothing to change'],
    [['account', 'lock', 'a'], "required option '--reason <text>' not specified; `postrider account lock --help`"],
    [['doctor', '--lop'], "unknown option '--lop' (Did you mean --loop?); `postrider doctor --help`"],
    [['key', 'mint'], "unknown command 'mint' (Did you mean list?); `postrider key --help`"],
    [['key', 'revoke', 'pr_x'], '"pr_x" is not a key id such as key_12'],
    [['message', 'list', '--state', 'quued'], '--state: "quued" is not one of'],
    [['message', 'list', '--limit', '0'], '--limit: "0" is not a whole number from 1'],
    [['message', 'show', '12'], '"12" is not a message id'],
    [
      ['send', '--to', 'a', '--from', 'b', '--subject', 'c', '--message', 'd', '--key', 'x', '--account', 'y'],
      '--account and --key exclude each other',
    ],
    [
      ['send', '--to', 'a', '--from', 'b', '--subject', 'c', '--message', 'd', '--key', 'x', '--url', 'ftp://x'],
      '--url: "ftp://x" is not a URL',
    ],
  ])('the command %j fails with a one-line error and exit code 2', (args, errorText) =>
    runInFolder(async (folder) => expectFailure(await runProgram(folder, args), 2, errorText)),
  );
});

describe('settings', () => {
  it('`config` prints the settings from .env and from the environment, and masks the secrets in them', () =>
    runInFolder(async (folder) => {
      writeFileSync(
        join(folder, '.env'),
        'POSTRIDER_TRANSPORT=smtp://u:hunter2hunter2@relay.example\nPOSTRIDER_LISTEN=127.0.0.1:1\n',
      );
      const extraSettings = { POSTRIDER_LISTEN: '127.0.0.1:2', POSTRIDER_OPERATOR_PASSWORD: 'hunter2hunter2' };
      const jsonOutput = await runProgram(folder, ['config', '--json'], extraSettings);
      expect(jsonOutput.stdout).not.toContain('hunter2');
      const settings: unknown = JSON.parse(jsonOutput.stdout);
      expect(settings).toContainEqual({ name: 'POSTRIDER_LISTEN', value: '127.0.0.1:2', source: 'environment' });
      expect(settings).toContainEqual({
        name: 'POSTRIDER_TRANSPORT',
        value: 'smtp://u:********@relay.example',
        source: '.env',
      });
      const textOutput = await runProgram(folder, ['config'], extraSettings);
      expect(textOutput.stdout).not.toContain('hunter2');
      expect(textOutput.stdout).toMatch(/POSTRIDER_MAX_AGE +24h +default/);
    }));

  it.each([
    ['config', 1],
    ['serve', EXIT_INVALID_SETTINGS],
    ['account list', 1],
  ])('with an invalid setting, `%s` fails with a one-line error and exit code %i', (command, code) =>
    runInFolder(async (folder) => {
      const args = command.split(' ');
      expectFailure(await runProgram(folder, args, { POSTRIDER_LISTN: 'x' }), code, 'did you mean POSTRIDER_LISTEN?');
      writeFileSync(join(folder, '.env'), 'A=1\nwhat is this\n');
      expectFailure(await runProgram(folder, args), code, '.env line 2: the line is not NAME=value');
    }),
  );

  it('with a damaged database, a command fails with a one-line error', () =>
    runInFolder(async (folder) => {
      writeFileSync(join(folder, 'broken.db'), 'this is not a database '.repeat(500));
      const extraSettings = { POSTRIDER_DATABASE: 'sqlite:./broken.db' };
      expectFailure(await runProgram(folder, ['account', 'list'], extraSettings), 1, 'broken.db');
    }));
});

describe('send', () => {
  let server: Server;
  let url = '';
  let answer = { status: 201, headers: {} as Record<string, string>, body: '' };
  let receivedRequest = { path: '', key: '', body: '' };
  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      receivedRequest = {
        path: request.url ?? '',
        key: request.headers.authorization ?? '',
        body: Buffer.concat(chunks).toString(),
      };
      response.writeHead(answer.status, answer.headers).end(answer.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));
  const sendArguments = [
    'send',
    '--to',
    'bob@example.com',
    '--from',
    'ann@example.org',
    '--subject',
    'Grüße',
    '--message',
    'Hi',
  ];

  it('submits the four fields of the message, with the key as the Authorization header, and prints the id of the message', () =>
    runInFolder(async (folder) => {
      answer = { status: 201, headers: {}, body: JSON.stringify({ result: { id: MESSAGE_ID } }) };
      const sendResult = await runProgram(folder, [...sendArguments, '--key', 'pr_k', '--url', `${url}/`, '--json']);
      expect(sendResult).toEqual({ code: 0, stdout: `{"id":"${MESSAGE_ID}"}\n`, stderr: '' });
      expect(receivedRequest).toMatchObject({ path: '/api/v1/send-mail', key: 'pr_k' });
      expect(JSON.parse(receivedRequest.body)).toEqual({
        to: 'bob@example.com',
        from: 'ann@example.org',
        subject: 'Grüße',
        message: 'Hi',
      });
    }));

  it('reads the key from standard input, POSTRIDER_API_KEY or .env, so that no command line contains the key', () =>
    runInFolder(async (folder) => {
      answer = { status: 201, headers: {}, body: JSON.stringify({ result: { id: MESSAGE_ID } }) };
      const argumentsWithUrl = [...sendArguments, '--url', url];
      const acceptedResult = { code: 0, stdout: `accepted ${MESSAGE_ID}\n`, stderr: '' };
      expect(await runProgram(folder, [...argumentsWithUrl, '--key', '-'], {}, 'pr_input\r\nmore\n')).toEqual(
        acceptedResult,
      );
      expect(receivedRequest.key).toBe('pr_input');
      expect(await runProgram(folder, argumentsWithUrl, { POSTRIDER_API_KEY: 'pr_environment' })).toEqual(
        acceptedResult,
      );
      expect(receivedRequest.key).toBe('pr_environment');
      writeFileSync(join(folder, '.env'), 'POSTRIDER_API_KEY=pr_file\n');
      expect(await runProgram(folder, argumentsWithUrl)).toEqual(acceptedResult);
      expect(receivedRequest.key).toBe('pr_file');
      expect(await runProgram(folder, [...argumentsWithUrl, '--key', 'pr_flag'])).toEqual(acceptedResult);
      expect(receivedRequest.key).toBe('pr_flag');
      expectFailure(await runProgram(folder, [...argumentsWithUrl, '--key', '-']), 2, 'standard input has no line');
      expectFailure(
        await runProgram(folder, argumentsWithUrl, { POSTRIDER_API_KEY: 'no key' }),
        2,
        'POSTRIDER_API_KEY is not an API key',
      );
      // --account takes precedence over POSTRIDER_API_KEY.
      expectFailure(
        await runProgram(folder, [...argumentsWithUrl, '--account', 'unknown'], {}),
        1,
        'there is no database',
      );
    }));

  it('POSTRIDER_API_KEY is not a setting: other commands ignore it and never print it', () =>
    runInFolder(async (folder) => {
      const config = await runProgram(folder, ['config', '--json'], { POSTRIDER_API_KEY: 'pr_environment' });
      expect([config.code, config.stderr, config.stdout.includes('API_KEY')]).toEqual([0, '', false]);
      expect(config.stdout).not.toContain('pr_environment');
      expect((await runProgram(folder, ['config'], { POSTRIDER_API_KEY: '' })).code).toBe(0);
    }));

  it('has a help text that states how a secret is read from standard input', () =>
    runInFolder(async (folder) => {
      for (const command of ['send', 'migrate-store']) {
        const { stdout } = await runProgram(folder, [command, '--help']);
        expect(stdout.replaceAll(/\s+/g, ' ')).toContain('- reads it from standard input');
      }
    }));

  it('the help text of `--no-ed25519` states what the flag disables', () =>
    runInFolder(async (folder) => {
      const { stdout } = await runProgram(folder, ['domain', 'add', '--help']);
      expect(stdout).toMatch(/--no-ed25519\s+Create no Ed25519 key/);
    }));

  it('a refused request fails with exit code 1, and with the message and the reason in the response', () =>
    runInFolder(async (folder) => {
      const body = JSON.stringify({ result: 'error', message: 'Invalid tokens or rate limit exceeded' });
      answer = { status: 403, headers: { 'Postrider-Reason': 'volume-exhausted' }, body };
      const refusedResult = await runProgram(folder, [...sendArguments, '--key', 'pr_k', '--url', url]);
      expectFailure(refusedResult, 1, '403 Invalid tokens or rate limit exceeded (volume-exhausted)');
      answer = { status: 200, headers: {}, body: '<html>some other server</html>' };
      expectFailure(
        await runProgram(folder, [...sendArguments, '--key', 'pr_k', '--url', url]),
        1,
        'the response is not from Postrider',
      );
    }));

  it('if no key is given, creates a key for the account, retries until the service accepts the key, and then revokes the key', () =>
    runInFolder(async (folder) => {
      await runProgram(folder, ['account', 'create', 'shop']);
      const missingAccountResult = await runProgram(folder, [...sendArguments, '--url', url]);
      expectFailure(missingAccountResult, 1, 'there is no account "default"');
      const body = JSON.stringify({ result: 'error', message: 'Invalid API key' });
      answer = { status: 401, headers: {}, body };
      receivedRequest = { path: '', key: '', body: '' };
      const pendingSend = runProgram(folder, [...sendArguments, '--url', url, '--account', 'shop', '--json']);
      await expect.poll(() => receivedRequest.key).toMatch(/^pr_[A-Za-z0-9_-]{43}$/);
      const [listedKey] = (await runJson(folder, ['key', 'list', 'shop'])) as Record<string, string>[];
      expect(listedKey).toMatchObject({
        name: 'send',
        state: 'active',
        prefix: receivedRequest.key.slice(0, listedKey?.prefix?.length),
      });
      expect(Date.parse(listedKey?.expires ?? '') - Date.parse(listedKey?.created ?? '')).toBe(300_000);
      answer = { status: 201, headers: {}, body: JSON.stringify({ result: { id: MESSAGE_ID } }) };
      expect(await pendingSend).toEqual({ code: 0, stdout: `{"id":"${MESSAGE_ID}"}\n`, stderr: '' });
      expect(await runJson(folder, ['key', 'list', 'shop'])).toMatchObject([{ name: 'send', state: 'revoked' }]);
    }));

  it('revokes the temporary key even if the service does not respond or refuses the request', () =>
    runInFolder(async (folder) => {
      await runProgram(folder, ['account', 'create', 'default']);
      expectFailure(await runProgram(folder, [...sendArguments, '--url', 'http://127.0.0.1:1']), 1, 'no response from');
      answer = { status: 401, headers: {}, body: JSON.stringify({ result: 'error', message: 'Account locked' }) };
      expectFailure(await runProgram(folder, [...sendArguments, '--url', url]), 1, '401 Account locked');
      expect(await runJson(folder, ['key', 'list', 'default'])).toMatchObject([
        { state: 'revoked' },
        { state: 'revoked' },
      ]);
    }));

  it('without a key and without a database, fails with a one-line error that contains the remedy, and creates no database', () =>
    runInFolder(async (folder) => {
      expectFailure(
        await runProgram(folder, [...sendArguments, '--url', url]),
        1,
        'postrider.db" in which a key can be created; give --key',
      );
      expect(existsSync(join(folder, 'data'))).toBe(false);
    }));

  it('if the service does not know the temporary key, the error states that the service uses another database', () =>
    runInFolder(async (folder) => {
      await runProgram(folder, ['account', 'create', 'default']);
      answer = { status: 401, headers: {}, body: JSON.stringify({ result: 'error', message: 'Invalid API key' }) };
      expectFailure(
        await runProgram(folder, [...sendArguments, '--url', url]),
        1,
        'so it uses another database; give --key',
      );
    }));

  it('without a running service, fails with a one-line error that contains the address from POSTRIDER_LISTEN', () =>
    runInFolder(async (folder) => {
      const extraSettings = { POSTRIDER_LISTEN: '127.0.0.1:1' };
      expectFailure(
        await runProgram(folder, [...sendArguments, '--key', 'pr_k'], extraSettings),
        1,
        'no response from http://127.0.0.1:1',
      );
    }));

  it('if the service has an untrusted certificate, the error states that the certificate is not accepted', () =>
    runInFolder(async (folder) => {
      const server = createTlsServer(await getCertificate('mail.example.com'));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const refusedResult = await runProgram(folder, [
        ...sendArguments,
        '--key',
        'pr_k',
        '--url',
        `https://127.0.0.1:${port}`,
      ]);
      server.close();
      expectFailure(refusedResult, 1, `the certificate of https://127.0.0.1:${port} is not accepted`);
    }));
});

it('if the reader of a pipe closes it early, the command prints no stack trace', () =>
  runInFolder(async (folder) => {
    const command = `"${process.execPath}" "${LAUNCHER}" config | head -n 1`;
    const child = spawn('sh', ['-c', command], {
      cwd: folder,
      env: createEnvironment({}),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.stdout.resume();
    await new Promise((resolve) => child.on('close', resolve));
    expect(stderr).toBe('');
  }));

it('`openapi` prints the OpenAPI document of the public interface', () =>
  runInFolder(async (folder) => {
    expect(await runJson(folder, ['openapi'])).toMatchObject({
      openapi: expect.stringMatching(/^3\.1\./),
      info: { version: '1.0.0' },
    });
  }));
