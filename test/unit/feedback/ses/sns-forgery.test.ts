import { describe, expect, test } from 'vitest';
import { parseSnsUrl, type SnsRefusal } from '../../../../src/feedback/ses/sns-receiver.ts';
import { createSesEvent, createSnsMessage, REGION, TOPIC } from '../../../rig/sns.ts';
import { createBounceNotification, createSnsAuthorities } from '../../../rig/sns-receiver.ts';

const { signer, untrustedSigner, createRig } = await createSnsAuthorities();

describe('a forgery', () => {
  const signed =
    (members: Record<string, string> = {}, key = signer.key) =>
    () =>
      createSnsMessage(key, createBounceNotification(members));
  const changed = (changes: Record<string, string | undefined>) => () =>
    createSnsMessage(signer.key, createBounceNotification(), changes);
  const shiftedTime = (ms: number) => new Date(Date.now() + ms).toISOString();
  const Message = `${createSesEvent('Bounce', 'ses-1', 'rita@example.com')} `;
  const cases: [string, () => unknown, number, SnsRefusal][] = [
    ['signed by another key', signed({}, untrustedSigner.key), 403, 'sns-forged'],
    ['with one byte added to its message', changed({ Message }), 403, 'sns-forged'],
    ['with its time changed', changed({ Timestamp: shiftedTime(-1_000) }), 403, 'sns-forged'],
    ['with a subject added after signing', changed({ Subject: 'x' }), 403, 'sns-forged'],
    ['of version 2 declared as version 1', changed({ SignatureVersion: '1' }), 403, 'sns-forged'],
    ['of an unknown version', signed({ SignatureVersion: '3' }), 403, 'sns-forged'],
    ['without a signature', changed({ Signature: undefined }), 400, 'sns-broken'],
    ['with an empty signature', changed({ Signature: '' }), 403, 'sns-forged'],
    ['of another topic', signed({ TopicArn: `${TOPIC}2` }), 403, 'sns-topic'],
    ['two hours old', signed({ Timestamp: shiftedTime(-7_200_000) }), 403, 'sns-old'],
    ['from the future', signed({ Timestamp: shiftedTime(7_200_000) }), 403, 'sns-old'],
    ['that is not JSON', () => 'hello', 400, 'sns-broken'],
    ['that is a list', () => [], 400, 'sns-broken'],
    ['of another type', () => ({ Type: 'Hello' }), 400, 'sns-broken'],
    ['with an invalid time', signed({ Timestamp: 'soon' }), 400, 'sns-broken'],
  ];
  test.each(cases)('%s is refused, counted, and has no effect', async (_, createMessage, status, reason) => {
    const { post, reports, refusals } = await createRig();
    const answer = await post(createMessage());
    expect([answer.status, refusals]).toEqual([status, [reason]]);
    expect(JSON.parse(answer.text)).toMatchObject({ result: 'error', message: expect.any(String) });
    expect(reports).toEqual([]);
  });

  test.each([
    `http://sns.${REGION}.amazonaws.com/x.pem`,
    `https://sns.${REGION}.amazonaws.com.evil.example/x.pem`,
    `https://sns.${REGION}.amazonaws.com@evil.example/x.pem`,
    `https://sns.${REGION}.amazonaws.com:444/x.pem`,
    `https://sns.${REGION}.amazonaws.com\\@evil.example/x.pem`,
    `https://sns.us-east-1.amazonaws.com/x.pem`,
    `https://sns.${REGION}.amazonaws.com/x.html`,
    `https://bucket.s3.${REGION}.amazonaws.com/x.pem`,
    `https://evil.sns.${REGION}.amazonaws.com/x.pem`,
    'file:///etc/ssl/x.pem',
    '',
  ])('with its certificate at %s is refused without a fetch', async (SigningCertURL) => {
    const { post, fetchedUrls, refusals } = await createRig({ responses: { [SigningCertURL]: untrustedSigner.cert } });
    expect(
      (await post(createSnsMessage(untrustedSigner.key, createBounceNotification({ SigningCertURL })))).status,
    ).toBe(403);
    expect(fetchedUrls).toEqual([]);
    expect(refusals).toEqual(['sns-forged']);
  });
});

test('a URL of SNS is valid only in the region of the topic, and for a region in China only under amazonaws.com.cn', () => {
  expect(parseSnsUrl('https://sns.cn-north-1.amazonaws.com.cn/x.pem', 'cn-north-1')?.hostname).toBe(
    'sns.cn-north-1.amazonaws.com.cn',
  );
  expect(parseSnsUrl('https://sns.cn-north-1.amazonaws.com/x.pem', 'cn-north-1')).toBeNull();
  expect(parseSnsUrl('https://sns..amazonaws.com/x.pem', '')).toBeNull();
});
