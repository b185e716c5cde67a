import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT_INVALID_SETTINGS } from '../../../src/cli/context.ts';
import type { Attempt } from '../../../src/model/outcome.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { listenOnFreePort } from '../../rig/free-port.ts';
import { createMessage } from '../../rig/messages.ts';
import { type CommandResult, spawnProgram } from '../../rig/service.ts';
import { getCertificate } from '../../rig/smtp-certificate.ts';
import { type CommandRig, createCommandRig, LAUNCHER, launchProgram } from './command-rig.ts';

const MESSAGE_ID = '01990000-0000-7000-8000-000000000001';
const QUEUED_ID = '01990000-0000-7001-8000-000000000002';
const CREATED_AT = 1_900_000_000_000;

/** Expects the exit code, no standard output, and an error of one line that contains `expectedPart`. */
function expectFailure(result: CommandResult, code: number, expectedPart: string): void {
  expect(result.stderr).toContain(expectedPart);
  expect(result.stderr.trimEnd()).not.toMatch(/\n| {4}at /);
  expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
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

async function createRigWithMessages(): Promise<CommandRig> {
  const rig = await createCommandRig();
  const messageParts = { subject: 'Hi \u001b[31mred\u202e', message: 'body', acceptedAt: CREATED_AT };
  const lease = { owner: 'node-1', until: CREATED_AT + 60_000 };
  const eve = { to: 'eve@example.com', recipient: 'eve@example.com' };
  await rig.store.accept([
    createMessage({ ...messageParts, id: MESSAGE_ID, to: 'bob@example.com', lease }),
    createMessage({ ...messageParts, id: QUEUED_ID, ...eve, acceptedAt: CREATED_AT + 1, lease: null }),
  ]);
  const diagnostic = '550 5.1.1 no such mailbox';
  const failure = { class: 'hard', category: 'mailbox-unknown', status: '5.1.1', diagnostic } as const;
  const event = {
    ...{ at: CREATED_AT + 1000, verb: 'bounced', by: 'node-1', detail: diagnostic, failure },
    attempt: BOUNCED_ATTEMPT,
  };
  const change = { to: 'bounced', dueAt: null, event, suppress: 'bounce' } as const;
  const settlement = { id: MESSAGE_ID, owner: 'node-1', attempts: 1, changes: [change], refundAttempt: false };
  expect(await rig.store.settle([settlement])).toEqual(['settled']);
  return rig;
}

describe('messages', () => {
  it('`message show` prints the attempts, their transcripts with times, and the events', async () => {
    const rig = await createRigWithMessages();
    const { transcript } = BOUNCED_ATTEMPT;
    expect(await rig.runJson('message', 'show', MESSAGE_ID)).toMatchObject({
      ...{ id: MESSAGE_ID, state: 'bounced', account: 'acme', message: 'body' },
      attempts: [{ outcome: 'bounced', reason: 'recipient-unknown', code: 550, enhancedCode: '5.1.1', transcript }],
      events: [
        { sequence: 0, type: 'accepted' },
        { sequence: 1, type: 'bounced', by: 'node-1' },
      ],
    });
    const { stdout } = await rig.run('message', 'show', MESSAGE_ID.toUpperCase());
    expect(stdout).toMatch(/^ {4} +\+4 ms {2}C: RCPT TO:<bob@example\.com>$/m);
    expect((await rig.run('message', 'explain', MESSAGE_ID)).stdout).toContain('answered 550 5.1.1 no such mailbox');
  });

  it('`message source` writes the raw source of a message with its line ends, or only its header fields', async () => {
    const rig = await createRigWithMessages();
    const { source, signature } = await rig.runJson<Record<'source' | 'signature', string>>(
      ...['message', 'source', MESSAGE_ID],
    );
    expect([source.endsWith('\r\n'), source.includes('\r\n\r\nbody'), signature]).toEqual([true, true, 'none']);
    expect((await rig.run('message', 'source', MESSAGE_ID)).stdout).toBe(source);
    const { stdout } = await rig.run('message', 'source', MESSAGE_ID, '--headers-only');
    expect(source.startsWith(`${stdout}\r\n`)).toBe(true);
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
    [['account', 'create', 'a\u001b[31m'], 'NAME: "a\uFFFD[31m" is not 1 to 64 visible characters'],
    [['account', 'lock', 'a'], "required option '--reason <text>' not specified; `postrider account lock --help`"],
    [['doctor', '--lop'], "unknown option '--lop' (Did you mean --loop?); `postrider doctor --help`"],
    [['key', 'mint'], "unknown command 'mint' (Did you mean list?); `postrider key --help`"],
    [['message', 'list', '--state', 'quued'], '--state: "quued" is not one of'],
    [
      ['send', '--to', 'a', '--from', 'b', '--subject', 'c', '--message', 'd', '--key', 'x', '--account', 'y'],
      '--account and --key exclude each other',
    ],
    [
      ['send', '--to', 'a', '--from', 'b', '--subject', 'c', '--message', 'd', '--key', 'x', '--url', 'ftp://x'],
      '--url: "ftp://x" is not a URL',
    ],
  ])('the command %j fails with a one-line error and exit code 2', async (args, errorText) => {
    expectFailure(await (await createCommandRig()).run(...args), 2, errorText);
  });
});

describe('settings', () => {
  it('`config` prints the settings from .env and from the environment, masks the secrets in them, and omits POSTRIDER_API_KEY', async () => {
    const rig = await createCommandRig();
    rig.dotEnv = 'POSTRIDER_TRANSPORT=smtp://u:hunter2hunter2@relay.example\nPOSTRIDER_LISTEN=127.0.0.1:1\n';
    rig.environment = {
      POSTRIDER_LISTEN: '127.0.0.1:2',
      POSTRIDER_OPERATOR_PASSWORD: 'hunter2hunter2',
      POSTRIDER_API_KEY: 'pr_environment',
    };
    const settings = await rig.runJson<readonly unknown[]>('config');
    expect(JSON.stringify(settings)).not.toMatch(/hunter2|API_KEY|pr_environment/);
    const transport = { name: 'POSTRIDER_TRANSPORT', value: 'smtp://u:********@relay.example', source: '.env' };
    expect(settings).toContainEqual({ name: 'POSTRIDER_LISTEN', value: '127.0.0.1:2', source: 'environment' });
    expect(settings).toContainEqual(transport);
    const { stdout } = await rig.run('config');
    expect(stdout).not.toContain('hunter2');
    expect(stdout).toMatch(/POSTRIDER_MAX_AGE +24h +default/);
  });

  it.each([
    ['config', 1],
    ['serve', EXIT_INVALID_SETTINGS],
    ['account list', 1],
  ])('with an invalid setting, `%s` fails with a one-line error and exit code %i', async (command, code) => {
    const rig = await createCommandRig();
    rig.environment = { POSTRIDER_LISTN: 'x' };
    expectFailure(await rig.run(...command.split(' ')), code, 'did you mean POSTRIDER_LISTEN?');
    rig.environment = {};
    rig.dotEnv = 'A=1\nwhat is this\n';
    expectFailure(await rig.run(...command.split(' ')), code, '.env line 2: the line is not NAME=value');
  });
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
    url = `http://127.0.0.1:${await listenOnFreePort(server)}`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));
  const sendArguments = 'send --to bob@example.com --from ann@example.org --subject Grüße --message Hi'.split(' ');

  it('reads the key from standard input, a flag, POSTRIDER_API_KEY or .env', async () => {
    const rig = await createCommandRig();
    answer = { status: 201, headers: {}, body: JSON.stringify({ result: { id: MESSAGE_ID } }) };
    const argumentsWithUrl = [...sendArguments, '--url', url];
    const readSentKey = async (...flags: string[]) => {
      expect((await rig.run(...argumentsWithUrl, ...flags)).stderr).toBe('');
      return receivedRequest.key;
    };
    rig.dotEnv = 'POSTRIDER_API_KEY=pr_file\n';
    expect(await readSentKey()).toBe('pr_file');
    rig.environment = { POSTRIDER_API_KEY: 'pr_environment' };
    expect(await readSentKey()).toBe('pr_environment');
    expect(await readSentKey('--key', 'pr_flag')).toBe('pr_flag');
    rig.inputLine = 'pr_input';
    expect(await readSentKey('--key', '-')).toBe('pr_input');
    // --account takes precedence over POSTRIDER_API_KEY.
    expect(await readSentKey('--account', 'acme')).not.toBe('pr_environment');
    rig.environment = { POSTRIDER_API_KEY: 'no key' };
    expectFailure(await rig.run(...argumentsWithUrl), 2, 'POSTRIDER_API_KEY is not an API key');
  });

  it('a refused request fails with exit code 1, and with the message and the reason in the response', async () => {
    const rig = await createCommandRig();
    const body = JSON.stringify({ result: 'error', message: 'Invalid tokens or rate limit exceeded' });
    answer = { status: 403, headers: { 'Postrider-Reason': 'volume-exhausted' }, body };
    const send = () => rig.run(...sendArguments, '--key', 'pr_k', '--url', url);
    expectFailure(await send(), 1, '403 Invalid tokens or rate limit exceeded (volume-exhausted)');
    answer = { status: 200, headers: {}, body: '<html>some other server</html>' };
    expectFailure(await send(), 1, 'the response is not from Postrider');
  });

  it('if no key is given, creates a key for the account, retries until the service accepts the key, and then revokes the key', async () => {
    const rig = await createCommandRig();
    expectFailure(await rig.run(...sendArguments, '--url', url), 1, 'there is no account "default"');
    answer = { status: 401, headers: {}, body: JSON.stringify({ result: 'error', message: 'Invalid API key' }) };
    receivedRequest = { path: '', key: '', body: '' };
    const pendingSend = rig.run(...sendArguments, '--url', url, '--account', 'acme', '--json');
    await expect.poll(() => receivedRequest.key).toMatch(/^pr_[A-Za-z0-9_-]{43}$/);
    const [listedKey] = await rig.runJson<Record<string, string>[]>('key', 'list', 'acme');
    expect(listedKey).toMatchObject({ name: 'send', state: 'active', prefix: receivedRequest.key.slice(0, 10) });
    expect(Date.parse(listedKey?.expires ?? '') - Date.parse(listedKey?.created ?? '')).toBe(300_000);
    answer = { status: 201, headers: {}, body: JSON.stringify({ result: { id: MESSAGE_ID } }) };
    expect(await pendingSend).toEqual({ code: 0, stdout: `{"id":"${MESSAGE_ID}"}\n`, stderr: '' });
    expect(await rig.runJson('key', 'list', 'acme')).toMatchObject([{ name: 'send', state: 'revoked' }]);
  });

  it('revokes the temporary key even if the service does not respond or refuses the request', async () => {
    const rig = await createCommandRig();
    const send = (address: string) => rig.run(...sendArguments, '--account', 'acme', '--url', address);
    expectFailure(await send('http://127.0.0.1:1'), 1, 'no response from');
    answer = { status: 401, headers: {}, body: JSON.stringify({ result: 'error', message: 'Account locked' }) };
    expectFailure(await send(url), 1, '401 Account locked');
    expect(await rig.runJson('key', 'list', 'acme')).toMatchObject([{ state: 'revoked' }, { state: 'revoked' }]);
  });

  it('without a key and without a database, fails with the remedy and creates no database', async () => {
    const rig = await createCommandRig();
    const path = join(rig.folder, 'other/postrider.db');
    rig.environment = { POSTRIDER_DATABASE: `sqlite:${path}` };
    const result = await rig.run(...sendArguments, '--url', url);
    expectFailure(result, 1, 'postrider.db" in which a key can be created; give --key');
    expect(existsSync(path)).toBe(false);
  });

  it('without a running service, the error contains the address from POSTRIDER_LISTEN', async () => {
    const rig = await createCommandRig({ POSTRIDER_LISTEN: '127.0.0.1:1' });
    expectFailure(await rig.run(...sendArguments, '--key', 'pr_k'), 1, 'no response from http://127.0.0.1:1');
  });

  it('if the service has an untrusted certificate, the error states that the certificate is not accepted', async () => {
    const tlsServer = createTlsServer(await getCertificate('mail.example.com'));
    const address = `https://127.0.0.1:${await listenOnFreePort(tlsServer)}`;
    const rig = await createCommandRig();
    const refusedResult = await rig.run(...sendArguments, '--key', 'pr_k', '--url', address);
    tlsServer.close();
    expectFailure(refusedResult, 1, `the certificate of ${address} is not accepted`);
  });
});

describe('the program', () => {
  it('writes content of a message without control characters, and one line for an error', async () => {
    const { folder } = await createRigWithMessages();
    const { code, stdout } = await launchProgram(folder, ['message', 'list'], '');
    expect([code, stdout.includes('Hi')]).toEqual([0, true]);
    expect(stdout).not.toMatch(/[\u202e]|\p{Cc}(?<!\n)/u);
    const failure = await launchProgram(folder, ['message', 'show', '12'], '');
    expectFailure(failure, 2, '"12" is not a message id');
    expect(failure.stderr).toMatch(/^postrider: [^\n]+\n$/);
  });

  it('reads a secret from the first line of standard input', async () => {
    const { folder } = await createCommandRig();
    const key = `pr_${'k'.repeat(43)}`;
    const args = ['key', 'import', 'acme', '--name', 'web', '--json'];
    expect(await launchProgram(folder, args, `${key}\r\nmore\n`)).toMatchObject({ code: 0, stderr: '' });
    expectFailure(await launchProgram(folder, args, ''), 2, 'standard input has no line');
  });

  it('prints no stack trace if the reader of a pipe closes it early', async () => {
    const command = `"${process.execPath}" "${LAUNCHER}" config | head -n 1`;
    const { stderr, exitPromise } = spawnProgram('sh', ['-c', command], {
      cwd: createTemporaryFolder(),
      env: process.env,
    });
    await exitPromise;
    expect(stderr()).toBe('');
  });
});

it('`openapi` prints the OpenAPI document of the public interface', async () => {
  expect(await (await createCommandRig()).runJson('openapi')).toMatchObject({
    openapi: expect.stringMatching(/^3\.1\./),
    info: { version: '1.0.0' },
  });
});
