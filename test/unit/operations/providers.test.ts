import { expect, test } from 'vitest';
import { listProviders } from '../../../src/operations/installation.ts';
import { createOperationRig } from './operation-rig.ts';

test('the list shows the relay in use, the URL to register, and that no event has arrived', async () => {
  const rig = await createOperationRig({
    POSTRIDER_TRANSPORT: 'smtp://user:password@smtp.postmarkapp.com:587',
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_URL: 'https://feedback.example.com',
    POSTRIDER_EVENTS_POSTMARK: 'hook:secret-of-the-hook',
  });
  const list = await rig.performSuccessfully(listProviders, {});
  expect(JSON.stringify(list)).not.toMatch(/password|secret-of-the-hook/);
  expect(list.transport).toEqual({ kind: 'smtp', host: 'smtp.postmarkapp.com:587', provider: 'Postmark' });
  expect(list.providers.filter(({ events }) => events !== null)).toMatchObject([
    {
      name: 'postmark',
      isRelay: true,
      guide: 'docs/providers/postmark.md',
      events: {
        isSetUp: true,
        url: 'https://feedback.example.com/events/postmark',
        lastEventAt: null,
        refused: [],
        result: 'warning',
      },
    },
  ]);
});

test('without a provider the list shows the transport, and no provider is in use', async () => {
  const rig = await createOperationRig({});
  const list = await rig.performSuccessfully(listProviders, {});
  expect(list.transport).toEqual({ kind: 'capture', host: null, provider: null });
  expect(list.feedbackUrl).toBe(null);
  expect(list.providers.length).toBeGreaterThan(10);
  expect(list.providers.every(({ events }) => events === null)).toBe(true);
});
