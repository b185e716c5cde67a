import { generate } from 'selfsigned';
import { expect, test } from 'vitest';
import { checkCertificate } from '../../../src/checks/certificate.ts';

const DAY_MS = 86_400_000;
const listen = { host: '0.0.0.0', port: 443 };
const now = Date.now();
const dates = { notBeforeDate: new Date(now - DAY_MS), notAfterDate: new Date(now + 90 * DAY_MS) };
const create = (value: string, options: Parameters<typeof generate>[1]) =>
  generate([{ name: 'commonName', value }], { algorithm: 'sha256', ...dates, ...options });
const name = 'mail.example.org';
const extensions = [{ name: 'subjectAltName' as const, altNames: [{ type: 2 as const, value: name }] }];
const authority = await create('Test CA', { extensions: [{ name: 'basicConstraints', cA: true }] });
const leaf = await create(name, { extensions, ca: { key: authority.private, cert: authority.cert } });
const selfSigned = await create(name, { extensions });

async function checkFiles(cert: string, key: string, at: number): Promise<unknown> {
  const files: Record<string, string> = { 'cert.pem': cert, 'key.pem': key };
  return await checkCertificate({
    paths: { certPath: 'cert.pem', keyPath: 'key.pem' },
    listen,
    acceptsRemoteClients: true,
    read: async (path) => Buffer.from(files[path] ?? ''),
    now: at,
  });
}

test.each<[string, () => [cert: string, key: string, days?: number], string]>([
  ['a complete and valid chain with its key', () => [leaf.cert + authority.cert, leaf.private], 'ok'],
  ['a certificate 22 days before it expires', () => [leaf.cert + authority.cert, leaf.private, 68], 'ok'],
  ['a certificate 20 days before it expires', () => [leaf.cert + authority.cert, leaf.private, 70], 'warning'],
  ['an expired certificate', () => [leaf.cert + authority.cert, leaf.private, 91], 'failure'],
  ['a certificate that is not valid yet', () => [leaf.cert + authority.cert, leaf.private, -30], 'failure'],
  ['a key of another certificate', () => [leaf.cert + authority.cert, selfSigned.private], 'failure'],
  ['a malformed key', () => [leaf.cert, 'hello'], 'failure'],
  ['a malformed certificate', () => ['hello', leaf.private], 'failure'],
  ['a cut certificate', () => [`${leaf.cert.slice(0, 200)}\n-----END CERTIFICATE-----\n`, leaf.private], 'failure'],
  ['an incomplete chain', () => [leaf.cert, leaf.private], 'warning'],
  ['an unordered chain', () => [leaf.cert + selfSigned.cert, leaf.private], 'warning'],
  ['a self-signed certificate', () => [selfSigned.cert, selfSigned.private], 'warning'],
])('%s', async (_name, createFiles, result) => {
  const [cert, key, days = 0] = createFiles();
  expect(await checkFiles(cert, key, now + days * DAY_MS)).toMatchObject({ level: result });
});

test.each([
  ['an unreadable file', { certPath: 'cert.pem', keyPath: 'key.pem' }, true, 'failure'],
  ['no certificate for a loopback listener', null, false, 'ok'],
  ['no certificate for any other listener', null, true, 'warning'],
])('%s', async (_name, paths, acceptsRemoteClients, result) => {
  const read = () => Promise.reject(Object.assign(new Error('no'), { code: 'EACCES' }));
  expect(await checkCertificate({ paths, listen, acceptsRemoteClients, read, now })).toMatchObject({ level: result });
});
