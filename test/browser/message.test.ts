import { expect, test } from 'vitest';
import { createBrowserRig, waitForState as waitForMessageState } from '../rig/browser.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const browsers = createBrowserRig();
const service = await rig.serve(rig.createFolder());
const toSimulatorAddress = (name: string) => `${name}@simulator.postrider.test`;
const submitMessage = (to: string, subject: string) => submitAccepted(service.publicUrl, service.key, { to, subject });
const waitForState = (id: string, state: string) => waitForMessageState(browsers, service, id, state);

test.each([
  ['success', 'delivered', /The attempt at .* succeeded/],
  ['bounce', 'bounced', /bounced \(recipient-unknown; class hard, category mailbox-unknown\)/],
  ['defer', 'queued', /One delivery attempt was made; the next attempt is at/],
  ['complaint', 'complained', /recorded as complained/],
  ['suppressed', 'suppressed', /the simulator always suppresses this address/],
])('for a message to %s@simulator, the message page shows the state %s and its reason', async (name, state, why) => {
  const id = await submitMessage(toSimulatorAddress(name), `To ${name}`);
  await waitForState(id, state);
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  await page.getByRole('region', { name: 'Explanation' }).getByText(why).waitFor();
  if (name === 'defer') await page.getByTitle('queued; the last attempt was deferred').waitFor();
  await page.getByRole('region', { name: 'Timeline' }).getByText('accepted', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Content' }).getByText('Thank you.').waitFor();
});

test('an ended message can be resent on its page, and the pages of the original and the new message link to each other', async () => {
  const id = await submitMessage('again@example.com', 'Sent a second time');
  await waitForState(id, 'delivered');
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  await page
    .getByRole('region', { name: 'Result' })
    .getByText(/^Delivered in /)
    .waitFor();
  await page.getByRole('button', { name: 'Resend…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resend message' }).click();
  await page.getByRole('link', { name: id }).first().waitFor();
  expect(page.url()).not.toContain(id);
  const newId = page.url().split('/').at(-1) ?? '';
  await waitForState(newId, 'delivered');
  await page.getByRole('link', { name: id }).first().click();
  await page.getByRole('region', { name: 'Timeline' }).getByRole('link', { name: newId }).waitFor();
});

test('the message page shows the HTML in a sandboxed frame, the time of each transcript line, and times in UTC or local time', async () => {
  const id = await submitAccepted(service.publicUrl, service.key, {
    to: toSimulatorAddress('success'),
    subject: 'With HTML',
    message: '<!doctype html><html><body><p>A <b>framed</b> word</p></body></html>',
  });
  await waitForState(id, 'delivered');
  const { page } = await browsers.openSignedIn(service, `/messages/${id}`);
  await page.frameLocator('iframe').getByText('A framed word').waitFor();
  expect(await page.locator('iframe').getAttribute('sandbox')).toBe('');
  const content = page.getByRole('region', { name: 'Content' });
  await content.getByText('Text', { exact: true }).click();
  await expect.poll(() => content.locator('pre').textContent()).toBe('A framed word\n');
  await content.getByText('Source', { exact: true }).click();
  await expect.poll(() => content.locator('pre').textContent()).toContain('<b>framed</b>');

  await page.getByText(/^SMTP transcript · 2 lines/).click();
  await page.getByText('+0 ms', { exact: true }).waitFor();

  const timeline = page.getByRole('region', { name: 'Timeline' });
  const { at } = await browsers.callApi<{ at: string }>(service, 'GET', `/messages/${id}`);
  await timeline.getByText(at.slice(11, 23)).waitFor();
  await timeline.getByText('Local', { exact: true }).click();
  await page.getByRole('button', { name: 'Local: show times in UTC' }).waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Local: show times in UTC' }).click();
  await timeline.getByText(at.slice(11, 23)).waitFor();
});
