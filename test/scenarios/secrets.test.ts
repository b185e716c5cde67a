import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { toPrintable } from '../../src/printing/escape.ts';
import { dumpRows } from '../rig/postgres.ts';
import { type CommandResult, getStoreSettings, runCommand, runJsonCommand, submit } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, readMessageId, sendRequest } from './running-service.ts';

const rig = createScenario();

const BODY = 'bodymark-4711';
const RELAY_PASSWORD = 'relaymark-4712';
const OPERATOR_PASSWORD = 'operatormark-4713';
const WRONG_KEY = `pr_wrongmark4714${'A'.repeat(31)}`;
const WRONG_PASSWORD = 'wrongmark-4715';
/** C1 controls, separators and bidirectional controls. A subject may contain all of them. */
const CONTROL_CHARACTERS = [0x80, 0x85, 0x9b, 0x9f, 0x061c, 0x200e, 0x202e, 0x2028, 0x2029, 0x2066]
  .map((unit) => String.fromCharCode(unit))
  .join('x');

const findControlCharacters = (text: string) =>
  [...text].filter((character) => character !== '\n' && character !== '\t' && toPrintable(character) !== character);

/** Runs the commands one after another, because the working directory belongs to the process. */
async function runCommands(
  folder: string,
  commands: readonly (readonly [args: readonly string[], settings?: Record<string, string>])[],
): Promise<readonly CommandResult[]> {
  const results: CommandResult[] = [];
  for (const [args, settings] of commands) results.push(await runCommand(folder, args, settings));
  return results;
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

test('no body, key, password or control character is in the log, in a listing or in a metric, and no unencrypted secret is in a file', async () => {
  let authenticatedCount = 0;
  const server = await startSmtpServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    authOptional: false,
    onAuth(auth, _session, callback) {
      authenticatedCount += auth.password === RELAY_PASSWORD ? 1 : 0;
      callback(null, { user: 'relay' });
    },
    onRcptTo({ address }, _session, callback) {
      if (address.startsWith('gone')) callback(Object.assign(new Error('no such user'), { responseCode: 550 }));
      else if (address.startsWith('later')) callback(Object.assign(new Error('later'), { responseCode: 451 }));
      else callback();
    },
  });
  onTestFinished(() => server.close());
  const folder = rig.createFolder();
  const settings = {
    POSTRIDER_TRANSPORT: `smtp://relayuser:${RELAY_PASSWORD}@127.0.0.1:${server.port}`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_OPERATOR_PASSWORD: OPERATOR_PASSWORD,
    POSTRIDER_LOG: 'debug',
  };
  await runJsonCommand(folder, ['account', 'create', 'shop', '--volume', '4']);
  const { key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'shop']);
  const service = await rig.serve(folder, settings);
  expect(service.key).toBe('');

  const message = `Hello ${BODY}`;
  const subject = `Hello ${CONTROL_CHARACTERS} there`;
  const ids: string[] = [];
  for (const to of ['here@example.com', 'gone@example.com', 'later@example.com', 'bounce@simulator.postrider.test']) {
    const submitResponse = await submit(service.publicUrl, key, { to, subject, message });
    expect(submitResponse.status).toBe(201);
    ids.push(readMessageId(await submitResponse.text()));
  }
  const refusals = await Promise.all([
    submit(service.publicUrl, key, { message }),
    submit(service.publicUrl, key, { to: BODY, message }),
    submit(service.publicUrl, key, { subject: `a\0${BODY}`, message }),
    submit(service.publicUrl, key, { message }, { 'Content-Type': `text/${BODY}` }),
    submit(service.publicUrl, WRONG_KEY, { message }),
    submit(service.publicUrl, `Bearer ${key}`, { message }),
    fetch(`${service.publicUrl}/api/v1/send-mail?key=${key}`, { headers: { Authorization: key } }),
    fetch(`${service.publicUrl}/${key}`, { method: 'POST', headers: { Authorization: key }, body: message }),
    fetch(`${service.publicUrl}/api/v1/send-mail`, {
      method: 'POST',
      headers: { Authorization: key, 'Content-Type': 'application/json' },
      body: `{"message":"${BODY}" "`,
    }),
  ]);
  expect(refusals.map(({ status }) => status)).toEqual([403, 400, 400, 400, 401, 401, 405, 404, 400]);
  const store = await rig.openStore(folder);
  const findStates = () => Promise.all(ids.map(async (id) => (await store.findMessage(id))?.state));
  await expect.poll(findStates).toEqual(['delivered', 'bounced', 'queued', 'bounced']);
  expect(authenticatedCount).toBeGreaterThan(0);

  const createBasicHeader = (password: string) => ({
    Authorization: `Basic ${Buffer.from(`op:${password}`).toString('base64')}`,
  });
  const metrics = await sendRequest(`${service.operatorUrl}/metrics`, {
    headers: createBasicHeader(OPERATOR_PASSWORD),
  });
  expect(metrics.status).toBe(200);
  expect(
    (await sendRequest(`${service.operatorUrl}/metrics`, { headers: createBasicHeader(WRONG_PASSWORD) })).status,
  ).toBe(401);

  const [id = '', bouncedId = ''] = ids;
  const listings = await runCommands(folder, [
    [['config'], settings],
    [['config', '--json'], settings],
    [['message', 'list'], settings],
    [['message', 'list', '--json'], settings],
    [['message', 'show', id], settings],
    [['message', 'explain', bouncedId], settings],
    [['key', 'list', 'shop', '--json'], settings],
    [['config'], { ...settings, POSTRIDER_TRANSPORT: `smtp://u:${RELAY_PASSWORD}@h:70000` }],
    [['account', 'show', `a${CONTROL_CHARACTERS}\u001b[2J`], settings],
    [[`x${CONTROL_CHARACTERS}\u001b[2J`], settings],
    [['message', 'show', id, `--j${CONTROL_CHARACTERS}=${RELAY_PASSWORD}`], settings],
  ]);
  expect(listings.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2]);
  const shownMessage = await runJsonCommand<{ subject: string; attempts: unknown[] }>(
    folder,
    ['message', 'show', id],
    settings,
  );
  expect(shownMessage.subject).toBe(subject);
  const answer = await sendRequest(`${service.operatorUrl}/api/v1/messages?limit=10`, {
    headers: createBasicHeader(OPERATOR_PASSWORD),
  });
  expect(JSON.parse(answer.text)).toMatchObject({ messages: [{}, {}, {}, { id, subject }] });
  await service.stop();

  const searchedTexts = {
    log: service.stdout(),
    listings: listings.map(({ stdout, stderr }) => stdout + stderr).join(''),
    metrics: metrics.text,
    answer: answer.text,
    transcripts: JSON.stringify(shownMessage.attempts),
  };
  // Each searched text must contain the expected output. Otherwise, the search would also pass with empty texts.
  expect(searchedTexts.log).toContain(id);
  expect(searchedTexts.transcripts).toContain('AUTH');
  const encodeBase64 = (text: string) => Buffer.from(text).toString('base64').replace(/=+$/, '');
  const plainCredentials = `\0relayuser\0${RELAY_PASSWORD}`;
  const secrets = [
    key,
    key.slice(12),
    'wrongmark4714',
    RELAY_PASSWORD,
    encodeBase64(RELAY_PASSWORD),
    encodeBase64(plainCredentials),
    OPERATOR_PASSWORD,
    WRONG_PASSWORD,
  ];
  for (const [where, text] of Object.entries(searchedTexts)) {
    expect([where, [...secrets, BODY].filter((secret) => text.includes(secret))]).toEqual([where, []]);
    expect([where, findControlCharacters(text)]).toEqual([where, []]);
  }
  const files = listFiles(folder).map((path) => ({ path, bytes: readFileSync(path) }));
  const { POSTRIDER_DATABASE: url } = await getStoreSettings(folder);
  const storedText = url === undefined ? '' : await dumpRows(url);
  expect(files.some(({ bytes }) => bytes.includes(BODY)) || storedText.includes(BODY)).toBe(true);
  expect(secrets.filter((secret) => storedText.includes(secret))).toEqual([]);
  for (const { path, bytes } of files) {
    expect([path, secrets.filter((secret) => bytes.includes(secret))]).toEqual([path, []]);
    // Other users of the machine must not be able to read messages or hashes.
    expect([path, (statSync(path).mode & 0o077).toString(8)]).toEqual([path, '0']);
  }
});

test('the service refuses to start with a secret that does not decrypt the stored keys', async () => {
  const folder = rig.createFolder();
  const settings = { POSTRIDER_SECRET: 'ab'.repeat(32) };
  await runJsonCommand(folder, ['account', 'create', 'default'], settings);
  await runJsonCommand(folder, ['domain', 'add', 'default', 'sealed.example'], settings);
  const start = rig.serve(folder, { POSTRIDER_SECRET: 'cd'.repeat(32) });
  await expect(start).rejects.toThrow(/^POSTRIDER_SECRET is not the secret/);
});
