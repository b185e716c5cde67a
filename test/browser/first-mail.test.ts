/** A newcomer's first minute, in the browser: the printed link, the page's own command, the mail that arrives by itself. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { browserRig } from '../rig/browser.ts';
import { runCurl } from '../rig/curl.ts';
import { scenario } from '../scenarios/standing.ts';

const rig = scenario();
const browsers = browserRig();

test('from the first start to the first mail seen: the link, the command of the page, the mail without a reload', async () => {
  const first = await rig.serveForPeople(rig.folder());
  const link = /(http:\/\/\S+\/sign-in\?link=\S+)/.exec(first.banner)?.[1] ?? '';
  const { page } = await browsers.stranger(first);
  await page.goto(link);
  await page.getByRole('heading', { name: 'Send a first mail' }).waitFor();
  const command = (await page.locator('pre').filter({ hasText: 'curl' }).innerText()).trim();
  await page.getByText('Waiting for your first mail').waitFor();
  const status = await runInShell(command);
  expect(status).toBe(201);

  await page.getByRole('link', { name: 'See it in the inbox' }).click();
  await page.getByRole('heading', { level: 2, name: 'Hello' }).waitFor();
  await page.getByText('It works.').waitFor();
  await page.goBack();

  await page.getByRole('link', { name: 'Messages' }).click();
  await page.getByRole('link', { name: 'Hello' }).click();
  await page.getByText(/The attempt of .* succeeded/).waitFor();
});

test('the inbox of an empty service shows the first mail as it arrives', async () => {
  const service = await rig.serve(rig.folder());
  const { page } = await browsers.operator(service, '/inbox');
  const command = (await page.locator('pre').filter({ hasText: 'curl' }).innerText()).trim();
  expect((await runCurl(command)).status).toBe(201);
  await page.getByRole('heading', { level: 2, name: 'Hello' }).waitFor();
  await page.getByText('It works.').waitFor();
});

test('an account is shown as it is, whatever it is called, also after the accounts were listed for a first key', async () => {
  const folder = rig.folder();
  await (await rig.serve(folder)).stop();
  // The first key is not known any more.
  const service = await rig.serve(folder);
  await browsers.ask(service, 'POST', '/accounts', { name: 'first-mail' });
  const { page } = await browsers.operator(service, '/');
  await page.getByRole('button', { name: 'Make a key for it' }).waitFor();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Accounts' }).click();
  await page.getByRole('link', { name: 'first-mail' }).click();
  await page.getByRole('heading', { level: 1, name: 'Account first-mail' }).waitFor();
  await page.getByText('active').waitFor();
});

/** As a person would, where the machine has a curl; else what it does. Gives the answer's status. */
async function runInShell(command: string): Promise<number> {
  try {
    await promisify(execFile)('curl', ['--version']);
  } catch {
    return (await runCurl(command)).status;
  }
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command]);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(stdout)?.[1]);
}
