import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatAddrSpec, parseAddress, toCanonicalAddress } from '../../../src/model/address.ts';
import { selectCaseCount } from '../../rig/sample.ts';
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
      { numRuns: selectCaseCount(100, 2_000) },
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
      { numRuns: selectCaseCount(100, 2_000) },
    );
  });
});
