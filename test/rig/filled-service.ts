import { createHash } from 'node:crypto';
import type { RunningService, Scenario } from '../scenarios/running-service.ts';
import { type BrowserRig, waitForState } from './browser.ts';
import { submitAccepted } from './service.ts';

export const LONG_ADDRESS = `a.long.name.as.they.are.given.in.some.companies@${'subsidiary.'.repeat(6)}example.com`;

export interface FilledService {
  readonly service: RunningService;
  readonly id: string;
}

export async function startFilledService(scenario: Scenario, browsers: BrowserRig): Promise<FilledService> {
  const { callApi } = browsers;
  const folder = scenario.createFolder();
  const service = await scenario.serve(folder, { POSTRIDER_WEBHOOK_TARGETS: 'any' });
  // No process listens on this port, so the webhook attempts fail.
  const url = `http://127.0.0.1:9/${'long/'.repeat(30)}end`;
  await callApi(service, 'POST', '/webhooks', { url, name: 'the shop', events: 'all' });
  await callApi(service, 'POST', '/webhooks', { url, account: 'default' });
  await callApi(service, 'POST', '/webhooks/wh_2/disable');
  const message = '<html><body><h1>Hello</h1><p>It works.</p><a href="http://example.com/">Pay</a><img></body></html>';
  const id = await submitAccepted(service.publicUrl, service.key, {
    to: LONG_ADDRESS,
    subject: `Receipt ${'x'.repeat(120)} end`,
    message,
  });
  for (const name of ['bounce', 'defer', 'complaint', 'suppressed'])
    await submitAccepted(service.publicUrl, service.key, {
      to: `${name}@simulator.postrider.test`,
      subject: `To ${name}`,
    });
  await callApi(service, 'POST', '/accounts', { name: 'acme', volume: '1000', rate: '100/1h', throttle: '5/s' });
  await callApi(service, 'POST', '/accounts/acme/keys', { name: 'the shop’s web server', expires: '90d' });
  const rule = { match: `${'rule.'.repeat(8)}example.com`, code: 451, text: `Try again ${'later '.repeat(20)}`.trim() };
  await callApi(service, 'POST', '/inbox/rules', { ...rule, times: 1_000 });
  await callApi(service, 'POST', '/accounts/acme/lock', { reason: 'the invoice of October is open' });
  await callApi(service, 'POST', '/accounts/default/domains', { domain: 'mail.example.org' });
  await callApi(service, 'POST', '/accounts/default/suppressions', { address: LONG_ADDRESS, reason: 'bounce' });
  const store = await scenario.openStore(folder);
  await store.recordFeedback([
    {
      messageRef: { id },
      events: [{ kind: 'unknown', reason: 'the message contains no report' }],
      source: 'smtp',
      digest: createHash('sha256').update('a report').digest('hex'),
      at: Date.now(),
      summary: `from <>: ${'Undelivered '.repeat(20)}`,
      raw: Buffer.from('Subject: Undelivered\r\n\r\nYour message was not delivered.'),
      isFinal: true,
    },
  ]);
  await waitForState(browsers, service, id, 'delivered');
  return { service, id };
}
