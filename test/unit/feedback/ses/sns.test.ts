/** Notices over SNS: only what SNS signed, for our topics, and not long ago, has any effect. */
import { request } from 'node:http';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import type { Taken } from '../../../../src/feedback/intake.ts';
import { createSnsCertificates } from '../../../../src/feedback/ses/sns-certificates.ts';
import { snsUrl } from '../../../../src/feedback/ses/sns-message.ts';
import { createSnsReceiver, type SnsRefusal } from '../../../../src/feedback/ses/sns-receiver.ts';
import { bind } from '../../../../src/http/bind.ts';
import type { FeedbackReport } from '../../../../src/store/feedback.ts';
import { type Authority, CERT_URL, makeAuthority, REGION, sesEvent, snsMessage, TOPIC } from '../../../rig/sns.ts';

let root: Authority;
let signer: Authority;
let stranger: Authority;
beforeAll(async () => {
  root = await makeAuthority();
  [signer, stranger] = [await root.issue(), await (await makeAuthority('Other Root')).issue()];
});

interface Rig {
  post(body: unknown, path?: string, method?: string): Promise<{ status: number; text: string; headers: Headers }>;
  readonly reports: FeedbackReport[];
  readonly refusals: SnsRefusal[];
  readonly subscriptions: string[];
  /** URLs that were fetched. */
  readonly fetched: string[];
  readonly url: string;
}

async function rig({
  served = {},
  take = async () => 'recorded' as Taken,
  now = systemClock.now,
}: {
  /** What is served where: PEM text, or a status. */
  readonly served?: Readonly<Record<string, string | number>>;
  readonly take?: (report: FeedbackReport) => Promise<Taken>;
  readonly now?: () => number;
} = {}): Promise<Rig> {
  const [reports, refusals, subscriptions, fetched]: [FeedbackReport[], SnsRefusal[], string[], string[]] = [
    [],
    [],
    [],
    [],
  ];
  const pages: Record<string, string | number> = { [CERT_URL]: signer.cert, ...served };
  const get = (async (input: URL | string) => {
    const url = String(input);
    fetched.push(url);
    const page = pages[url] ?? 404;
    return typeof page === 'number' ? new Response('', { status: page }) : new Response(page);
  }) as typeof fetch;
  const receiver = createSnsReceiver({
    at: { host: '127.0.0.1', port: 0 },
    bind,
    clock: { ...systemClock, now },
    topics: [TOPIC],
    certificates: createSnsCertificates({ fetch: get, roots: () => [root.cert], now }),
    fetch: get,
    certificate: null,
    take: (report) => {
      reports.push(report);
      return take(report);
    },
    refused: (reason) => refusals.push(reason),
    subscription: (detail) => subscriptions.push(detail),
    failed: () => undefined,
  });
  const { port } = await receiver.start();
  onTestFinished(() => receiver.close());
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    reports,
    refusals,
    subscriptions,
    fetched,
    async post(body, path = '/ses', method = 'POST') {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const answer = await fetch(`${url}${path}`, { method, ...(method === 'POST' ? { body: text } : {}) });
      return { status: answer.status, text: await answer.text(), headers: answer.headers };
    },
  };
}

const bounce = (more: Record<string, string> = {}) => ({
  Message: sesEvent('Bounce', 'ses-1', 'rita@example.com'),
  ...more,
});

test.each(['1', '2'])(
  'a bounce signed by SNS (version %s) is recorded, and answered once it is',
  async (SignatureVersion) => {
    let record: (taken: Taken) => void = () => undefined;
    const { post, reports, refusals, fetched } = await rig({
      take: () => new Promise((resolve) => (record = resolve)),
    });
    const answer = post(snsMessage(signer.key, bounce({ SignatureVersion, Subject: 'Amazon SES' })));
    await expect.poll(() => reports.length).toBe(1);
    record('recorded');
    expect((await answer).status).toBe(200);
    expect(reports).toMatchObject([
      {
        about: { reference: 'ses-1' },
        source: 'sns',
        last: false,
        notices: [{ kind: 'bounce', permanent: true, recipient: 'rita@example.com' }],
      },
    ]);
    expect(refusals).toEqual([]);
    expect(fetched).toEqual([CERT_URL]);
  },
);

describe('a forgery', () => {
  const cases: [string, () => unknown, number, SnsRefusal][] = [
    ['signed by another key', () => snsMessage(stranger.key, bounce()), 403, 'sns-forged'],
    [
      'with one byte of its message changed',
      () => snsMessage(signer.key, bounce(), { Message: `${sesEvent('Bounce', 'ses-1', 'rita@example.com')} ` }),
      403,
      'sns-forged',
    ],
    [
      'with its time changed',
      () => snsMessage(signer.key, bounce(), { Timestamp: new Date(Date.now() - 1_000).toISOString() }),
      403,
      'sns-forged',
    ],
    ['of a subject added afterwards', () => snsMessage(signer.key, bounce(), { Subject: 'x' }), 403, 'sns-forged'],
    ['of version 2 said to be 1', () => snsMessage(signer.key, bounce(), { SignatureVersion: '1' }), 403, 'sns-forged'],
    ['of a version that is none', () => snsMessage(signer.key, bounce({ SignatureVersion: '3' })), 403, 'sns-forged'],
    ['without a signature', () => snsMessage(signer.key, bounce(), { Signature: undefined }), 400, 'sns-broken'],
    ['with an empty signature', () => snsMessage(signer.key, bounce(), { Signature: '' }), 403, 'sns-forged'],
    ['of another topic', () => snsMessage(signer.key, bounce({ TopicArn: `${TOPIC}2` })), 403, 'sns-topic'],
    [
      'two hours old',
      () => snsMessage(signer.key, bounce({ Timestamp: new Date(Date.now() - 7_200_000).toISOString() })),
      403,
      'sns-old',
    ],
    [
      'from the future',
      () => snsMessage(signer.key, bounce({ Timestamp: new Date(Date.now() + 7_200_000).toISOString() })),
      403,
      'sns-old',
    ],
    ['that is no JSON', () => 'hello', 400, 'sns-broken'],
    ['that is a list', () => [], 400, 'sns-broken'],
    ['of another type', () => ({ Type: 'Hello' }), 400, 'sns-broken'],
    ['whose time is none', () => snsMessage(signer.key, bounce({ Timestamp: 'soon' })), 400, 'sns-broken'],
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
  ])('with its certificate at %s is refused without anything being fetched', async (SigningCertURL) => {
    const { post, fetched, refusals } = await rig({ served: { [SigningCertURL]: stranger.cert } });
    expect((await post(snsMessage(stranger.key, bounce({ SigningCertURL })))).status).toBe(403);
    expect(fetched).toEqual([]);
    expect(refusals).toEqual(['sns-forged']);
  });
});

describe('a certificate', () => {
  const served = async (pem: string, key: string, now?: () => number) => {
    const { post, fetched } = await rig({ served: { [CERT_URL]: pem }, ...(now === undefined ? {} : { now }) });
    return { status: (await post(snsMessage(key, bounce()))).status, fetched };
  };

  test('whose chain does not lead to a root of ours is not believed', async () => {
    expect((await served(stranger.cert, stranger.key)).status).toBe(403);
    expect((await served('no certificate', stranger.key)).status).toBe(403);
    expect((await served('', stranger.key)).status).toBe(403);
  });

  test('that leads there over an authority in between, given with it, is believed', async () => {
    const between = await root.issue('Test Authority', { ca: true });
    const leaf = await between.issue();
    expect((await served(`${leaf.cert}\n${between.cert}`, leaf.key)).status).toBe(200);
    expect((await served(leaf.cert, leaf.key)).status).toBe(403);
  });

  test('issued by one that may not issue is not believed', async () => {
    const leaf = await signer.issue();
    expect((await served(`${leaf.cert}\n${signer.cert}`, leaf.key)).status).toBe(403);
  });

  test('in another name is not believed', async () => {
    const other = await root.issue('sns.example.com');
    expect((await served(other.cert, other.key)).status).toBe(403);
    const regional = await root.issue(`sns.${REGION}.amazonaws.com`);
    expect((await served(regional.cert, regional.key)).status).toBe(200);
  });

  test('out of date is not believed', async () => {
    const old = await root.issue(undefined, { since: new Date(Date.now() - 5 * 86_400_000), days: 1 });
    expect((await served(old.cert, old.key)).status).toBe(403);
  });

  test('is fetched once for many messages, and again after one that could not be had', async () => {
    const pages: Record<string, string | number> = { [CERT_URL]: 503 };
    const { post, fetched } = await rig({ served: pages });
    expect((await post(snsMessage(signer.key, bounce()))).status).toBe(403);
    const working = await rig();
    for (let n = 0; n < 3; n += 1) expect((await working.post(snsMessage(signer.key, bounce()))).status).toBe(200);
    expect([fetched.length, working.fetched.length]).toEqual([1, 1]);
  });

  test('too large is not read', async () => {
    expect((await served(`${'x'.repeat(70_000)}`, signer.key)).status).toBe(403);
  });
});

describe('what is repeated or early', () => {
  test('a message that comes again has no effect again', async () => {
    const { post, reports } = await rig();
    const message = snsMessage(signer.key, bounce());
    expect([(await post(message)).status, (await post(message)).status]).toEqual([200, 200]);
    expect(reports).toHaveLength(1);
  });

  test('one that could not be applied or stored is asked for again, and then taken', async () => {
    const takes: (() => Promise<Taken>)[] = [
      async () => 'not-yet',
      () => Promise.reject(new Error('disk full')),
      async () => 'recorded',
    ];
    const { post, refusals } = await rig({ take: () => (takes.shift() ?? (async () => 'recorded' as const))() });
    const message = snsMessage(signer.key, bounce());
    const first = await post(message);
    expect([first.status, first.headers.get('retry-after')]).toEqual([503, '20']);
    expect((await post(message)).status).toBe(500);
    expect((await post(message)).status).toBe(200);
    expect(refusals).toEqual(['not-settled', 'store']);
  });

  test('near the end of SNS’s patience it is kept rather than asked for again', async () => {
    const { post, reports } = await rig();
    await post(snsMessage(signer.key, bounce({ Timestamp: new Date(Date.now() - 50 * 60_000).toISOString() })));
    expect(reports).toMatchObject([{ last: true }]);
  });

  test('opens and clicks are taken and mean nothing', async () => {
    const { post, reports } = await rig();
    expect((await post(snsMessage(signer.key, { Message: sesEvent('Open', 'ses-1', 'a@b.example') }))).status).toBe(
      200,
    );
    expect(reports).toEqual([]);
  });
});

describe('a subscription', () => {
  const SUBSCRIBE = `https://sns.${REGION}.amazonaws.com/?Action=ConfirmSubscription&Token=token`;

  test('to one of our topics is confirmed by itself', async () => {
    const { post, fetched, subscriptions } = await rig({ served: { [SUBSCRIBE]: 'ok' } });
    expect((await post(snsMessage(signer.key, { Type: 'SubscriptionConfirmation' }))).status).toBe(200);
    expect(fetched).toEqual([CERT_URL, SUBSCRIBE]);
    expect(subscriptions).toEqual([`the subscription of ${TOPIC} is confirmed`]);
  });

  test('to another topic, or by a forgery, is not', async () => {
    const { post, fetched } = await rig({ served: { [SUBSCRIBE]: 'ok' } });
    const Type = 'SubscriptionConfirmation';
    expect((await post(snsMessage(signer.key, { Type, TopicArn: `${TOPIC}2` }))).status).toBe(403);
    expect((await post(snsMessage(stranger.key, { Type }))).status).toBe(403);
    expect(
      (await post(snsMessage(signer.key, { Type, SubscribeURL: 'https://evil.example/?Action=ConfirmSubscription' })))
        .status,
    ).toBe(403);
    expect(fetched).not.toContain(SUBSCRIBE);
    expect(fetched.join()).not.toContain('evil');
  });

  test('that cannot be confirmed now is asked for again', async () => {
    const { post, refusals } = await rig({ served: { [SUBSCRIBE]: 500 } });
    expect((await post(snsMessage(signer.key, { Type: 'SubscriptionConfirmation' }))).status).toBe(503);
    expect(refusals).toEqual(['sns-confirmation']);
  });

  test('taken back is told', async () => {
    const { post, subscriptions } = await rig();
    expect((await post(snsMessage(signer.key, { Type: 'UnsubscribeConfirmation' }))).status).toBe(200);
    expect(subscriptions).toEqual([`the subscription of ${TOPIC} was taken back`]);
  });
});

describe('whoever else comes', () => {
  test('finds nothing at another path, and no other method', async () => {
    const { post } = await rig();
    expect((await post('', '/')).status).toBe(404);
    const get = await post('', '/ses', 'GET');
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('with more than SNS sends is refused before it is all there', async () => {
    const { url, refusals } = await rig();
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const asked = request(`${url}/ses`, { method: 'POST' }, (response) => {
        response.resume();
        resolve(response.statusCode);
        asked.destroy();
      });
      asked.on('error', reject);
      asked.write('x'.repeat(300_000));
    });
    expect(status).toBe(413);
    expect(refusals).toEqual(['sns-too-large']);
  });
});

test('an address of SNS is one in the region of the topic, of China too', () => {
  expect(snsUrl('https://sns.cn-north-1.amazonaws.com.cn/x.pem', 'cn-north-1')?.hostname).toBe(
    'sns.cn-north-1.amazonaws.com.cn',
  );
  expect(snsUrl('https://sns.cn-north-1.amazonaws.com/x.pem', 'cn-north-1')).toBeNull();
  expect(snsUrl('https://sns..amazonaws.com/x.pem', '')).toBeNull();
});
