/** Tests of addresses: the cases of test/corpus/addresses, length limits, and properties of accepted addresses. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import PostalMime, { addressParser } from 'postal-mime';
import { describe, expect, it } from 'vitest';
import { compose } from '../../../src/message/compose.ts';
import { formatAddrSpec, parseAddress, toCanonicalAddress } from '../../../src/model/address.ts';
import { addressText } from './address-texts.ts';

interface AddressCase {
  readonly input: string;
  readonly canonical: string | null;
  readonly note: string;
}

const file = new URL('../../corpus/addresses/addresses.json', import.meta.url);
const cases = JSON.parse(readFileSync(file, 'utf8')) as readonly AddressCase[];

function canonicalizeAddress(text: string): string | null {
  const address = parseAddress(text);
  return address === null ? null : toCanonicalAddress(address);
}

describe('addresses', () => {
  it.each(cases.map((testCase) => [testCase.note, testCase.input, testCase.canonical] as const))(
    'are converted to their canonical form or refused (%s): %j',
    (_note, input, canonical) => {
      expect(canonicalizeAddress(input)).toBe(canonical);
    },
  );

  it('have the local part as given and the domain in A-labels', () => {
    const address = parseAddress('Jürgen.X@Bücher.Example');
    expect(address).toEqual({ localPart: 'Jürgen.X', domain: 'xn--bcher-kva.example', isAscii: false });
    expect(address && formatAddrSpec(address)).toBe('Jürgen.X@xn--bcher-kva.example');
    expect(parseAddress('A@Example.com')).toEqual({ localPart: 'A', domain: 'example.com', isAscii: true });
  });

  it('have a local part of at most 64 octets of UTF-8', () => {
    expect(canonicalizeAddress(`${'a'.repeat(64)}@b.co`)).not.toBeNull();
    expect(canonicalizeAddress(`${'a'.repeat(65)}@b.co`)).toBeNull();
    expect(canonicalizeAddress(`${'é'.repeat(32)}@b.co`)).not.toBeNull();
    expect(canonicalizeAddress(`${'é'.repeat(32)}a@b.co`)).toBeNull();
    expect(canonicalizeAddress(`"${'a'.repeat(62)}"@b.co`)).not.toBeNull();
    expect(canonicalizeAddress(`"${'a'.repeat(63)}"@b.co`)).toBeNull();
  });

  it('have labels of at most 63 octets in A-label form', () => {
    expect(canonicalizeAddress(`a@${'b'.repeat(63)}.co`)).not.toBeNull();
    expect(canonicalizeAddress(`a@${'b'.repeat(64)}.co`)).toBeNull();
    expect(canonicalizeAddress(`a@b.${'c'.repeat(64)}`)).toBeNull();
    expect(canonicalizeAddress(`a@${'ü'.repeat(40)}.co`)).not.toBeNull();
    expect(canonicalizeAddress(`a@${'ü'.repeat(63)}.co`)).toBeNull();
  });

  it('have at most 254 octets in the form that is sent', () => {
    const createDomain = (octets: number) =>
      `${'b.'.repeat(Math.floor((octets - 2) / 2))}${octets % 2 === 0 ? 'co' : 'com'}`;
    const localText = 'a'.repeat(64);
    const longestAddress = `${localText}@${createDomain(189)}`;
    expect(longestAddress).toHaveLength(254);
    expect(canonicalizeAddress(longestAddress)).toBe(longestAddress);
    expect(canonicalizeAddress(`${localText}@${createDomain(190)}`)).toBeNull();
    // The label `ü` and its dot have two characters, and eight octets in the ASCII form (`xn--tda.`).
    expect(canonicalizeAddress(`a@${'ü.'.repeat(33)}example`)).toBeNull();
    expect(canonicalizeAddress(`a@${'ü.'.repeat(20)}example`)).not.toBeNull();
  });

  it('of one mebibyte are refused because of their length', () => {
    const mebibyte = 1024 * 1024;
    for (const part of ['a', '.', '@', '"', '\\', 'ü', '\u200d', 'xn--', '😀', '\ud800']) {
      const longAddress = part.repeat(mebibyte / part.length);
      for (const input of [
        longAddress,
        `${longAddress}@example.com`,
        `a@${longAddress}`,
        `"${longAddress}"@example.com`,
      ]) {
        expect(parseAddress(input)).toBeNull();
      }
    }
  });

  it('never make the parser throw', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.array(fc.integer({ min: 0, max: 0xffff }))), (input) => {
        parseAddress(typeof input === 'string' ? input : String.fromCharCode(...input));
      }),
    );
  });

  it('of every valid kind are accepted, and all spellings of an address have the same suppression key', () => {
    fc.assert(
      fc.property(addressText, (text) => {
        const address = parseAddress(text);
        if (address === null) throw new Error(`refused ${JSON.stringify(text)}`);
        const key = toCanonicalAddress(address);
        expect(canonicalizeAddress(key)).toBe(key);
        expect(canonicalizeAddress(formatAddrSpec(address))).toBe(key);
        const atIndex = text.lastIndexOf('@');
        const upperCaseLocalPart = text.slice(0, atIndex).replace(/[a-z]/g, (letter) => letter.toUpperCase());
        expect(canonicalizeAddress(upperCaseLocalPart + text.slice(atIndex))).toBe(key);
      }),
      { numRuns: 2000 },
    );
  });

  it('with an inserted control or format character are refused', () => {
    const invalidAddress = fc
      .tuple(
        addressText,
        fc.nat(),
        fc.constantFrom('\0', '\r', '\n', '\t', '\x7f', '\x1b', '\u0085', '\u2028', '\u202e'),
      )
      .map(
        ([text, at, character]) =>
          `${text.slice(0, at % (text.length + 1))}${character}${text.slice(at % (text.length + 1))}`,
      );
    fc.assert(
      fc.property(invalidAddress, (text) => {
        expect(parseAddress(text)).toBeNull();
      }),
      { numRuns: 2000 },
    );
  });

  it('are read from the header by an independent parser with the same value as in the envelope', async () => {
    // postal-mime misreads quoted strings that contain both angle brackets and escapes. The header is correct for these
    // strings too.
    const readableAddress = addressText.filter((text) => !(/[<>]/.test(text) && text.includes('\\')));
    await fc.assert(
      fc.asyncProperty(readableAddress, readableAddress, async (from, to) => {
        const message = {
          id: '01890a5d-ac96-774b-bcce-b302099a8057',
          from,
          to,
          subject: 's',
          message: 'm',
          acceptedAt: 0,
        };
        const { data, envelopeFrom, envelopeTo } = compose(message);
        const parsedMessage = await PostalMime.parse(data);
        const headerFrom = parsedMessage.headers.find((header) => header.key === 'from')?.value;
        const headerTo = parsedMessage.headers.find((header) => header.key === 'to')?.value;
        expect(readAddress(headerFrom)).toBe(unquoteLocalPart(envelopeFrom));
        expect(readAddress(headerTo)).toBe(unquoteLocalPart(envelopeTo));
        expect([envelopeFrom, `<${envelopeFrom}>`]).toContain(headerFrom);
        expect([envelopeTo, `<${envelopeTo}>`]).toContain(headerTo);
      }),
      { numRuns: 1000 },
    );
  });
});

/** Returns the only address that postal-mime finds in a header. postal-mime removes the quotes of some local parts. */
function readAddress(header: string | undefined): string {
  const addresses = addressParser(header ?? '');
  expect(addresses).toHaveLength(1);
  return unquoteLocalPart(addresses[0]?.address ?? '');
}

/** Returns the address with the content of a quoted local part instead of the quoted string. */
function unquoteLocalPart(spec: string): string {
  const atIndex = spec.lastIndexOf('@');
  const localText = spec.slice(0, atIndex);
  if (!localText.startsWith('"')) return spec;
  // postal-mime trims white space at both ends of a quoted string.
  return `${localText.slice(1, -1).replace(/\\(.)/g, '$1').trim()}${spec.slice(atIndex)}`;
}
