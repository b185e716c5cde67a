/** Tests `verifyWebhook` of the client library. The package `standardwebhooks` creates the signatures. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { verifyWebhook, WebhookError, type WebhookHeaders } from '../../../clients/typescript/src/index.ts';

const SECRET = `whsec_${randomBytes(32).toString('base64')}`;
const OTHER_SECRET = `whsec_${randomBytes(24).toString('base64')}`;
const NOW_MS = 1_790_000_000_500;
const ID = '0199c2a4-7b1e-7000-8000-5a0c3f1e9d42';
const EVENT = {
  type: 'message.delivered',
  timestamp: '2026-09-21T14:13:20.000Z',
  data: {
    id: ID,
    account: 'default',
    to: 'ada@example.com',
    from: 'shop@example.org',
    subject: 'Grüße 😀',
    state: 'delivered',
    sequence: 2,
  },
};
const BODY = JSON.stringify(EVENT);
const now = () => NOW_MS;

function signAs(secret: string, body: string = BODY, timeMs: number = NOW_MS, id: string = ID): Record<string, string> {
  const signature = new Webhook(secret).sign(id, new Date(timeMs), body);
  return { 'webhook-id': id, 'webhook-timestamp': String(Math.floor(timeMs / 1000)), 'webhook-signature': signature };
}

/**
 * Returns the `kind` of the `WebhookError` with which the verification rejects. Throws every other error, and throws if
 * the event is accepted.
 */
async function catchRefusal(verification: Promise<unknown>): Promise<string> {
  const error: unknown = await verification.then(
    () => new Error('the event was accepted'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof WebhookError)) throw error;
  return error.kind;
}

describe('verifyWebhook', () => {
  test('returns the event with its id, for a body that is a string or bytes', async () => {
    const headers = signAs(SECRET);
    const expectedEvent = { ...EVENT, id: ID };
    expect(await verifyWebhook(BODY, headers, SECRET, { now })).toEqual(expectedEvent);
    expect(await verifyWebhook(Buffer.from(BODY), headers, SECRET, { now })).toEqual(expectedEvent);
    const paddedBody = new TextEncoder().encode(` ${BODY}`);
    expect(await verifyWebhook(paddedBody.subarray(1), headers, SECRET, { now })).toEqual(expectedEvent);
  });

  test('reads headers in every supported form, in any letter case', async () => {
    const headers = signAs(SECRET);
    const upperCaseEntries = Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value] as const);
    const headerForms: WebhookHeaders[] = [
      new Headers(headers),
      new Map(upperCaseEntries),
      upperCaseEntries,
      Object.fromEntries(upperCaseEntries),
      { ...headers, cookie: undefined, 'set-cookie': ['a', 'b'] },
    ];
    for (const headerForm of headerForms) expect((await verifyWebhook(BODY, headerForm, SECRET, { now })).id).toBe(ID);
  });

  test('accepts a webhook that standardwebhooks signs, and refuses it after any change of a byte, header or secret', async () => {
    const json = fc.record({
      type: fc.string(),
      timestamp: fc.string(),
      data: fc.dictionary(fc.string(), fc.jsonValue()),
    });
    const id = fc.stringMatching(/^[\w-]{1,40}$/);
    await fc.assert(
      fc.asyncProperty(json, id, fc.nat(), fc.integer({ min: 1, max: 127 }), async (event, eventId, position, mask) => {
        const body = Buffer.from(JSON.stringify(event));
        const headers = signAs(SECRET, body.toString(), NOW_MS, eventId);
        const verifiedEvent = await verifyWebhook(body, headers, SECRET, { now });
        expect(verifiedEvent).toEqual({ ...(JSON.parse(body.toString()) as object), id: eventId });

        const changedBody = Buffer.from(body);
        changedBody[position % body.length] = (body[position % body.length] ?? 0) ^ mask;
        const headersWithOtherId = { ...headers, 'webhook-id': `${eventId}x` };
        const headersWithOtherTime = { ...headers, 'webhook-timestamp': String(Math.floor(NOW_MS / 1000) + 1) };
        const refusals = await Promise.all([
          catchRefusal(verifyWebhook(changedBody, headers, SECRET, { now })),
          catchRefusal(verifyWebhook(body, headersWithOtherId, SECRET, { now })),
          catchRefusal(verifyWebhook(body, headersWithOtherTime, SECRET, { now })),
          catchRefusal(verifyWebhook(body, headers, OTHER_SECRET, { now })),
        ]);
        expect(refusals).toEqual(Array(4).fill('invalid-signature'));
      }),
      { seed: 1, numRuns: 100 },
    );
  });

  test('accepts any of several signatures and any of several secrets, so that a rotation loses no event', async () => {
    const headers = signAs(SECRET);
    const otherSignature = signAs(OTHER_SECRET)['webhook-signature'];
    const headersOfBothSecrets = {
      ...headers,
      'webhook-signature': `${otherSignature} v1a,asymmetric ${headers['webhook-signature']}`,
    };
    for (const secret of [SECRET, OTHER_SECRET, [OTHER_SECRET, SECRET]])
      expect((await verifyWebhook(BODY, headersOfBothSecrets, secret, { now })).id).toBe(ID);
    expect((await verifyWebhook(BODY, headers, [OTHER_SECRET, SECRET], { now })).id).toBe(ID);
    expect(await catchRefusal(verifyWebhook(BODY, headers, [OTHER_SECRET], { now }))).toBe('invalid-signature');
    expect(await catchRefusal(verifyWebhook(BODY, headers, [], { now }))).toBe('invalid-signature');
  });

  test('accepts a secret without its prefix, and a secret with the trailing line break of a file', async () => {
    const base64 = SECRET.slice('whsec_'.length);
    for (const secret of [base64, `${SECRET}\n`])
      expect((await verifyWebhook(BODY, signAs(SECRET), secret, { now })).id).toBe(ID);
  });

  test('refuses a timestamp that differs from the clock by more than the tolerance, in both directions', async () => {
    const verifyAt = (offsetMs: number) =>
      verifyWebhook(BODY, signAs(SECRET, BODY, NOW_MS + offsetMs), SECRET, { now });
    // The timestamp has whole seconds, and the clock is half a second later.
    for (const offsetMs of [-299_500, 300_000]) expect((await verifyAt(offsetMs)).id).toBe(ID);
    for (const offsetMs of [-300_000, 301_000, -1_790_000_000_000])
      expect(await catchRefusal(verifyAt(offsetMs))).toBe('expired');
    const wideTolerance = { now, toleranceMs: 600_000 };
    expect((await verifyWebhook(BODY, signAs(SECRET, BODY, NOW_MS - 500_000), SECRET, wideTolerance)).id).toBe(ID);
  });

  test('uses the clock of the machine if no other clock is given', async () => {
    expect((await verifyWebhook(BODY, signAs(SECRET, BODY, Date.now()), SECRET)).id).toBe(ID);
    expect(await catchRefusal(verifyWebhook(BODY, signAs(SECRET, BODY, Date.now() - 302_000), SECRET))).toBe('expired');
  });

  test.each<[string, Record<string, string | undefined>]>([
    ['no webhook-id', { 'webhook-id': undefined }],
    ['an empty webhook-id', { 'webhook-id': '' }],
    ['a webhook-id with a dot, which would make the signed content ambiguous', { 'webhook-id': 'a.1790000000' }],
    ['no webhook-timestamp', { 'webhook-timestamp': undefined }],
    ['a webhook-timestamp that is not a number', { 'webhook-timestamp': 'today' }],
    ['a negative webhook-timestamp', { 'webhook-timestamp': '-1790000000' }],
    ['a repeated webhook-timestamp', { 'Webhook-Timestamp': '1790000000' }],
    ['no webhook-signature', { 'webhook-signature': undefined }],
  ])('refuses %s', async (_, change) => {
    expect(await catchRefusal(verifyWebhook(BODY, { ...signAs(SECRET), ...change }, SECRET, { now }))).toBe(
      'invalid-header',
    );
  });

  test('refuses a signature that is truncated, extended, not of version v1 or not base64', async () => {
    const headers = signAs(SECRET);
    const signature = headers['webhook-signature'] ?? '';
    const wrongSignatures = [
      'v1,',
      'v1',
      signature.slice(0, -1),
      `${signature}=`,
      signature.replace('v1,', 'v2,'),
      'v1,%%%',
      `,${signature}`,
    ];
    for (const value of wrongSignatures) {
      const refusal = catchRefusal(verifyWebhook(BODY, { ...headers, 'webhook-signature': value }, SECRET, { now }));
      expect([value, await refusal]).toEqual([value, 'invalid-signature']);
    }
  });

  test('refuses a missing, short or malformed secret, and does not print it', async () => {
    const headers = signAs(SECRET);
    const wrongSecrets: unknown[] = [
      '',
      'whsec_',
      'whsec_c2hvcnQ=',
      'whsec_not base64!',
      undefined,
      null,
      [SECRET, ''],
      42,
    ];
    for (const secret of wrongSecrets)
      expect(await catchRefusal(verifyWebhook(BODY, headers, secret as string, { now }))).toBe('invalid-secret');
    await expect(verifyWebhook(BODY, headers, 'whsec_not base64!', { now })).rejects.not.toThrow('base64!');
  });

  test('refuses a body that a middleware has parsed', async () => {
    const parsedBody: unknown = EVENT;
    for (const body of [parsedBody, undefined, null])
      expect(await catchRefusal(verifyWebhook(body as string, signAs(SECRET), SECRET, { now }))).toBe('invalid-body');
  });

  test.each(['', 'text', 'null', '[]', '{"type":"a"}', '{"type":1,"data":{}}', '{"type":"a","data":null}'])(
    'refuses the signed body %j, which is not an event',
    async (body) => {
      expect(await catchRefusal(verifyWebhook(body, signAs(SECRET, body), SECRET, { now }))).toBe('invalid-payload');
    },
  );
});
