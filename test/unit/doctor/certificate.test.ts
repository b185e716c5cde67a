import { generate } from 'selfsigned';
import { beforeAll, expect, test } from 'vitest';
import { checkCertificate } from '../../../src/doctor/certificate.ts';

const DAY_MS = 86_400_000;
const listen = { host: '0.0.0.0', port: 443 };
let authority: { cert: string; private: string };
let leaf: { cert: string; private: string };
let selfSigned: { cert: string; private: string };
let now = 0;

beforeAll(async () => {
  now = Date.now();
  const options = {
    algorithm: 'sha256',
    notBeforeDate: new Date(now - DAY_MS),
    notAfterDate: new Date(now + 90 * DAY_MS),
  };
  const altNameExtension = {
    name: 'subjectAltName' as const,
    altNames: [{ type: 2 as const, value: 'mail.example.org' }],
  };
  const authorityExtension = { name: 'basicConstraints' as const, cA: true };
  authority = await generate([{ name: 'commonName', value: 'Test CA' }], {
    ...options,
    extensions: [authorityExtension],
  });
  leaf = await generate([{ name: 'commonName', value: 'mail.example.org' }], {
    ...options,
    extensions: [altNameExtension],
    ca: { key: authority.private, cert: authority.cert },
  });
  selfSigned = await generate([{ name: 'commonName', value: 'mail.example.org' }], {
    ...options,
    extensions: [altNameExtension],
  });
});

async function checkFiles(cert: string, key: string, at = now): Promise<unknown> {
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

const expectFinding = (result: string, detail: RegExp) => ({ result, detail: expect.stringMatching(detail) });

test('a complete and valid chain with its key is ok', async () => {
  expect(await checkFiles(leaf.cert + authority.cert, leaf.private)).toMatchObject(
    expectFinding('ok', /^for mail.example.org; valid until/),
  );
});

test('a certificate is a warning three weeks before it expires and a failure after it has expired', async () => {
  const chain = leaf.cert + authority.cert;
  expect(await checkFiles(chain, leaf.private, now + 68 * DAY_MS)).toMatchObject({ result: 'ok' });
  expect(await checkFiles(chain, leaf.private, now + 70 * DAY_MS)).toMatchObject(
    expectFinding('warning', /, 20 days from now$/),
  );
  expect(await checkFiles(chain, leaf.private, now + 91 * DAY_MS)).toMatchObject(
    expectFinding('failure', /the certificate expired on/),
  );
  expect(await checkFiles(chain, leaf.private, now - 30 * DAY_MS)).toMatchObject(
    expectFinding('failure', /not valid before/),
  );
});

test('a key of another certificate and a malformed file are failures', async () => {
  expect(await checkFiles(leaf.cert + authority.cert, selfSigned.private)).toMatchObject(
    expectFinding('failure', /key of another certificate/),
  );
  expect(await checkFiles(leaf.cert, 'hello')).toMatchObject(expectFinding('failure', /not a PEM private key/));
  expect(await checkFiles('hello', leaf.private)).toMatchObject(expectFinding('failure', /not a PEM certificate/));
  expect(await checkFiles(`${leaf.cert.slice(0, 200)}\n-----END CERTIFICATE-----\n`, leaf.private)).toMatchObject({
    result: 'failure',
  });
});

test('an incomplete or unordered chain and a self-signed certificate are warnings', async () => {
  expect(await checkFiles(leaf.cert, leaf.private)).toMatchObject(
    expectFinding('warning', /no intermediate certificate/),
  );
  expect(await checkFiles(leaf.cert + selfSigned.cert, leaf.private)).toMatchObject(
    expectFinding('warning', /did not issue the certificate before/),
  );
  expect(await checkFiles(selfSigned.cert, selfSigned.private)).toMatchObject(expectFinding('warning', /self-signed/));
});

test('an unreadable file is a failure', async () => {
  const read = () => Promise.reject(Object.assign(new Error('no'), { code: 'EACCES' }));
  const paths = { certPath: 'cert.pem', keyPath: 'key.pem' };
  expect(await checkCertificate({ paths, listen, acceptsRemoteClients: true, read, now })).toMatchObject([
    expectFinding('failure', /cert.pem cannot be read \(EACCES\)/),
  ]);
});

test('a missing certificate is ok for a loopback listener and a warning for any other listener', async () => {
  const read = () => Promise.reject(new Error('unexpected read'));
  const parts = { paths: null, listen, read, now };
  expect(await checkCertificate({ ...parts, acceptsRemoteClients: false })).toMatchObject([{ result: 'ok' }]);
  expect(await checkCertificate({ ...parts, acceptsRemoteClients: true })).toMatchObject([
    expectFinding('warning', /clear text/),
  ]);
});
