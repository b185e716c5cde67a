/** Badges for the states of domains, DNS records and keys, and names for the purposes of records. */
import type { DomainDetails, DomainRecord } from '../../../src/operations/domain-details.ts';
import { StatusBadge, type Tone } from '../parts/status-badge';

type KeyState = DomainDetails['keys'][number]['state'];

const STATUS_TONES: Readonly<Record<DomainDetails['status'], Tone>> = {
  pending: 'warning',
  authenticated: 'success',
  failing: 'error',
};
const RECORD_STYLES: Readonly<Record<DomainRecord['found'], readonly [Tone, string]>> = {
  found: ['success', 'found'],
  missing: ['error', 'missing'],
  wrong: ['error', 'wrong'],
  unknown: ['neutral', 'not looked up'],
};
const KEY_STYLES: Readonly<Record<KeyState, readonly [Tone, string]>> = {
  active: ['info', 'active'],
  staged: ['warning', 'staged'],
  retiring: ['neutral', 'retiring'],
};

export const PURPOSE_LABELS: Readonly<Record<DomainRecord['purpose'], string>> = {
  dkim: 'DKIM',
  spf: 'SPF',
  dmarc: 'DMARC',
  'return-path': 'Return path',
  provider: 'Provider',
};

export function DomainBadge({ status }: { readonly status: DomainDetails['status'] }) {
  return <StatusBadge tone={STATUS_TONES[status]}>{status}</StatusBadge>;
}

export function RecordBadge({ found }: { readonly found: DomainRecord['found'] }) {
  const [tone, word] = RECORD_STYLES[found];
  return <StatusBadge tone={tone}>{word}</StatusBadge>;
}

export function KeyBadge({ state }: { readonly state: KeyState }) {
  const [tone, word] = KEY_STYLES[state];
  return <StatusBadge tone={tone}>{word}</StatusBadge>;
}

/** Returns text such as `3 of 4 found`. */
export function formatFoundRecords({ records }: Pick<DomainDetails, 'records'>): string {
  return `${records.filter(({ found }) => found === 'found').length} of ${records.length} found`;
}
