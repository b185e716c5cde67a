import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import type { Lookup } from '../../../src/domains/dns.ts';
import { formatPublicKey } from '../../../src/domains/keys.ts';
import { findSigner } from '../../../src/message/dkim-verification.ts';

interface SignOptions {
  readonly canonicalization: string;
  readonly signTime: Date;
  readonly maxBodyLength?: number;
  readonly expires?: Date;
  readonly headerList?: string[];
  readonly signatureData: readonly object[];
}
const { dkimSign } = createRequire(import.meta.url)('mailauth/lib/dkim/sign.js') as {
  dkimSign: (message: string, options: SignOptions) => Promise<{ readonly signatures: string }>;
};

const DOMAIN = 'fbl.example';
const NOW = Date.parse('2026-11-28T12:00:00Z');
const MESSAGE = [
  'From: Feedback <feedback@fbl.example>',
  'To: <bounces@example.org>',
  'Subject:  a  report',
  'Content-Type: multipart/report;',
  ' boundary=b',
  '',
  '--b  ',
  'a\tb   c ',
  '',
  '--b--',
  '',
  '',
  '',
].join('\r\n');
const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 });
const SHORT_RSA = generateKeyPairSync('rsa', { modulusLength: 1023 });
const ED25519 = generateKeyPairSync('ed25519');
const RSA_RECORD = `v=DKIM1; k=rsa; p=${formatPublicKey(RSA.publicKey)}`;

async function sign(
  key: KeyObject,
  options: Partial<Omit<SignOptions, 'signatureData'>> = {},
  message = MESSAGE,
): Promise<string> {
  const privateKey = key.export({ format: 'pem', type: 'pkcs8' });
  const { signatures } = await dkimSign(message, {
    canonicalization: 'relaxed/relaxed',
    signTime: new Date(NOW),
    ...options,
    signatureData: [{ signingDomain: DOMAIN, selector: 's1', privateKey, ...options }],
  });
  return signatures + message;
}

async function search(message: string, record: string | Lookup = RSA_RECORD, now = NOW) {
  const names: string[] = [];
  const lookUpTxt = async (name: string): Promise<Lookup> => {
    names.push(name);
    return typeof record === 'string' ? { kind: 'found', values: [record] } : record;
  };
  const result = await findSigner(Buffer.from(message, 'latin1'), { domains: new Set([DOMAIN]), lookUpTxt, now });
  return { signer: result.kind === 'signed' ? result.domain : result.kind === 'unsigned' ? null : result.kind, names };
}

test.each(
  ['simple/simple', 'simple/relaxed', 'relaxed/simple', 'relaxed/relaxed'].flatMap((canonicalization) => [
    [canonicalization, 'rsa', RSA, RSA_RECORD] as const,
    [canonicalization, 'ed25519', ED25519, `v=DKIM1; k=ed25519; p=${formatPublicKey(ED25519.publicKey)}`] as const,
  ]),
)('a signature %s with %s is valid until a part of the message changes', async (canonicalization, _, keys, record) => {
  const message = await sign(keys.privateKey, { canonicalization });
  expect(await search(message, record)).toEqual({ signer: DOMAIN, names: ['s1._domainkey.fbl.example'] });
  for (const [before, after] of [
    ['a  report', 'another report'],
    ['a\tb', 'a\td'],
    ['boundary=b', 'boundary=c'],
    ['From: Feedback', 'From: Other'],
  ] as const)
    expect((await search(message.replace(before, after), record)).signer).toBeNull();
});

test.each<[string, () => Promise<string>, string?, number?]>([
  ['of another domain', async () => (await sign(RSA.privateKey)).replace('d=fbl.example', 'd=evil.example')],
  ['with l=', () => sign(RSA.privateKey, { maxBodyLength: 3 })],
  ['that has expired', () => sign(RSA.privateKey, { expires: new Date(NOW + 1_000) }), RSA_RECORD, NOW + 2_000],
  ['without From', () => sign(RSA.privateKey, { headerList: ['to', 'content-type'] })],
  ['without Content-Type', () => sign(RSA.privateKey, { headerList: ['from', 'to'] })],
  ['of a message with a second From', async () => `From: a@b.example\r\n${await sign(RSA.privateKey)}`],
  [
    'of a message with an added encoding',
    async () => `Content-Transfer-Encoding: base64\r\n${await sign(RSA.privateKey)}`,
  ],
  [
    'of a message with a blank line in a field',
    async () => (await sign(RSA.privateKey)).replace('a  report\r\n', 'a  report\r\n \r\n'),
  ],
  [
    'of a message with a field name that is not ASCII',
    async () => (await sign(RSA.privateKey)).replace('Content-Type:', 'Content-Type\u00a0:'),
  ],
  [
    'with another key',
    () => sign(RSA.privateKey),
    `p=${formatPublicKey(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey)}`,
  ],
  ['with a key of 1023 bits', () => sign(SHORT_RSA.privateKey), `p=${formatPublicKey(SHORT_RSA.publicKey)}`],
  ['with a revoked key', () => sign(RSA.privateKey), 'v=DKIM1; p='],
  [
    'with a key for another algorithm',
    () => sign(RSA.privateKey),
    `k=ed25519; p=${formatPublicKey(ED25519.publicKey)}`,
  ],
  ['with a key for another service', () => sign(RSA.privateKey), `${RSA_RECORD}; s=tlsrpt`],
  ['with a key for SHA-1', () => sign(RSA.privateKey), `${RSA_RECORD}; h=sha1`],
  ['of a domain that tests DKIM', () => sign(RSA.privateKey), `${RSA_RECORD}; t=s:y`],
  ['with a damaged record', () => sign(RSA.privateKey), 'p=!!!; p=x'],
])('a signature %s is invalid', async (_, createMessage, record = RSA_RECORD, now = NOW) => {
  expect((await search(await createMessage(), record, now)).signer).toBeNull();
});

test.each<[string, Lookup, string | null]>([
  ['a key beside other records', { kind: 'found', values: ['v=spf1 -all', 'x', RSA_RECORD] }, DOMAIN],
  ['no record', { kind: 'none' }, null],
  ['a lookup that failed', { kind: 'failed', reason: 'timeout' }, 'lookup-failed'],
])('%s decides about a signature', async (_, lookup, signer) => {
  expect((await search(await sign(RSA.privateKey), lookup)).signer).toBe(signer);
});

test('at most three signatures are tried, and only those of the given domains are looked up', async () => {
  const [signature = ''] = (await sign(RSA.privateKey)).split('From:');
  const forgedSignature = signature.replace(/bh=[^;]*/, 'bh=AAAA');
  const foreignSignature = signature.replace('d=fbl.example', 'd=evil.example');
  const searchAfter = async (forgedCount: number) => {
    const signatures = foreignSignature.repeat(9) + forgedSignature.repeat(forgedCount) + signature;
    const { signer, names } = await search(signatures + MESSAGE);
    return [signer, names.length];
  };
  expect([await searchAfter(2), await searchAfter(3)]).toEqual([
    [DOMAIN, 3],
    [null, 3],
  ]);
});
