/** States of domains and of their records, in one word each. */
import type { DomainDetails, DomainRecord } from '../../../src/operations/domains/schemas.ts';
import { Mark, type Tone } from '../parts/mark';

type KeyState = DomainDetails['keys'][number]['state'];

const STATUS: Readonly<Record<DomainDetails['status'], Tone>> = {
  pending: 'waiting',
  authenticated: 'good',
  failing: 'bad',
};
const FOUND: Readonly<Record<DomainRecord['found'], readonly [Tone, string]>> = {
  found: ['good', 'found'],
  missing: ['bad', 'missing'],
  wrong: ['bad', 'wrong'],
  unknown: ['quiet', 'not looked up'],
};
const KEY: Readonly<Record<KeyState, readonly [Tone, string]>> = {
  active: ['news', 'signs'],
  staged: ['waiting', 'staged'],
  retiring: ['quiet', 'retiring'],
};

export function DomainMark({ status }: { readonly status: DomainDetails['status'] }) {
  return <Mark tone={STATUS[status]}>{status}</Mark>;
}

export function FoundMark({ found }: { readonly found: DomainRecord['found'] }) {
  const [tone, word] = FOUND[found];
  return <Mark tone={tone}>{word}</Mark>;
}

export function KeyMark({ state }: { readonly state: KeyState }) {
  const [tone, word] = KEY[state];
  return <Mark tone={tone}>{word}</Mark>;
}

/** `3 of 4 found`. */
export function foundText({ records }: Pick<DomainDetails, 'records'>): string {
  return `${records.filter(({ found }) => found === 'found').length} of ${records.length} found`;
}
