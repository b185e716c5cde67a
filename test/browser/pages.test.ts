/** Every page, with something on it: no grave fault that axe finds, in light and dark, and no scrolling sideways on a phone. */
import { beforeAll, expect, test, vi } from 'vitest';
import { browserRig } from '../rig/browser.ts';
import { graveFaults, onPhoneInTheDark, sidewaysScroll } from '../rig/page-checks.ts';
import { accepted } from '../rig/service.ts';
import { type StandingService, scenario } from '../scenarios/standing.ts';

const rig = scenario();
const browsers = browserRig();
let service: StandingService;
let id = '';

beforeAll(async () => {
  service = await rig.serve(rig.folder());
  const to = `a.long.name.as.they.are.given.in.some.companies@${'subsidiary.'.repeat(6)}example.com`;
  const message = '<html><body><h1>Hello</h1><p>It works.</p></body></html>';
  id = await accepted(service.publicUrl, service.key, { to, subject: `Receipt ${'x'.repeat(120)} end`, message });
  for (const name of ['bounce', 'defer', 'complaint', 'suppressed'])
    await accepted(service.publicUrl, service.key, { to: `${name}@simulator.postrider.test`, subject: `To ${name}` });
  await browsers.ask(service, 'POST', '/accounts', { name: 'acme', volume: '1000', rate: '100/1h', throttle: '5/s' });
  await browsers.ask(service, 'POST', '/accounts/acme/keys', { name: 'the shop’s web server', expires: '90d' });
  await browsers.ask(service, 'POST', '/accounts/acme/lock', { reason: 'the invoice of October is open' });
  await browsers.ask(service, 'POST', '/accounts/default/domains', { domain: 'mail.example.org' });
  await browsers.ask(service, 'POST', '/accounts/default/suppressions', { address: to, reason: 'bounce' });
  await vi.waitFor(
    async () => {
      expect(await browsers.ask(service, 'GET', `/messages/${id}`)).toMatchObject({ state: 'delivered' });
    },
    { timeout: 15_000 },
  );
});

test.each([
  ['overview', () => '/'],
  ['messages', () => '/messages'],
  ['messages, filtered by dates', () => '/messages?since=2026-01-01T00:00Z&until=2126-01-01T00:00Z&state=queued'],
  ['message', () => `/messages/${id}`],
  ['inbox', () => '/inbox'],
  ['inbox, a mail', () => `/inbox/${id}`],
  ['inbox, its text', () => `/inbox/${id}?view=text`],
  ['inbox, its headers', () => `/inbox/${id}?view=headers`],
  ['inbox, its source', () => `/inbox/${id}?view=source`],
  ['accounts', () => '/accounts'],
  ['account', () => '/accounts/acme'],
  ['domains', () => '/domains'],
  ['domain', () => '/domains/mail.example.org'],
  ['suppressions', () => '/suppressions?list=default'],
  ['audit log', () => '/audit'],
  ['API reference', () => '/reference'],
  ['no such page', () => '/messages/of/nobody'],
])('%s: at a desk in the light, on a phone in the dark', async (_name, path) => {
  const { page } = await browsers.operator(service, path());
  expect(await graveFaults(page)).toEqual([]);
  expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
  await onPhoneInTheDark(page);
  expect(await graveFaults(page)).toEqual([]);
  expect(await sidewaysScroll(page)).toEqual([]);
});
