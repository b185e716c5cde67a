/** Tests the first steps: start the service, run the printed command, read the message. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { expect, test } from 'vitest';
import { runCurl } from '../rig/curl.ts';
import { runCommand, runJsonCommand, submit } from '../rig/service.ts';
import { createScenario, readMessageId, sendRequest, signInToService } from './running-service.ts';

const rig = createScenario();

test('the printed command sends the first message; the Maildir, the inbox and the output of `message show` contain the message', async () => {
  const folder = rig.createFolder();
  const firstService = await rig.serveWithBanner(folder);
  const store = await rig.openStore(folder);
  expect(firstService.banner).toContain(firstService.publicUrl);
  expect(firstService.banner).toContain(`${firstService.operatorUrl}/inbox`);
  expect(firstService.banner).toContain('data/inbox');
  expect(firstService.banner).not.toContain('\u001b');

  const answer = await runCurl(firstService.banner);
  expect(answer.status).toBe(201);
  const id = readMessageId(answer.text);

  const file = join(folder, 'data/inbox/new', `${id}.eml`);
  await expect.poll(() => readdirSync(join(folder, 'data')).includes('inbox')).toBe(true);
  await expect.poll(() => readdirSync(join(folder, 'data/inbox/new')).length).toBe(1);
  const [name] = readdirSync(join(folder, 'data/inbox/new'));
  const source = readFileSync(join(folder, 'data/inbox/new', name ?? file));
  const parsedMessage = await PostalMime.parse(source);
  expect([
    parsedMessage.subject,
    parsedMessage.text?.trim(),
    parsedMessage.to?.[0]?.address,
    parsedMessage.from?.address,
  ]).toEqual(['Hello', 'It works.', 'ada@example.com', 'hello@example.org']);
  expect(parsedMessage.messageId).toBe(`<${id}@example.org>`);

  const page = await sendRequest(`${firstService.operatorUrl}/inbox`);
  expect([page.status, page.text.includes('<div id="root">')]).toEqual([200, true]);
  const scripts = [...page.text.matchAll(/ src="(\/assets\/[^"]+\.js)"/g)].map(([, path]) => path ?? '');
  expect(scripts).not.toEqual([]);
  for (const path of scripts) {
    const script = await sendRequest(`${firstService.operatorUrl}${path}`);
    expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
  }
  const headers = await signInToService(firstService);
  const inbox = await sendRequest(`${firstService.operatorUrl}/api/v1/inbox`, { headers });
  expect(JSON.parse(inbox.text)).toMatchObject({
    messages: [{ id, to: 'ada@example.com', from: 'hello@example.org', subject: 'Hello' }],
    next: null,
  });
  expect((await sendRequest(`${firstService.operatorUrl}/api/v1/inbox/${id}/source`, { headers })).text).toBe(
    source.toString(),
  );

  await expect.poll(async () => (await store.findMessage(id))?.state).toBe('delivered');
  const shownMessage = await runJsonCommand<{ attempts: { outcome: string }[]; events: { type: string }[] }>(folder, [
    'message',
    'show',
    id,
  ]);
  expect(shownMessage.attempts.map(({ outcome }) => outcome)).toEqual(['delivered']);
  expect(shownMessage.events.map(({ type }) => type)).toEqual(['accepted', 'delivered']);
  const plainOutput = await runCommand(folder, ['message', 'show', id]);
  expect([plainOutput.code, plainOutput.stderr, plainOutput.stdout.includes('delivered')]).toEqual([0, '', true]);
  expect(await firstService.stop()).toBe(0);

  const restartedService = await rig.serveWithBanner(folder);
  expect(restartedService.banner).not.toMatch(/pr_[A-Za-z0-9_-]{20}/);
  expect((await submit(restartedService.publicUrl, firstService.key)).status).toBe(201);
  expect((await runJsonCommand<unknown[]>(folder, ['key', 'list', 'default'])).length).toBe(1);
});
