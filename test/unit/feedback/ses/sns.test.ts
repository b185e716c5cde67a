/** Notices over SNS: only what SNS signed, for our topics, and not long ago, has any effect. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect } from 'node:net';
import { TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
import type { RecordResult } from '../../../../src/feedback/intake.ts';
import { type Authority, CERT_URL, REGION, sesEvent, snsMessage, TOPIC } from '../../../rig/sns.ts';
import { type Authorities, bounce, fetchFrom, keyPairOf, makeAuthorities, snsRig } from '../../../rig/sns-receiver.ts';

let { root, signer, untrusted: stranger } = {} as Authorities;
beforeAll(async () => {
  ({ root, signer, untrusted: stranger } = await makeAuthorities());
});
const rig = (parts: Parameters<typeof snsRig>[1] = {}) => snsRig({ root, signer, untrusted: stranger }, parts);

test.each(['1', '2'])(
  'a bounce signed by SNS (version %s) is recorded, and answered once it is',
  async (SignatureVersion) => {
    let record: (taken: RecordResult) => void = () => undefined;
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

describe('what is repeated or early', () => {
  test('a message that comes again has no effect again', async () => {
    const { post, reports } = await rig();
    const message = snsMessage(signer.key, bounce());
    expect([(await post(message)).status, (await post(message)).status]).toEqual([200, 200]);
    expect(reports).toHaveLength(1);
  });

  test('one that could not be applied or stored is asked for again, and then taken', async () => {
    const takes: (() => Promise<RecordResult>)[] = [
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

  test('near the end of SNS’s patience it is kept, but only where it still cannot be applied', async () => {
    const { post, reports } = await rig({ take: async ({ isFinal: last }) => (last ? 'recorded' : 'not-yet') });
    const aged = (seconds: number) => bounce({ Timestamp: new Date(Date.now() - seconds * 1_000).toISOString() });
    expect((await post(snsMessage(signer.key, aged(30)))).status).toBe(503);
    expect((await post(snsMessage(signer.key, aged(55)))).status).toBe(200);
    expect(reports.map(({ isFinal: last }) => last)).toEqual([false, false, true]);
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

  test.each([
    `http://sns.${REGION}.amazonaws.com/?Action=ConfirmSubscription`,
    `https://sns.${REGION}.amazonaws.com.evil.example/?Action=ConfirmSubscription`,
    `https://sns.${REGION}.amazonaws.com:8443/?Action=ConfirmSubscription`,
    `https://sns.${REGION}.amazonaws.com@evil.example/?Action=ConfirmSubscription`,
    'https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription',
    'http://169.254.169.254/latest/meta-data/',
  ])('is never confirmed at %s, whoever signed it', async (SubscribeURL) => {
    const { post, fetched, refusals } = await rig();
    expect((await post(snsMessage(signer.key, { Type: 'SubscriptionConfirmation', SubscribeURL }))).status).toBe(403);
    expect([fetched, refusals]).toEqual([[], ['sns-forged']]);
  });

  test('is not confirmed where a redirect leads', async () => {
    const asked: (string | undefined)[] = [];
    const get = await fetchFrom((incoming, response) => {
      asked.push(incoming.url);
      if (incoming.url === new URL(CERT_URL).pathname) response.end(signer.cert);
      else response.writeHead(302, { location: '/elsewhere' }).end();
    });
    const { post } = await rig({ get });
    expect((await post(snsMessage(signer.key, { Type: 'SubscriptionConfirmation' }))).status).toBe(503);
    expect(asked).toEqual([new URL(CERT_URL).pathname, '/?Action=ConfirmSubscription&Token=token']);
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
  test('and hangs up in the middle is no fault of ours, and is not recorded', async () => {
    const { url, post, refusals, faults, reports } = await rig();
    const asked = request(`${url}/ses`, { method: 'POST', headers: { 'content-length': '5000' } });
    asked.on('error', () => undefined);
    asked.write(JSON.stringify(snsMessage(signer.key, bounce())).slice(0, 100));
    await once(asked, 'socket');
    await new Promise<void>((resolve) => asked.write('x', () => resolve()));
    asked.destroy();
    expect((await post(snsMessage(signer.key, bounce()))).status).toBe(200);
    expect([faults, refusals, reports.length]).toEqual([[], [], 1]);
  });

  test('with what is not HTTP, or too large a head, gets one line and is let go', async () => {
    const { url, refusals } = await rig();
    const answerTo = async (text: string) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      const pieces: Buffer[] = [];
      socket.on('data', (piece: Buffer) => pieces.push(piece));
      socket.on('error', () => undefined);
      socket.write(text);
      await once(socket, 'close');
      return Buffer.concat(pieces).toString();
    };
    const answer = await answerTo('EHLO there\r\n\r\n');
    expect([answer.startsWith('HTTP/1.1 400 '), answer.split('\r\n\r\n')[1]]).toEqual([
      true,
      '{"result":"error","message":"this is not HTTP"}\n',
    ]);
    expect(await answerTo(`POST /ses HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)).toContain(
      'HTTP/1.1 431 ',
    );
    expect(refusals).toEqual(['sns-broken', 'sns-broken']);
  });

  test('with raw message delivery on is told to turn it off', async () => {
    const { url, reports } = await rig();
    const answer = await fetch(`${url}/ses`, {
      method: 'POST',
      headers: { 'x-amz-sns-rawmessage': 'true' },
      body: sesEvent('Bounce', 'ses-1', 'rita@example.com'),
    });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('turn it off')]);
    expect(reports).toEqual([]);
  });

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

test('over HTTPS it takes notices with the certificate that it was given, and with the next one', async () => {
  const [first, second] = await Promise.all([root.issue('localhost'), root.issue('localhost')]);
  const { receiver, port } = await rig({ certificate: first });
  const post = () =>
    new Promise<[number | undefined, string | undefined]>((resolve, reject) => {
      const options = { host: '127.0.0.1', servername: 'localhost', port, path: '/ses', method: 'POST', agent: false };
      const asked = requestTls({ ...options, ca: root.cert }, (response) => {
        const { socket } = response;
        const serial = socket instanceof TLSSocket ? socket.getPeerCertificate().serialNumber : undefined;
        response.resume();
        response.on('end', () => resolve([response.statusCode, serial]));
      });
      asked.on('error', reject);
      asked.end(JSON.stringify(snsMessage(signer.key, bounce())));
    });
  const serialOf = ({ cert }: Authority) => new X509Certificate(cert).serialNumber;
  expect(await post()).toEqual([200, serialOf(first)]);
  receiver.renewCertificate(keyPairOf(second));
  expect(await post()).toEqual([200, serialOf(second)]);
});
