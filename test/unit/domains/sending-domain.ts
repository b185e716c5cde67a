import type { DkimKey, RecordCheck, SendingDomain } from '../../../src/model/domain.ts';
import { getDkimRecordName } from '../../../src/model/domain.ts';
import type { LeasedMessage } from '../../../src/model/message.ts';

export function createDkimKey(changes: Partial<DkimKey> = {}): DkimKey {
  return {
    selector: 'pr20261121aaaaa',
    algorithm: 'rsa',
    publicKey: 'MIIB',
    sealed: 'c2VhbGVk',
    state: 'active',
    createdAt: 0,
    activatedAt: 0,
    retireAt: null,
    ...changes,
  };
}

export function createSendingDomain(changes: Partial<SendingDomain> = {}): SendingDomain {
  return {
    id: 1,
    revision: 1,
    accountId: 1,
    name: 'example.org',
    subdomains: false,
    returnPath: null,
    status: 'pending',
    createdAt: 0,
    checkedAt: null,
    authenticatedAt: null,
    failingSince: null,
    published: [],
    keys: [createDkimKey(), createDkimKey({ selector: 'pr20261121aaaae', algorithm: 'ed25519' })],
    ...changes,
  };
}

export function createDkimCheck(domain: SendingDomain, selector: string, found: RecordCheck['found']): RecordCheck {
  const name = getDkimRecordName(domain.name, selector);
  return { purpose: 'dkim', type: 'TXT', name, value: 'v=DKIM1; p=MIIB', found, seen: [], detail: `is ${found}` };
}

export function createDkimChecks(domain: SendingDomain, found: RecordCheck['found']): readonly RecordCheck[] {
  return domain.keys.map(({ selector }) => createDkimCheck(domain, selector, found));
}

export const LEASED_MESSAGE: LeasedMessage = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  accountId: 1,
  to: 'ada@example.com',
  from: 'shop@example.org',
  subject: 'Your order',
  message: 'Thank you.',
  acceptedAt: 0,
  heldMs: 0,
  attempts: 1,
  lease: { owner: 'node', until: 1 },
};
