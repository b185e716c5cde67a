import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { expect, test } from 'vitest';
import { runCurl } from '../rig/curl.ts';
import { runCommand, runJsonCommand, submit } from '../rig/service.ts';
import { createScenario, readMessageId, sendRequest, signInToService, UUID_V7 } from './running-service.ts';

const rig = createScenario();

test('before the first start, no check of doctor fails, and doctor creates no file', async () => {
  const folder = rig.createFolder();
  expect(await runCommand(folder, ['doctor'])).toMatchObject({ code: 0, stderr: '' });
  expect(readdirSync(folder)).toEqual([]);
});

test('the printed command sends the first message; the Maildir, the inbox and the output of `message show` contain the message', async () => {
  const folder = rig.createFolder();
  const firstService = await rig.serveWithBanner(folder);
  const { banner, operatorUrl } = firstService;
  for (const text of [firstService.publicUrl, `${operatorUrl}/inbox`, 'data/inbox']) expect(banner).toContain(text);
  expect(banner).not.toContain('\u001b');
  const answer = await runCurl(banner);
  expect(answer.status).toBe(201);
  const id = readMessageId(answer.text);

  const inboxPath = join(folder, 'data/inbox/new');
  await expect.poll(() => readdirSync(join(folder, 'data'))).toContain('inbox');
  await expect.poll(() => readdirSync(inboxPath)).toHaveLength(1);
  const source = readFileSync(join(inboxPath, readdirSync(inboxPath)[0] ?? ''));
  expect(await PostalMime.parse(source)).toMatchObject({
    ...{ subject: 'Hello', text: expect.stringMatching(/^It works\.\s*$/), messageId: `<${id}@example.org>` },
    ...{ to: [{ address: 'ada@example.com' }], from: { address: 'hello@example.org' } },
  });

  const page = await sendRequest(`${operatorUrl}/inbox`);
  expect([page.status, page.text.includes('<div id="root">')]).toEqual([200, true]);
  const scripts = [...page.text.matchAll(/ src="(\/assets\/[^"]+\.js)"/g)].map(([, path]) => path ?? '');
  expect(scripts).not.toEqual([]);
  for (const path of scripts) {
    const script = await sendRequest(`${operatorUrl}${path}`);
    expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
  }
  const headers = await signInToService(firstService);
  const inbox = await sendRequest(`${operatorUrl}/api/v1/inbox`, { headers });
  expect(JSON.parse(inbox.text)).toMatchObject({
    messages: [{ id, to: 'ada@example.com', from: 'hello@example.org', subject: 'Hello' }],
    next: null,
  });
  const inboxSource = await sendRequest(`${operatorUrl}/api/v1/inbox/${id}/source`, { headers });
  expect(inboxSource.text).toBe(source.toString());

  const store = await rig.openStore(folder);
  await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');
  expect(await runJsonCommand(folder, ['message', 'show', id])).toMatchObject({
    attempts: [{ outcome: 'delivered' }],
    events: [{ type: 'accepted' }, { type: 'delivered' }],
  });
  const plainOutput = await runCommand(folder, ['message', 'show', id]);
  expect([plainOutput.code, plainOutput.stderr, plainOutput.stdout.includes('delivered')]).toEqual([0, '', true]);
  expect(await firstService.stop()).toBe(0);

  const restartedService = await rig.serve(folder);
  expect(restartedService.key).toBe('');
  expect((await submit(restartedService.publicUrl, firstService.key)).status).toBe(201);
  expect(await runJsonCommand(folder, ['key', 'list', 'default'])).toHaveLength(1);
  await restartedService.stop();
});

test('`send` submits a message through the unix socket in POSTRIDER_LISTEN or in `--url`, with and without an API key', async () => {
  const folder = rig.createFolder();
  const socket = `unix:${join(folder, 'api.sock')}`;
  const service = await rig.serve(folder, { POSTRIDER_LISTEN: socket });
  expect(service.publicUrl).toBe(socket);
  const flags = ['send', '--to', 'rita@example.com', '--from', 'shop@example.org', '--subject', 's', '--message', 'ü'];
  const acceptedResult = { id: expect.stringMatching(UUID_V7) };
  expect(await runJsonCommand(folder, flags, { POSTRIDER_LISTEN: socket })).toEqual(acceptedResult);
  expect(await runJsonCommand(folder, [...flags, '--url', socket, '--key', service.key])).toEqual(acceptedResult);
  // The temporary key that the first command created is no longer valid.
  const keys = await runJsonCommand<{ name: string }[]>(folder, ['key', 'list', 'default']);
  expect(keys.filter(({ name }) => name === 'send')).toMatchObject([{ state: 'revoked' }]);
  const sendWithUnknownKey = (url: string) => runCommand(folder, [...flags, '--url', url, '--key', 'pr_unknown']);
  expect(await sendWithUnknownKey(socket)).toMatchObject({ code: 1, stderr: 'postrider: 401 Invalid API key\n' });
  await service.stop();
  expect(await sendWithUnknownKey(socket)).toMatchObject({
    ...{ code: 1, stderr: expect.stringMatching(/^postrider: no response from unix:[^\n]+\n$/) },
  });
  expect(await sendWithUnknownKey('unix:api.sock')).toMatchObject({
    ...{ code: 2, stderr: expect.stringMatching(/^postrider: --url: [^\n]+\n$/) },
  });
});
