/** Tests that terminal output contains no control characters and no password of a mistyped setting. */
import { expect, test } from 'vitest';
import { isUnprintable } from '../../src/printing/escape.ts';
import { runCommand, runJsonCommand, submit } from '../rig/service.ts';
import { createScenario, readMessageId } from './running-service.ts';

const rig = createScenario();

/** C1 controls, separators and bidirectional controls. A subject may contain all of them. */
const CONTROL_CHARACTERS = [0x80, 0x85, 0x9b, 0x9f, 0x061c, 0x200e, 0x202e, 0x2028, 0x2029, 0x2066]
  .map((unit) => String.fromCharCode(unit))
  .join('x');
const SECRET = 'plantedPASSWORD4721';

/** Returns the control characters in a text, except line feeds and tabs. */
const findControlCharacters = (text: string) =>
  [...text].filter((character) => character !== '\n' && character !== '\t' && isUnprintable(character.charCodeAt(0)));

test('a message with C1 controls and separators in its subject is delivered, and text, JSON and the operator API escape these characters', async () => {
  const folder = rig.createFolder();
  const settings = { POSTRIDER_SENDERS: 'any' };
  await runJsonCommand(folder, ['account', 'create', 'shop']);
  const { key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'shop']);
  const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'reader']);
  const service = await rig.serve(folder, settings);
  const subject = `Hello ${CONTROL_CHARACTERS} there`;
  const response = await submit(service.publicUrl, key, { subject });
  expect(response.status).toBe(201);
  const id = readMessageId(await response.text());
  const store = await rig.openStore(folder);
  await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');

  const showOutput = await runCommand(folder, ['message', 'show', id, '--json']);
  expect(JSON.parse(showOutput.stdout)).toMatchObject({ subject });
  const answer = await fetch(`${service.operatorUrl}/api/v1/messages/${id}`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const body = await answer.text();
  expect([answer.status, JSON.parse(body)]).toMatchObject([200, { subject }]);
  const results = await Promise.all([
    runCommand(folder, ['message', 'show', id]),
    runCommand(folder, ['message', 'explain', id]),
    runCommand(folder, ['message', 'list']),
    runCommand(folder, ['message', 'search', '--to', 'rita@example.com', '--json']),
    runCommand(folder, ['account', 'show', `a${CONTROL_CHARACTERS}\u001b[2J`]),
    runCommand(folder, [`x${CONTROL_CHARACTERS}\u001b[2J`]),
    runCommand(folder, ['message', 'show', id, `--j${CONTROL_CHARACTERS}=${SECRET}`]),
  ]);
  expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0, 1, 2, 2]);
  expect(await service.stop()).toBe(0);
  const output = [...results, showOutput].map(({ stdout, stderr }) => stdout + stderr).join('');
  expect(output).toContain(id);
  expect(output).not.toContain(SECRET);
  for (const text of [output, body, service.stdout(), service.stderr()])
    expect(findControlCharacters(text)).toEqual([]);
});

test('no output of a command contains the password of a mistyped database URL or relay URL', async () => {
  const folder = rig.createFolder();
  const authority = `user:${SECRET}@db.example`;
  const mistypedUrls = [
    `sqlite:postgres://${authority}/db`,
    `postgers://${authority}/db`,
    `postgres:${authority}/db`,
    authority,
  ];
  const results = await Promise.all([
    ...mistypedUrls.map((database) => runCommand(folder, ['serve', '--json'], { POSTRIDER_DATABASE: database })),
    runCommand(folder, ['doctor'], { POSTRIDER_DATABASE: mistypedUrls[0] ?? '' }),
    runCommand(folder, ['config', '--json'], { POSTRIDER_TRANSPORT: `smtp://user:12/${SECRET}@` }),
    runCommand(folder, ['migrate-store', '--from', 'sqlite:x.db', '--to', `sqlite:postgres://${authority}/db`]),
    runCommand(folder, ['migrate-store', '--from', `mysql://${authority}/db`, '--to', 'postgres://h/db']),
    runCommand(folder, ['migrate-store', `--too=postgres://${authority}/db`]),
    runCommand(folder, [`postgres://${authority}/db`]),
    runCommand(folder, ['account', 'create', 'x', '--volume', `postgres://${authority}/db`]),
  ]);
  for (const { code, stdout, stderr } of results) {
    expect(code).not.toBe(0);
    expect(stdout + stderr).not.toContain(SECRET);
    expect(stderr).toMatch(/^postrider: [^\n]+\n$/);
  }
});
