import { generate } from 'selfsigned';
import { beforeAll, expect, test } from 'vitest';
import { checkCertificate } from '../../../src/doctor/certificate.ts';

const DAY = 86_400_000;
const listen = { host: '0.0.0.0', port: 443 };
let authority: { cert: string; private: string };
let leaf: { cert: string; private: string };
let alone: { cert: string; private: string };
let now = 0;

beforeAll(async () => {
  now = Date.now();
  const options = { algorithm: 'sha256', notBeforeDate: new Date(now - DAY), notAfterDate: new Date(now + 90 * DAY) };
  const named = { name: 'subjectAltName' as const, altNames: [{ type: 2 as const, value: 'mail.example.org' }] };
  const isAuthority = { name: 'basicConstraints' as const, cA: true };
  authority = await generate([{ name: 'commonName', value: 'Test CA' }], { ...options, extensions: [isAuthority] });
  leaf = await generate([{ name: 'commonName', value: 'mail.example.org' }], {
    ...options,
    extensions: [named],
    ca: { key: authority.private, cert: authority.cert },
  });
  alone = await generate([{ name: 'commonName', value: 'mail.example.org' }], { ...options, extensions: [named] });
});

async function check(cert: string, key: string, at = now): Promise<unknown> {
  const files: Record<string, string> = { 'cert.pem': cert, 'key.pem': key };
  const [finding] = await checkCertificate({
    paths: { certPath: 'cert.pem', keyPath: 'key.pem' },
    listen,
    acceptsRemoteClients: true,
    read: async (path) => Buffer.from(files[path] ?? ''),
    now: at,
  });
  return finding;
}

const says = (result: string, detail: RegExp) => ({ result, detail: expect.stringMatching(detail) });

test('a chain in order, in date and with its key is ok', async () => {
  expect(await check(leaf.cert + authority.cert, leaf.private)).toMatchObject(
    says('ok', /^of mail.example.org; valid until/),
  );
});

test('the end of a certificate warns three weeks before and fails when it is past', async () => {
  const chain = leaf.cert + authority.cert;
  expect(await check(chain, leaf.private, now + 68 * DAY)).toMatchObject({ result: 'ok' });
  expect(await check(chain, leaf.private, now + 70 * DAY)).toMatchObject(says('warning', /, 20 days from now$/));
  expect(await check(chain, leaf.private, now + 91 * DAY)).toMatchObject(says('failure', /it expired on/));
  expect(await check(chain, leaf.private, now - 30 * DAY)).toMatchObject(says('failure', /valid only from/));
});

test('a key of another certificate fails, and so does what is none', async () => {
  expect(await check(leaf.cert + authority.cert, alone.private)).toMatchObject(
    says('failure', /key of another certificate/),
  );
  expect(await check(leaf.cert, 'hello')).toMatchObject(says('failure', /no PEM private key/));
  expect(await check('hello', leaf.private)).toMatchObject(says('failure', /no PEM certificate/));
  expect(await check(`${leaf.cert.slice(0, 200)}\n-----END CERTIFICATE-----\n`, leaf.private)).toMatchObject({
    result: 'failure',
  });
});

test('a chain that clients cannot follow is a warning', async () => {
  expect(await check(leaf.cert, leaf.private)).toMatchObject(says('warning', /no intermediate certificate/));
  expect(await check(leaf.cert + alone.cert, leaf.private)).toMatchObject(
    says('warning', /did not issue the one before/),
  );
  expect(await check(alone.cert, alone.private)).toMatchObject(says('warning', /self-signed/));
});

test('a file that cannot be read fails', async () => {
  const read = () => Promise.reject(Object.assign(new Error('no'), { code: 'EACCES' }));
  const paths = { certPath: 'cert.pem', keyPath: 'key.pem' };
  expect(await checkCertificate({ paths, listen, acceptsRemoteClients: true, read, now })).toMatchObject([
    says('failure', /cert.pem cannot be read \(EACCES\)/),
  ]);
});

test('none is needed where only this machine can connect, and missed where others can', async () => {
  const read = () => Promise.reject(new Error('not asked'));
  const parts = { paths: null, listen, read, now };
  expect(await checkCertificate({ ...parts, acceptsRemoteClients: false })).toMatchObject([{ result: 'ok' }]);
  expect(await checkCertificate({ ...parts, acceptsRemoteClients: true })).toMatchObject([
    says('warning', /clear text/),
  ]);
});
