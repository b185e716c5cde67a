import { describe, expect, test } from 'vitest';
import type { RecordResult } from '../../../../src/feedback/intake.ts';
import { CERT_URL, createSnsMessage, REGION, TOPIC } from '../../../rig/sns.ts';
import { createBounceNotification, createServerFetch, createSnsAuthorities } from '../../../rig/sns-receiver.ts';

const { signer, untrustedSigner, createRig } = await createSnsAuthorities();

test.each(['1', '2'])(
  'a bounce signed by SNS (version %s) gets its response after it is recorded',
  async (SignatureVersion) => {
    let completeRecord: (result: RecordResult) => void = () => undefined;
    const { post, reports, refusals, fetchedUrls } = await createRig({
      recordReport: () => new Promise((resolve) => (completeRecord = resolve)),
    });
    const answer = post(
      createSnsMessage(signer.key, createBounceNotification({ SignatureVersion, Subject: 'Amazon SES' })),
    );
    await expect.poll(() => reports.length).toBe(1);
    completeRecord('recorded');
    expect((await answer).status).toBe(200);
    expect(reports).toMatchObject([
      {
        messageRef: { reference: 'ses-1' },
        source: 'sns',
        isFinal: false,
        events: [{ kind: 'bounce', permanent: true, recipient: 'rita@example.com' }],
      },
    ]);
    expect(refusals).toEqual([]);
    expect(fetchedUrls).toEqual([CERT_URL]);
  },
);

describe('a message of SNS', () => {
  test('is applied only once if it is sent twice', async () => {
    const { post, reports } = await createRig();
    const message = createSnsMessage(signer.key, createBounceNotification());
    expect([(await post(message)).status, (await post(message)).status]).toEqual([200, 200]);
    expect(reports).toHaveLength(1);
  });

  test('that cannot be applied or stored gets a 5xx and is recorded when it is sent again', async () => {
    const results: (() => Promise<RecordResult>)[] = [
      async () => 'not-yet',
      () => Promise.reject(new Error('disk full')),
      async () => 'recorded',
    ];
    const { post, refusals } = await createRig({
      recordReport: () => (results.shift() ?? (async () => 'recorded' as const))(),
    });
    const message = createSnsMessage(signer.key, createBounceNotification());
    const firstResponse = await post(message);
    expect([firstResponse.status, firstResponse.headers.get('retry-after')]).toEqual([503, '20']);
    expect((await post(message)).status).toBe(500);
    expect((await post(message)).status).toBe(200);
    expect(refusals).toEqual(['not-settled', 'store']);
  });

  test('that cannot be applied at the last retry of SNS is stored for the operator', async () => {
    const { post, reports } = await createRig({
      recordReport: async ({ isFinal }) => (isFinal ? 'recorded' : 'not-yet'),
    });
    const createAgedMessage = (seconds: number) =>
      createBounceNotification({ Timestamp: new Date(Date.now() - seconds * 1_000).toISOString() });
    expect((await post(createSnsMessage(signer.key, createAgedMessage(30)))).status).toBe(503);
    expect((await post(createSnsMessage(signer.key, createAgedMessage(55)))).status).toBe(200);
    expect(reports.map(({ isFinal }) => isFinal)).toEqual([false, false, true]);
  });
});

describe('a subscription', () => {
  const SUBSCRIBE_URL = `https://sns.${REGION}.amazonaws.com/?Action=ConfirmSubscription&Token=token`;

  test('to a configured topic is confirmed automatically', async () => {
    const { post, fetchedUrls, subscriptions } = await createRig({ responses: { [SUBSCRIBE_URL]: 'ok' } });
    expect((await post(createSnsMessage(signer.key, { Type: 'SubscriptionConfirmation' }))).status).toBe(200);
    expect(fetchedUrls).toEqual([CERT_URL, SUBSCRIBE_URL]);
    expect(subscriptions).toEqual([`the subscription to ${TOPIC} is confirmed`]);
  });

  test('to a topic that is not configured, or in a forged message, is not confirmed', async () => {
    const { post, fetchedUrls } = await createRig({ responses: { [SUBSCRIBE_URL]: 'ok' } });
    const Type = 'SubscriptionConfirmation';
    expect((await post(createSnsMessage(signer.key, { Type, TopicArn: `${TOPIC}2` }))).status).toBe(403);
    expect((await post(createSnsMessage(untrustedSigner.key, { Type }))).status).toBe(403);
    expect(
      (
        await post(
          createSnsMessage(signer.key, { Type, SubscribeURL: 'https://evil.example/?Action=ConfirmSubscription' }),
        )
      ).status,
    ).toBe(403);
    expect(fetchedUrls).not.toContain(SUBSCRIBE_URL);
    expect(fetchedUrls.join()).not.toContain('evil');
  });

  test('is not confirmed at the target of a redirect', async () => {
    const requestedPaths: (string | undefined)[] = [];
    const fetchFromServer = await createServerFetch((incoming, response) => {
      requestedPaths.push(incoming.url);
      if (incoming.url === new URL(CERT_URL).pathname) response.end(signer.cert);
      else response.writeHead(302, { location: '/elsewhere' }).end();
    });
    const { post } = await createRig({ get: fetchFromServer });
    expect((await post(createSnsMessage(signer.key, { Type: 'SubscriptionConfirmation' }))).status).toBe(503);
    expect(requestedPaths).toEqual([new URL(CERT_URL).pathname, '/?Action=ConfirmSubscription&Token=token']);
  });

  test('that is deleted causes an event', async () => {
    const { post, subscriptions } = await createRig();
    expect((await post(createSnsMessage(signer.key, { Type: 'UnsubscribeConfirmation' }))).status).toBe(200);
    expect(subscriptions).toEqual([`the subscription to ${TOPIC} was deleted`]);
  });
});
