import { expect, test } from 'vitest';
import { addDomain, verifyDomain } from '../../../src/operations/domains.ts';
import { type Setup, type SetupStep, showSetup } from '../../../src/operations/installation.ts';
import { createWebhook, disableWebhook } from '../../../src/operations/webhooks.ts';
import { createMessage } from '../../rig/messages.ts';
import { createRigWithDns, type OperationRig } from './operation-rig.ts';

const RELAY_SETTINGS = { POSTRIDER_TRANSPORT: 'smtp://user:password@mail.example.net:587' };
const POSTMARK_SETTINGS = { POSTRIDER_TRANSPORT: 'smtp://user:password@smtp.postmarkapp.com:587' };
/** An address that IANA lists as globally reachable. Nothing is sent to it. */
const ENDPOINT = { url: 'https://192.31.196.7/webhooks' };

function listStates({ steps }: Setup): Readonly<Record<string, SetupStep['state']>> {
  return Object.fromEntries(steps.map(({ step, state }) => [step, state]));
}

async function showStep(rig: OperationRig, name: SetupStep['step']): Promise<SetupStep> {
  const { steps } = await rig.performSuccessfully(showSetup, {});
  const found = steps.find(({ step }) => step === name);
  if (found === undefined) throw new Error(`there is no step ${name}`);
  return found;
}

test('with a relay, the steps for the domain, its records and the feedback listener are open until each of these exists', async () => {
  const { rig, publishRecords } = await createRigWithDns(RELAY_SETTINGS);
  expect(listStates(await rig.performSuccessfully(showSetup, {}))).toMatchObject({
    'first-message': 'open',
    provider: 'done',
    domain: 'open',
    records: 'open',
    feedback: 'open',
  });
  // Every sender is refused, so no command can submit a message.
  expect((await showStep(rig, 'first-message')).command).toBe(null);
  expect((await showStep(rig, 'domain')).command).toBe('postrider domain add acme example.com');

  const domain = 'shop.example';
  const addedDomain = await rig.performSuccessfully(addDomain, { account: 'acme', domain });
  expect(await showStep(rig, 'domain')).toMatchObject({ state: 'done' });
  expect(await showStep(rig, 'records')).toMatchObject({
    state: 'open',
    command: `postrider domain verify ${domain}`,
    page: `/domains/${domain}`,
  });

  publishRecords(addedDomain);
  await rig.performSuccessfully(verifyDomain, { domain });
  expect(await showStep(rig, 'records')).toMatchObject({ state: 'done' });
  expect((await showStep(rig, 'first-message')).command).toContain(`--from hello@${domain}`);
});

test('with a provider the feedback step names the missing settings, and is done when an event is recorded', async () => {
  const unsetProvider = await createRigWithDns(POSTMARK_SETTINGS);
  const openStep = await showStep(unsetProvider.rig, 'feedback');
  expect(openStep.state).toBe('open');
  expect(openStep.action).toContain('POSTRIDER_EVENTS_POSTMARK');

  const { rig } = await createRigWithDns({
    ...POSTMARK_SETTINGS,
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_URL: 'https://feedback.example.com',
    POSTRIDER_EVENTS_POSTMARK: 'hook:secret-of-the-hook',
  });
  expect((await showStep(rig, 'feedback')).action).toContain('https://feedback.example.com/events/postmark');
  const message = createMessage({ acceptedAt: rig.now - 1_000 });
  await rig.store.accept([message]);
  await rig.store.recordFeedback([
    {
      messageRef: { id: message.id },
      events: [
        {
          kind: 'confirmed',
          recipient: null,
          alias: null,
          evidence: { status: null, diagnostic: null, reportingHost: null },
        },
      ],
      source: 'postmark',
      isProviderEvent: true,
      at: rig.now,
      digest: '0'.repeat(64),
      summary: 'an event',
      raw: Buffer.from('{}'),
      isFinal: true,
    },
  ]);
  expect(await showStep(rig, 'feedback')).toMatchObject({ state: 'done', command: null });
  expect(JSON.stringify(await rig.performSuccessfully(showSetup, {}))).not.toMatch(/password|secret-of-the-hook/);
});

test('with POSTRIDER_SENDERS=any a domain is optional, so the checklist is complete without a domain', async () => {
  const { rig } = await createRigWithDns({
    ...RELAY_SETTINGS,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:2525',
    POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.net',
  });
  await rig.store.accept([createMessage({ acceptedAt: rig.now - 1 })]);
  const setup = await rig.performSuccessfully(showSetup, {});
  expect(listStates(setup)).toMatchObject({ domain: 'optional', records: 'not-needed', webhook: 'optional' });
  expect([setup.isComplete, setup.openCount]).toEqual([true, 0]);
});

test('the webhook step is done while an endpoint is enabled', async () => {
  const { rig } = await createRigWithDns({});
  const { id } = await rig.performSuccessfully(createWebhook, ENDPOINT);
  expect(await showStep(rig, 'webhook')).toMatchObject({ state: 'done' });
  await rig.performSuccessfully(disableWebhook, { id });
  expect(await showStep(rig, 'webhook')).toMatchObject({ state: 'optional', detail: 'Every endpoint is disabled.' });
});
