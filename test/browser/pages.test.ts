/**
 * Checks every page with data: axe finds no serious fault in light and dark mode, and a phone does not scroll
 * horizontally.
 */
import { beforeAll, expect, test, vi } from 'vitest';
import { createBrowserRig } from '../rig/browser.ts';
import {
  emulateDarkPhone,
  emulateLightDesktop,
  findGapsInForms,
  findHorizontalOverflow,
  findSeriousFaults,
} from '../rig/page-checks.ts';
import { submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService } from '../scenarios/running-service.ts';

const TO = `a.long.name.as.they.are.given.in.some.companies@${'subsidiary.'.repeat(6)}example.com`;

const rig = createScenario();
const browsers = createBrowserRig();
let service: RunningService;
let id = '';

beforeAll(async () => {
  service = await rig.serve(rig.createFolder(), { POSTRIDER_WEBHOOK_TARGETS: 'any' });
  // Nothing listens at this port, so that the attempts fail.
  const url = `http://127.0.0.1:9/${'long/'.repeat(30)}end`;
  await browsers.callApi(service, 'POST', '/webhooks', { url, name: 'the shop', events: 'all' });
  await browsers.callApi(service, 'POST', '/webhooks', { url, account: 'default' });
  await browsers.callApi(service, 'POST', '/webhooks/wh_2/disable');
  const message = '<html><body><h1>Hello</h1><p>It works.</p><a href="http://example.com/">Pay</a><img></body></html>';
  id = await submitAccepted(service.publicUrl, service.key, {
    to: TO,
    subject: `Receipt ${'x'.repeat(120)} end`,
    message,
  });
  for (const name of ['bounce', 'defer', 'complaint', 'suppressed'])
    await submitAccepted(service.publicUrl, service.key, {
      to: `${name}@simulator.postrider.test`,
      subject: `To ${name}`,
    });
  await browsers.callApi(service, 'POST', '/accounts', {
    name: 'acme',
    volume: '1000',
    rate: '100/1h',
    throttle: '5/s',
  });
  await browsers.callApi(service, 'POST', '/accounts/acme/keys', { name: 'the shop’s web server', expires: '90d' });
  const rule = { match: `${'rule.'.repeat(8)}example.com`, code: 451, text: `Try again ${'later '.repeat(20)}`.trim() };
  await browsers.callApi(service, 'POST', '/inbox/rules', { ...rule, times: 1_000 });
  await browsers.callApi(service, 'POST', '/accounts/acme/lock', { reason: 'the invoice of October is open' });
  await browsers.callApi(service, 'POST', '/accounts/default/domains', { domain: 'mail.example.org' });
  await browsers.callApi(service, 'POST', '/accounts/default/suppressions', { address: TO, reason: 'bounce' });
  await vi.waitFor(
    async () => {
      expect(await browsers.callApi(service, 'GET', `/messages/${id}`)).toMatchObject({ state: 'delivered' });
    },
    { timeout: 60_000 },
  );
});

const PAGES: Readonly<Record<string, () => readonly string[]>> = {
  overview: () => ['/'],
  messages: () => [
    '/messages',
    '/messages?since=2026-01-01T00:00Z&until=2126-01-01T00:00Z&state=queued',
    `/messages/${id}`,
  ],
  inbox: () => [
    '/inbox',
    '/inbox?tab=rules',
    ...['', '?view=text', '?view=checks', '?view=headers', '?view=source'].map((view) => `/inbox/${id}${view}`),
  ],
  accounts: () => ['/accounts', '/accounts/acme', '/accounts/acme?tab=keys', '/accounts/acme?tab=domains'],
  domains: () => ['/domains', '/domains/mail.example.org'],
  suppressions: () => ['/suppressions?list=default', `/suppressions?list=default&address=${encodeURIComponent(TO)}`],
  webhooks: () => ['/webhooks', '/webhooks/wh_1', '/webhooks/wh_2?status=failed'],
  providers: () => ['/providers'],
  feedback: () => ['/feedback'],
  health: () => ['/health'],
  tokens: () => ['/tokens'],
  settings: () => ['/settings'],
  'audit log': () => ['/audit'],
  'API reference and unknown path': () => [
    '/api-reference',
    '/api-reference?tab=operator',
    '/reference',
    '/messages/no/page',
  ],
};

const DIALOGS: readonly (readonly [button: string, path: string])[] = [
  ['Create account', '/accounts'],
  ['Edit limits', '/accounts/acme'],
  ['Unlock', '/accounts/acme'],
  ['Lock', '/accounts/default'],
  ['Create key', '/accounts/acme?tab=keys'],
  ['Add domain', '/domains'],
  ['Rotate keys', '/domains/mail.example.org'],
  ['Return path', '/domains/mail.example.org'],
  ['Remove', '/domains/mail.example.org'],
  ['Add address', '/suppressions?list=default'],
  ['Import', '/suppressions?list=default'],
  ['Create token', '/tokens'],
  ['Add rule', '/inbox?tab=rules'],
  ['Create endpoint', '/webhooks'],
  ['Edit', '/webhooks/wh_1'],
  ['Rotate secret', '/webhooks/wh_1'],
  ['Replay…', '/webhooks/wh_1'],
  ['Disable', '/webhooks/wh_1'],
  ['Delete', '/webhooks/wh_1'],
];

test.each(DIALOGS)(
  'the dialog “%s” on %s is accessible on a desktop in light mode and on a phone in dark mode',
  async (button, path) => {
    const { page } = await browsers.openSignedIn(service, path, { reducedMotion: true });
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.getByRole('dialog').waitFor();
    for (const checkPage of [emulateLightDesktop, emulateDarkPhone]) {
      await checkPage(page);
      expect(await findSeriousFaults(page)).toEqual([]);
      expect(await findHorizontalOverflow(page)).toEqual([]);
    }
    expect(await findGapsInForms(page)).toEqual([]);
  },
);

test.each(Object.entries(PAGES))(
  'the page %s is accessible on a desktop in light mode and on a phone in dark mode',
  async (_name, paths) => {
    const { page, visit } = await browsers.openSignedIn(service, '/messages/no/page', { reducedMotion: true });
    for (const path of paths()) {
      await emulateLightDesktop(page);
      await visit(path);
      expect(await findSeriousFaults(page), path).toEqual([]);
      expect(await page.getByRole('heading', { level: 1 }).count(), path).toBe(1);
      await emulateDarkPhone(page);
      expect(await findSeriousFaults(page), `${path} on a phone in dark mode`).toEqual([]);
      expect(await findHorizontalOverflow(page), path).toEqual([]);
    }
  },
);
