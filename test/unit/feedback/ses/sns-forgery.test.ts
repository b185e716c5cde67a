/** Forged messages: a message that is not from SNS has no effect and causes no fetch. */
import { beforeAll, describe, expect, test } from 'vitest';
import { parseSnsUrl } from '../../../../src/feedback/ses/sns-message.ts';
import type { SnsRefusal } from '../../../../src/feedback/ses/sns-receiver.ts';
import { REGION, sesEvent, snsMessage, TOPIC } from '../../../rig/sns.ts';
import { type Authorities, bounceNotification, createAuthorities, snsRig } from '../../../rig/sns-receiver.ts';

let { root, signer, untrusted } = {} as Authorities;
beforeAll(async () => {
  ({ root, signer, untrusted } = await createAuthorities());
});
const rig = (parts: Parameters<typeof snsRig>[1] = {}) => snsRig({ root, signer, untrusted }, parts);

describe('a forgery', () => {
  const cases: [string, () => unknown, number, SnsRefusal][] = [
    ['signed by another key', () => snsMessage(untrusted.key, bounceNotification()), 403, 'sns-forged'],
    [
      'with one byte of its message changed',
      () =>
        snsMessage(signer.key, bounceNotification(), {
          Message: `${sesEvent('Bounce', 'ses-1', 'rita@example.com')} `,
        }),
      403,
      'sns-forged',
    ],
    [
      'with its time changed',
      () => snsMessage(signer.key, bounceNotification(), { Timestamp: new Date(Date.now() - 1_000).toISOString() }),
      403,
      'sns-forged',
    ],
    [
      'of a subject added afterwards',
      () => snsMessage(signer.key, bounceNotification(), { Subject: 'x' }),
      403,
      'sns-forged',
    ],
    [
      'of version 2 declared as version 1',
      () => snsMessage(signer.key, bounceNotification(), { SignatureVersion: '1' }),
      403,
      'sns-forged',
    ],
    [
      'of an unknown version',
      () => snsMessage(signer.key, bounceNotification({ SignatureVersion: '3' })),
      403,
      'sns-forged',
    ],
    [
      'without a signature',
      () => snsMessage(signer.key, bounceNotification(), { Signature: undefined }),
      400,
      'sns-broken',
    ],
    [
      'with an empty signature',
      () => snsMessage(signer.key, bounceNotification(), { Signature: '' }),
      403,
      'sns-forged',
    ],
    ['of another topic', () => snsMessage(signer.key, bounceNotification({ TopicArn: `${TOPIC}2` })), 403, 'sns-topic'],
    [
      'two hours old',
      () => snsMessage(signer.key, bounceNotification({ Timestamp: new Date(Date.now() - 7_200_000).toISOString() })),
      403,
      'sns-old',
    ],
    [
      'from the future',
      () => snsMessage(signer.key, bounceNotification({ Timestamp: new Date(Date.now() + 7_200_000).toISOString() })),
      403,
      'sns-old',
    ],
    ['that is not JSON', () => 'hello', 400, 'sns-broken'],
    ['that is a list', () => [], 400, 'sns-broken'],
    ['of another type', () => ({ Type: 'Hello' }), 400, 'sns-broken'],
    [
      'with an invalid time',
      () => snsMessage(signer.key, bounceNotification({ Timestamp: 'soon' })),
      400,
      'sns-broken',
    ],
  ];
  test.each(cases)('%s is refused, counted, and has no effect', async (_, make, status, reason) => {
    const { post, reports, refusals } = await rig();
    const answer = await post(make());
    expect([answer.status, refusals]).toEqual([status, [reason]]);
    expect(JSON.parse(answer.text)).toMatchObject({ result: 'error', message: expect.any(String) });
    expect(reports).toEqual([]);
  });

  test.each([
    `http://sns.${REGION}.amazonaws.com/x.pem`,
    `https://sns.${REGION}.amazonaws.com.evil.example/x.pem`,
    `https://evil.example/sns.${REGION}.amazonaws.com/x.pem`,
    `https://sns.${REGION}.amazonaws.com@evil.example/x.pem`,
    `https://user@sns.${REGION}.amazonaws.com/x.pem`,
    `https://sns.${REGION}.amazonaws.com:444/x.pem`,
    `https://sns.${REGION}.amazonaws.com\\@evil.example/x.pem`,
    `https://sns.${REGION}.amazonaws.com./x.pem`,
    `https://SNS.${REGION}.amazonaws.com/x.pem`,
    `https://sns.us-east-1.amazonaws.com/x.pem`,
    `https://sns.${REGION}.amazonaws.com/x.html`,
    `https://sns.${REGION}.amazonaws.com/x.pem?y`,
    `https://bucket.s3.${REGION}.amazonaws.com/x.pem`,
    `https://evil.sns.${REGION}.amazonaws.com/x.pem`,
    'file:///etc/ssl/x.pem',
    'x.pem',
    '',
  ])('with its certificate at %s is refused without a fetch', async (SigningCertURL) => {
    const { post, fetched, refusals } = await rig({ responses: { [SigningCertURL]: untrusted.cert } });
    expect((await post(snsMessage(untrusted.key, bounceNotification({ SigningCertURL })))).status).toBe(403);
    expect(fetched).toEqual([]);
    expect(refusals).toEqual(['sns-forged']);
  });
});

test('a URL of SNS is valid only in the region of the topic, also in China', () => {
  expect(parseSnsUrl('https://sns.cn-north-1.amazonaws.com.cn/x.pem', 'cn-north-1')?.hostname).toBe(
    'sns.cn-north-1.amazonaws.com.cn',
  );
  expect(parseSnsUrl('https://sns.cn-north-1.amazonaws.com/x.pem', 'cn-north-1')).toBeNull();
  expect(parseSnsUrl('https://sns..amazonaws.com/x.pem', '')).toBeNull();
});
