import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import { createSnsCertificates } from '../../../../src/feedback/ses/sns-certificates.ts';
import { CERT_URL, createAuthority, createSnsMessage, REGION } from '../../../rig/sns.ts';
import { createBounceNotification, createSnsAuthorities } from '../../../rig/sns-receiver.ts';

const { root, signer, untrustedSigner, createRig } = await createSnsAuthorities();

describe('a certificate', () => {
  const postWithCertificate = async (pem: string, key: string, now?: () => number) => {
    const { post, fetchedUrls } = await createRig({
      responses: { [CERT_URL]: pem },
      ...(now === undefined ? {} : { now }),
    });
    return { status: (await post(createSnsMessage(key, createBounceNotification()))).status, fetchedUrls };
  };

  test('whose chain does not end at a trusted root is refused', async () => {
    expect((await postWithCertificate(untrustedSigner.cert, untrustedSigner.key)).status).toBe(403);
    expect((await postWithCertificate('no certificate', untrustedSigner.key)).status).toBe(403);
    expect((await postWithCertificate('', untrustedSigner.key)).status).toBe(403);
  });

  test('is trusted together with its intermediate certificate, and refused without it', async () => {
    const intermediateSigner = await root.issueCertificate('Test Authority', { ca: true });
    const leaf = await intermediateSigner.issueCertificate();
    expect((await postWithCertificate(`${leaf.cert}\n${intermediateSigner.cert}`, leaf.key)).status).toBe(200);
    expect((await postWithCertificate(leaf.cert, leaf.key)).status).toBe(403);
  });

  test('of an issuer that has the name of a trusted root but a different key is refused', async () => {
    const impostorRoot = await createAuthority('Test Root');
    const leaf = await impostorRoot.issueCertificate();
    expect((await postWithCertificate(leaf.cert, leaf.key)).status).toBe(403);
    expect((await postWithCertificate(`${leaf.cert}\n${impostorRoot.cert}`, leaf.key)).status).toBe(403);
  });

  test('of an issuer that is not a certificate authority is refused', async () => {
    const leaf = await signer.issueCertificate();
    expect((await postWithCertificate(`${leaf.cert}\n${signer.cert}`, leaf.key)).status).toBe(403);
  });

  test('with a name that is not a name of SNS is refused', async () => {
    const otherSigner = await root.issueCertificate('sns.example.com');
    expect((await postWithCertificate(otherSigner.cert, otherSigner.key)).status).toBe(403);
    const regionalSigner = await root.issueCertificate(`sns.${REGION}.amazonaws.com`);
    expect((await postWithCertificate(regionalSigner.cert, regionalSigner.key)).status).toBe(200);
  });

  test('that has expired is refused', async () => {
    const expiredSigner = await root.issueCertificate(undefined, {
      since: new Date(Date.now() - 5 * 86_400_000),
      days: 1,
    });
    expect((await postWithCertificate(expiredSigner.cert, expiredSigner.key)).status).toBe(403);
  });

  test('is fetched once for many messages, even if they are concurrent', async () => {
    const { post, fetchedUrls } = await createRig();
    const responses = await Promise.all(
      [1, 2, 3, 4].map(() => post(createSnsMessage(signer.key, createBounceNotification()))),
    );
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await post(createSnsMessage(signer.key, createBounceNotification()))).status).toBe(200);
    expect(fetchedUrls).toEqual([CERT_URL]);
  });

  test('that cannot be fetched causes a 503, and the repeated message is accepted after the certificate is fetched', async () => {
    const answers: (() => Response)[] = [
      () => new Response('', { status: 503 }),
      () => {
        throw new TypeError('fetch failed');
      },
      () => new Response(signer.cert),
    ];
    const fetchStub = (async () => (answers.shift() ?? (() => new Response('', { status: 404 })))()) as typeof fetch;
    const { post, refusals, faults, reports } = await createRig({ get: fetchStub });
    const message = createSnsMessage(signer.key, createBounceNotification());
    expect((await post(message)).status).toBe(503);
    expect((await post(message)).status).toBe(503);
    expect((await post(message)).status).toBe(200);
    expect(refusals).toEqual(['sns-certificate', 'sns-certificate']);
    expect(faults).toEqual([`sns certificate: Error: sns.${REGION}.amazonaws.com answered 503 for the certificate`]);
    expect(reports).toHaveLength(1);
  });

  test('that expires after it was fetched is fetched again', async () => {
    let offsetMs = 0;
    const oneDaySigner = await root.issueCertificate(undefined, { since: new Date(Date.now() - 3_600_000), days: 1 });
    const { post, fetchedUrls } = await createRig({
      responses: { [CERT_URL]: oneDaySigner.cert },
      now: () => Date.now() + offsetMs,
    });
    expect((await post(createSnsMessage(oneDaySigner.key, createBounceNotification()))).status).toBe(200);
    offsetMs = 23.5 * 3_600_000;
    const Timestamp = new Date(Date.now() + offsetMs).toISOString();
    expect((await post(createSnsMessage(oneDaySigner.key, createBounceNotification({ Timestamp })))).status).toBe(403);
    expect(fetchedUrls).toHaveLength(2);
  });

  test('is fetched with bounded concurrency', async () => {
    let maxConcurrentFetches = 0;
    let fetchesInProgress = 0;
    const fetchCompletion = Promise.withResolvers<void>();
    const get = (async () => {
      fetchesInProgress += 1;
      maxConcurrentFetches = Math.max(maxConcurrentFetches, fetchesInProgress);
      await fetchCompletion.promise;
      fetchesInProgress -= 1;
      return new Response('', { status: 404 });
    }) as typeof fetch;
    const { post, refusals } = await createRig({ get });
    const responses = Array.from({ length: 30 }, (_, n) =>
      post(
        createSnsMessage(
          untrustedSigner.key,
          createBounceNotification({ SigningCertURL: `https://sns.${REGION}.amazonaws.com/${n}.pem` }),
        ),
      ),
    );
    await expect.poll(() => refusals.length).toBe(22);
    fetchCompletion.resolve();
    await Promise.all(responses);
    expect(maxConcurrentFetches).toBe(8);
    expect(refusals.filter((reason) => reason === 'sns-certificate')).toHaveLength(22);
  });
});

describe('the issuer of a certificate without its chain', () => {
  const readCertificate = (name: string) => readFileSync(join(import.meta.dirname, '../../../corpus/sns-chain', name));
  const createCertificates = (get: (url: string) => Response) => {
    const requestedUrls: string[] = [];
    const fetchCertificate = (async (input: URL | string) => {
      requestedUrls.push(String(input));
      return get(String(input));
    }) as typeof fetch;
    const parts = {
      fetch: fetchCertificate,
      getRoots: () => [readCertificate('root.pem').toString()],
      now: systemClock.now,
    };
    return {
      requestedUrls,
      getCertificate: () => createSnsCertificates(parts).getCertificate(new URL(CERT_URL)),
    };
  };
  const ISSUER = 'http://crt.m01.amazontrust.com/m01.cer';

  test('is fetched from the Amazon URL in the certificate, and the chain is trusted', async () => {
    const { requestedUrls, getCertificate } = createCertificates(
      (url) => new Response(url === ISSUER ? readCertificate('issuer.cer') : readCertificate('leaf.pem')),
    );
    expect((await getCertificate()).kind).toBe('trusted');
    expect(requestedUrls).toEqual([CERT_URL, ISSUER]);
  });

  test('that cannot be fetched makes the certificate unavailable, not refused', async () => {
    const { getCertificate } = createCertificates((url) =>
      url === ISSUER ? new Response('', { status: 500 }) : new Response(readCertificate('leaf.pem')),
    );
    expect((await getCertificate()).kind).toBe('unavailable');
  });

  test('is not fetched from a URL outside the domain of Amazon', async () => {
    const { requestedUrls, getCertificate } = createCertificates(() => new Response(readCertificate('elsewhere.pem')));
    expect((await getCertificate()).kind).toBe('refused');
    expect(requestedUrls).toEqual([CERT_URL]);
  });
});
