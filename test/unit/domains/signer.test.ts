/** The signer: whole messages signed by the domain's keys, or nothing. */
import { describe, expect, it } from 'vitest';
import { dkimRecordValue } from '../../../src/domains/dkim-record.ts';
import { newKeyPair, newKeys, openKey } from '../../../src/domains/keys.ts';
import { deriveKey, seal } from '../../../src/domains/secret.ts';
import { createSigner, type SigningKey } from '../../../src/domains/signer.ts';
import { compose } from '../../../src/message/compose.ts';
import { dkimRecordName } from '../../../src/model/domain.ts';
import { verify } from '../message/dkim-verifier.ts';

const sealingKey = deriveKey(Buffer.alloc(32, 1), 'dkim');
const AT = Date.UTC(2026, 10, 21);
const { data, bodyAt } = compose({
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  to: 'ann@example.com',
  from: 'shop@example.org',
  subject: 'Your order',
  message: '<html><p>Thank you.</p>',
  acceptedAt: AT,
});

const made = await newKeys({
  domain: 'example.org',
  algorithms: ['rsa', 'ed25519'],
  state: 'active',
  taken: [],
  sealingKey,
  now: AT,
  random: Math.random,
});
const keys: readonly SigningKey[] = made.map((key) => ({ ...key, domain: 'example.org' }));
const txt = Object.fromEntries(made.map((key) => [dkimRecordName('example.org', key.selector), dkimRecordValue(key)]));

/** A signer that counts how often it opens each key. */
function counting(maxKeys?: number) {
  const opened: string[] = [];
  const signer = createSigner({
    openKey(domain, selector, sealed) {
      opened.push(selector);
      return openKey(sealingKey, domain, selector, sealed);
    },
    ...(maxKeys === undefined ? {} : { maxKeys }),
  });
  return { signer, opened };
}

describe('a signed message', () => {
  it('has one signature for each key, which the published records verify', async () => {
    const { signer } = counting();
    const whole = await signer.sign(data, bodyAt, keys, AT);
    expect(whole.subarray(whole.length - data.length).equals(data)).toBe(true);
    expect((await verify(whole, txt)).map((one) => `${one.algorithm} ${one.result}`)).toEqual([
      'rsa-sha256 pass',
      'ed25519-sha256 pass',
    ]);
  });

  it('is the same each time, and under load too', async () => {
    const { signer, opened } = counting();
    const first = await signer.sign(data, bodyAt, keys, AT);
    const many = await Promise.all(Array.from({ length: 200 }, () => signer.sign(data, bodyAt, keys, AT)));
    expect(many.every((one) => one.equals(first))).toBe(true);
    expect(opened).toHaveLength(2);
  });

  it('is made while the event loop goes on', async () => {
    const { signer } = counting();
    let turns = 0;
    let done = false;
    const turn = () => {
      turns += 1;
      if (!done) setImmediate(turn);
    };
    setImmediate(turn);
    await signer.sign(data, bodyAt, keys, AT);
    done = true;
    expect(turns).toBeGreaterThan(0);
  });
});

describe('keys', () => {
  it('are opened once, forgotten when there are too many, and opened again when sealed anew', async () => {
    const { signer, opened } = counting(2);
    const [a, e] = keys;
    const pair = await newKeyPair('ed25519');
    const other: SigningKey = {
      domain: 'example.net',
      selector: 'x',
      algorithm: 'ed25519',
      sealed: seal(sealingKey, pair.privateKey, 'dkim:example.net:x'),
    };
    if (a === undefined || e === undefined) throw new Error('two keys were made');
    for (const key of [a, e, a, other, a, e]) await signer.sign(data, bodyAt, [key], AT);
    expect(opened).toEqual([a.selector, e.selector, 'x', e.selector]);
    const anew = {
      ...e,
      sealed: seal(sealingKey, openKey(sealingKey, e.domain, e.selector, e.sealed), `dkim:example.org:${e.selector}`),
    };
    await signer.sign(data, bodyAt, [anew], AT);
    expect(opened).toHaveLength(5);
  });

  it('are never used for another algorithm than their own, nor once they are open', async () => {
    const { signer } = counting();
    const [a] = keys;
    if (a === undefined) throw new Error('a key was made');
    await signer.sign(data, bodyAt, [a], AT);
    await expect(signer.sign(data, bodyAt, [{ ...a, algorithm: 'ed25519' }], AT)).rejects.toThrow('is not ed25519');
    expect((await verify(await signer.sign(data, bodyAt, [a], AT), txt)).map((one) => one.result)).toEqual(['pass']);
  });
});

describe('where a signature cannot be made, nothing comes out', () => {
  const [rsa] = keys;
  const sealed = rsa?.sealed ?? '';
  const cases: readonly (readonly [string, readonly SigningKey[], string])[] = [
    ['no keys', [], 'no DKIM key'],
    ['a key of another algorithm', keys.map((key) => ({ ...key, algorithm: 'ed25519' as const })), 'is not ed25519'],
    ['a key sealed for another domain', keys.map((key) => ({ ...key, domain: 'example.com' })), 'POSTRIDER_SECRET'],
    [
      'what is no key',
      [
        {
          domain: 'a.test',
          selector: 's',
          algorithm: 'rsa',
          sealed: seal(sealingKey, Buffer.from('x'), 'dkim:a.test:s'),
        },
      ],
      'damaged',
    ],
    [
      'a domain that would bring in a header',
      [{ domain: 'a.test;\r\nBcc: x', selector: 's', algorithm: 'rsa', sealed }],
      'is no name',
    ],
    ['a selector in upper case', [{ domain: 'a.test', selector: 'S', algorithm: 'rsa', sealed }], 'is no name'],
    [
      'one good key and one that fails',
      [...keys, { domain: 'b.test', selector: 's', algorithm: 'rsa', sealed: 'AQ' }],
      'dkim:b.test:s',
    ],
  ];

  it.each(cases)('%s', async (_, used, fault) => {
    const { signer } = counting();
    const rejected = await signer.sign(data, bodyAt, used, AT).catch((error: unknown) => error);
    expect(rejected).toBeInstanceOf(Error);
    const text = rejected instanceof Error ? `${rejected.message}\n${rejected.stack}` : '';
    expect(text).toContain(fault);
    expect(text).not.toContain(sealed);
    expect((await signer.sign(data, bodyAt, keys, AT)).length).toBeGreaterThan(data.length);
  });
});
