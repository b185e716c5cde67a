import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compose, type ExtraHeader, type MessageSource } from '../../../src/message/compose.ts';
import {
  computeBodyHash,
  createSignatureInput,
  formatSignatureField,
  prepareSignableMessage,
  prependSignatures,
  type SignableMessage,
  splitFields,
  toRelaxedBody,
  toRelaxedField,
} from '../../../src/message/dkim.ts';
import type { DkimAlgorithm } from '../../../src/model/domain.ts';
import { selectCaseCount } from '../../rig/sample.ts';
import { addressText } from '../model/address-texts.ts';
import { hashBodyWithMailauth, relaxFieldWithMailauth, verifySignatures } from './dkim-verifier.ts';

const ACCEPTED_AT = Date.UTC(2026, 10, 21, 10, 20, 30, 999);
const baseMessage: MessageSource = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  to: 'ann@example.com',
  from: 'shop@example.org',
  subject: 'Your order',
  message: 'Thank you.\n\n  And come again.\n',
  acceptedAt: ACCEPTED_AT,
};

interface TestKey {
  readonly domain: string;
  readonly selector: string;
  readonly algorithm: DkimAlgorithm;
  readonly key: KeyObject;
}

const rsaKey: TestKey = {
  domain: 'example.org',
  selector: 'pr20261121a',
  algorithm: 'rsa',
  key: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
};
const ed25519Key: TestKey = {
  domain: 'example.org',
  selector: 'pr20261121e',
  algorithm: 'ed25519',
  key: generateKeyPairSync('ed25519').privateKey,
};
const testKeys = [rsaKey, ed25519Key];
const txt = Object.fromEntries(
  testKeys.map((key) => [`${key.selector}._domainkey.${key.domain}`, createDkimRecord(key)]),
);

function createDkimRecord({ algorithm, key }: TestKey): string {
  const der = createPublicKey(key).export({ format: 'der', type: 'spki' });
  const octets = algorithm === 'rsa' ? der : der.subarray(-32);
  return `v=DKIM1; k=${algorithm}; p=${octets.toString('base64')}`;
}

function createSignatureField(signableMessage: SignableMessage, key: TestKey, at: number): string {
  const input = createSignatureInput(signableMessage, key, at);
  return formatSignatureField(input, sign(key.algorithm === 'rsa' ? 'sha256' : null, input.bytes, key.key));
}

function signMessage(
  { data, bodyAt }: { readonly data: Buffer; readonly bodyAt: number },
  keys: readonly TestKey[] = testKeys,
  excludedNames?: ReadonlySet<string>,
): Buffer {
  const signableMessage = prepareSignableMessage(data, bodyAt, excludedNames);
  return prependSignatures(
    keys.map((key) => createSignatureField(signableMessage, key, ACCEPTED_AT)),
    data,
  );
}

async function verifyMessage(message: Buffer): Promise<readonly string[]> {
  return (await verifySignatures(message, txt)).map((entry) => `${entry.algorithm} ${entry.result}`);
}

const PASSED_RESULTS = ['rsa-sha256 pass', 'ed25519-sha256 pass'];

function listSignedNames(message: Buffer): readonly string[] {
  const field =
    splitFields(message.toString('latin1')).find((candidate) => candidate.name === 'dkim-signature')?.text ?? '';
  const list = /\bh=([^;]*);/.exec(field)?.[1] ?? '';
  return list.split(':').map((name) => name.trim().toLowerCase());
}

const text = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.constantFrom(' ', '\n', ' \n', '\t\n', '\n\n', '.\n', '  '),
    ),
    { minLength: 1, maxLength: 10 },
  )
  .map((pieces) => pieces.join('').replaceAll('\0', '').toWellFormed())
  .filter((joined) => joined !== '');
const message = fc.tuple(fc.constantFrom('', '<html>'), text).map((pieces) => pieces.join(''));
const subject = text
  .map((joined) => joined.replaceAll(/[\r\n]/g, ''))
  .filter((joined) => joined !== '' && Buffer.byteLength(joined) <= 998);

interface PublishedValues {
  readonly file: string;
  readonly txt: Readonly<Record<string, string>>;
  readonly privateKeys: Readonly<
    Record<
      string,
      { readonly algorithm: 'ed25519'; readonly seed: string } | { readonly algorithm: 'rsa'; readonly pkcs1: string }
    >
  >;
}

const corpusUrl = new URL('../../corpus/dkim/', import.meta.url);
const publishedValues = JSON.parse(
  readFileSync(new URL('published.json', corpusUrl), 'utf8'),
) as readonly PublishedValues[];
const readCorpusMessage = (file: string) =>
  Buffer.from(readFileSync(new URL(file, corpusUrl), 'latin1').replaceAll('\n', '\r\n'), 'latin1');

describe('the messages published in the RFCs', () => {
  it.each(publishedValues)('pass the verifier of these tests: $file', async ({ file, txt }) => {
    const results = await verifySignatures(readCorpusMessage(file), txt);
    expect(results.map((result) => result.result)).toEqual(Object.keys(txt).map(() => 'pass'));
  });

  it('have the published body hashes, and the published private keys produce the published signatures', () => {
    const reproducedSignatures: string[] = [];
    for (const { file, privateKeys } of publishedValues) {
      const data = readCorpusMessage(file);
      const fields = splitFields(data.toString('latin1'));
      for (const field of fields.filter((candidate) => candidate.name === 'dkim-signature')) {
        const tags = new Map(
          field.text
            .slice('DKIM-Signature:'.length)
            .split(';')
            .map((tag) => [
              tag.slice(0, tag.indexOf('=')).trim(),
              tag.slice(tag.indexOf('=') + 1).replaceAll(/\s/g, ''),
            ]),
        );
        expect(computeBodyHash(data, data.indexOf('\r\n\r\n') + 4)).toBe(tags.get('bh'));
        const key = privateKeys[tags.get('s') ?? ''];
        if (key === undefined) continue;
        const remainingFields = [...fields];
        const names = (tags.get('h') ?? '').split(':');
        const selectedFields = names.flatMap((name) => {
          const index = remainingFields.findLastIndex((candidate) => candidate.name === name);
          return index === -1 ? [] : remainingFields.splice(index, 1);
        });
        const emptySignatureField = toRelaxedField({ name: field.name, text: field.text.replace(/\bb=[^;]*/, 'b=') });
        const bytes = Buffer.from(
          `${selectedFields.map((field) => `${toRelaxedField(field)}\r\n`).join('')}${emptySignatureField}`,
          'latin1',
        );
        const signature =
          key.algorithm === 'rsa'
            ? sign('sha256', bytes, { key: Buffer.from(key.pkcs1, 'base64'), format: 'der', type: 'pkcs1' })
            : sign(null, createHash('sha256').update(bytes).digest(), createPrivateKeyFromSeed(key.seed));
        expect(signature.toString('base64')).toBe(tags.get('b'));
        reproducedSignatures.push(tags.get('a') ?? '');
      }
    }
    expect(reproducedSignatures).toEqual(['ed25519-sha256', 'rsa-sha256']);
  });
});

/** Creates an Ed25519 key from its seed. In PKCS#8, the seed follows fixed octets (RFC 8410 section 7). */
function createPrivateKeyFromSeed(seed: string): KeyObject {
  const key = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(seed, 'base64')]);
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

describe('a signature', () => {
  it('of any composed message is valid for both keys, and its domain is the domain of From', async () => {
    await fc.assert(
      fc.asyncProperty(subject, message, addressText, async (subject, message, to) => {
        const signedMessage = signMessage(compose({ ...baseMessage, subject, message, to }));
        const results = await verifySignatures(signedMessage, txt);
        expect(results.map((result) => [result.algorithm, result.result, result.domain])).toEqual([
          ['rsa-sha256', 'pass', 'example.org'],
          ['ed25519-sha256', 'pass', 'example.org'],
        ]);
      }),
      { numRuns: selectCaseCount(100, 300) },
    );
  });

  it('is prepended to the unchanged message, RSA first, in lines of at most 78 columns', () => {
    const composedMessage = compose(baseMessage);
    const signedMessage = signMessage(composedMessage);
    expect(
      signedMessage.subarray(signedMessage.length - composedMessage.data.length).equals(composedMessage.data),
    ).toBe(true);
    const signatures = signedMessage.subarray(0, signedMessage.length - composedMessage.data.length).toString('latin1');
    expect(signatures.split('\r\n').every((line) => line.length <= 78)).toBe(true);
    expect(signatures.endsWith('\r\n')).toBe(true);
    const [firstSignature = '', secondSignature = '', ...furtherSignatures] = splitFields(signatures).map((field) =>
      field.text.replaceAll(/\r\n/g, ''),
    );
    expect(furtherSignatures).toEqual([]);
    const seconds = Math.floor(ACCEPTED_AT / 1000);
    expect(firstSignature).toMatch(
      /^DKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed; d=example\.org; h=From: From: /,
    );
    expect(firstSignature).toContain(`; q=dns/txt; s=pr20261121a; t=${seconds}; bh=`);
    expect(secondSignature).toContain('a=ed25519-sha256;');
    expect(signatures).not.toMatch(/\b[lxi]=/);
  });

  it('does not depend on the header fields of the messages that the key signed before', () => {
    const reusedKey = { ...rsaKey };
    const body = 'MIME-Version: 1.0\r\n\r\nThank you.\r\n';
    const fromField = 'From: shop@example.org\r\n';
    const headers = [
      fromField,
      `${fromField}Feedback-ID: a\r\n`,
      `${fromField}To: b@example.com\r\nTo: c@example.com\r\n`,
      '',
      fromField,
    ];
    const exclusions = [undefined, new Set(['mime-version', 'from']), undefined];
    for (const excludedNames of exclusions) {
      for (const header of headers) {
        const data = Buffer.from(header + body);
        const signableMessage = prepareSignableMessage(data, data.indexOf('\r\n\r\n') + 4, excludedNames);
        expect(createSignatureField(signableMessage, reusedKey, ACCEPTED_AT)).toBe(
          createSignatureField(signableMessage, { ...rsaKey }, ACCEPTED_AT),
        );
        const withUnsignedField = prepareSignableMessage(
          Buffer.from(`X-One: 1\r\n${header}${body}`),
          data.indexOf('\r\n\r\n') + 14,
          excludedNames,
        );
        expect(withUnsignedField).toEqual(signableMessage);
      }
    }
  });

  it('covers each present field of the list of signed fields, and oversigns the fields that a replay could add', () => {
    const extraHeaders: readonly ExtraHeader[] = [
      { name: 'Feedback-ID', value: '1:2:3:postrider' },
      { name: 'List-Unsubscribe', value: '<https://example.org/u>' },
      { name: 'X-Other', value: 'not signed' },
    ];
    const names = listSignedNames(signMessage(compose(baseMessage, extraHeaders)));
    const count = (name: string) => names.filter((candidate) => candidate === name).length;
    for (const name of ['from', 'to', 'subject', 'date', 'message-id', 'mime-version', 'content-type']) {
      expect([name, count(name)]).toEqual([name, 2]);
    }
    expect([count('content-transfer-encoding'), count('cc'), count('reply-to')]).toEqual([2, 1, 1]);
    expect([count('feedback-id'), count('list-unsubscribe'), count('list-id'), count('x-other')]).toEqual([1, 1, 0, 0]);
  });

  it('excludes the fields that the next hop replaces, but never From', async () => {
    const composedMessage = compose(baseMessage);
    const signedMessage = signMessage(composedMessage, testKeys, new Set(['date', 'message-id', 'from']));
    const names = listSignedNames(signedMessage);
    expect([names.includes('date'), names.includes('message-id'), names.includes('from')]).toEqual([
      false,
      false,
      true,
    ]);
    const rewrittenMessage = signedMessage
      .toString('latin1')
      .replace(/\r\nDate: [^\r]*/, '\r\nDate: Mon, 01 Jan 2029 00:00:00 +0000')
      .replace(/\r\nMessage-ID: [^\r]*/, '\r\nMessage-ID: <0100@email.amazonses.com>');
    expect(await verifyMessage(Buffer.from(rewrittenMessage, 'latin1'))).toEqual(PASSED_RESULTS);
  });
});

describe('the signature of a changed message', () => {
  const signedMessage = signMessage(compose({ ...baseMessage, subject: 'Für Sie', from: 'shop@example.org' }));
  const { data } = compose({ ...baseMessage, subject: 'Für Sie' });
  const dataStart = signedMessage.length - data.length;

  it('is invalid for both keys if any bit of a signed field or of the body is changed', async () => {
    const nameOffsets = new Set<number>();
    let fieldStart = dataStart;
    for (const field of splitFields(data.toString('latin1'))) {
      for (let i = 0; i <= field.text.indexOf(':'); i++) nameOffsets.add(fieldStart + i);
      fieldStart += field.text.length + 2;
    }
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: dataStart, max: signedMessage.length - 1 }),
        fc.integer({ min: 0, max: 7 }),
        async (offset, bit) => {
          const octet = signedMessage[offset] ?? 0;
          // Two changes are excluded: a change of the letter case in a field name, which has no effect in the relaxed
          // form, and a change of CR or LF, because SMTP cannot transport a CR or LF that is not part of a line end.
          fc.pre(octet !== 0x0d && octet !== 0x0a);
          fc.pre(!(nameOffsets.has(offset) && bit === 5));
          const changedMessage = Buffer.from(signedMessage);
          changedMessage[offset] = octet ^ (1 << bit);
          const results = await verifyMessage(changedMessage);
          expect(results.some((result) => result.endsWith(' pass'))).toBe(false);
        },
      ),
      { numRuns: selectCaseCount(100, 500) },
    );
  });

  it.each([
    ['From', 'mallory@example.net'],
    ['To', 'bob@example.net'],
    ['Cc', 'bob@example.net'],
    ['Subject', 'Buy now'],
    ['Date', 'Mon, 01 Jan 2029 00:00:00 +0000'],
    ['Message-ID', '<x@example.net>'],
    ['Reply-To', 'mallory@example.net'],
    ['MIME-Version', '1.0'],
    ['Content-Type', 'text/html'],
    ['Content-Transfer-Encoding', '7bit'],
  ])(
    'is invalid for both keys if a %s field is added at the beginning or at the end of the header',
    async (name, value) => {
      const addedField = `${name}: ${value}\r\n`;
      const headerEnd = signedMessage.indexOf('\r\n\r\n') + 2;
      for (const offset of [0, dataStart, headerEnd]) {
        const changedMessage = Buffer.concat([
          signedMessage.subarray(0, offset),
          Buffer.from(addedField),
          signedMessage.subarray(offset),
        ]);
        const results = await verifyMessage(changedMessage);
        expect(results).toHaveLength(2);
        expect(results.some((result) => result.endsWith(' pass'))).toBe(false);
      }
    },
  );
});

// The relaxed canonical forms are compared with the examples of RFC 6376, with a literal implementation of the RFC, and
// with mailauth.

const canonicalizeBody = (body: string, prefix = '') =>
  toRelaxedBody(Buffer.from(prefix + body, 'latin1'), prefix.length).toString('latin1');

/** Texts with all combinations of white space, line ends and other octets. */
const octets = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ' ',
        '  ',
        '\t',
        ' \t',
        '\r\n',
        ' \r\n',
        '\r\n\r\n',
        '\t\r\n',
        'a',
        'bc',
        '\xa0',
        '\x85',
        '\xff',
        ':',
      ),
      fc.string({ unit: fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 6 }),
    ),
    { maxLength: 40 },
  )
  .map((pieces) => pieces.join(''));
const value = octets.map((text) => text.replaceAll(/\r\n(?![ \t])/g, '\r\n '));
const name = fc.constantFrom('Subject', 'FROM', 'x-A', 'List-ID');

describe('the relaxed body', () => {
  it('equals the example of RFC 6376 section 3.4.5', () => {
    expect(canonicalizeBody(' C \r\nD \t E\r\n\r\n\r\n')).toBe(' C\r\nD E\r\n');
  });

  it('has the hash that mailauth computes', () => {
    fc.assert(
      fc.property(octets, (body) => {
        const bytes = Buffer.from(`x${body}\r\n`, 'latin1');
        expect(computeBodyHash(bytes, 0)).toBe(hashBodyWithMailauth(bytes));
      }),
      { numRuns: selectCaseCount(100, 2_000) },
    );
    const emptyBodyHash = createHash('sha256').update('').digest('base64');
    expect(computeBodyHash(Buffer.from('A: b\r\n\r\n'), 8)).toBe(emptyBodyHash);
  });
});

describe('a relaxed field', () => {
  const relaxFields = (text: string) => splitFields(`${text}\r\n\r\n`).map(toRelaxedField);

  it('equals the example of RFC 6376 section 3.4.5', () => {
    expect(relaxFields('A: X\r\nB : Y\t\r\n\tZ  ')).toEqual(['a:X', 'b:Y Z']);
  });

  it('equals the output of mailauth', () => {
    fc.assert(
      fc.property(name, value, (name, value) => {
        const field = `${name}:${value}`;
        expect(relaxFields(field)).toEqual([relaxFieldWithMailauth(field)]);
      }),
      { numRuns: selectCaseCount(100, 2_000) },
    );
  });
});

describe('a header', () => {
  it('is split into fields, not at folds, up to the empty line', () => {
    const header = 'A: 1\r\nB:\r\n 2\r\n\t3\r\nno colon\r\nC : 4\r\n\r\nD: body\r\n';
    expect(splitFields(header)).toEqual([
      { name: 'a', text: 'A: 1' },
      { name: 'b', text: 'B:\r\n 2\r\n\t3' },
      { name: '', text: 'no colon' },
      { name: 'c', text: 'C : 4' },
    ]);
    expect(splitFields('')).toEqual([]);
    expect(splitFields('A: 1')).toEqual([{ name: 'a', text: 'A: 1' }]);
  });
});
