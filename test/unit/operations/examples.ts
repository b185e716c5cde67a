/**
 * One successful call of every operation, by its name, for walk.test.ts: with what, after what, and which audit log entries it
 * writes. A new operation gets its line here.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount, lockAccount } from '../../../src/operations/accounts.ts';
import { addDomain, showDomain } from '../../../src/operations/domains.ts';
import { createKey } from '../../../src/operations/keys.ts';
import type { Operation } from '../../../src/operations/operation.ts';
import { addSuppression } from '../../../src/operations/suppressions.ts';
import { createToken } from '../../../src/operations/tokens.ts';
import type { FakeDns } from '../../rig/dns.ts';
import { newMessage } from '../../rig/messages.ts';
import type { OperationRig } from './operation-rig.ts';

export interface Example {
  readonly given: Readonly<Record<string, unknown>>;
  /** The file, of an operation that takes one. */
  readonly file?: string;
  /** Operations performed before it. */
  readonly after?: readonly (readonly [Operation, Readonly<Record<string, unknown>>])[];
  /** Whatever else there must be before it. */
  readonly prepare?: (rig: OperationRig, dns: FakeDns) => Promise<void>;
  /** Action and subject of each entry that it writes; none where it changes nothing. */
  readonly audit?: readonly string[];
}

/** A queued message to ada@example.com. */
const MESSAGE = newMessage({ acceptedAt: Date.UTC(2029, 11, 31), to: 'ada@example.com' });
const accepted = async ({ store }: OperationRig): Promise<void> => {
  await store.accept([MESSAGE]);
};
/** A report that is about nothing, which is kept. */
const reported = async ({ store }: OperationRig): Promise<void> => {
  await store.recordFeedback([
    {
      messageRef: { reference: 'nowhere' },
      events: [{ kind: 'unknown', reason: 'there is no report in it' }],
      source: 'smtp',
      at: Date.UTC(2030, 0, 1),
      digest: '0'.repeat(64),
      summary: 'from nobody',
      raw: Buffer.from('hello'),
      isFinal: true,
    },
  ]);
};
/** A captured message, as `capture:` keeps it. */
const captured = async ({ folder }: Pick<OperationRig, 'folder'>): Promise<void> => {
  mkdirSync(join(folder, 'inbox/new'), { recursive: true });
  const lines = ['Return-Path: <shop@example.org>', 'Delivered-To: ada@example.com', 'Subject: Hello', '', 'Hello', ''];
  writeFileSync(join(folder, `inbox/new/${MESSAGE.id}.eml`), lines.join('\r\n'));
};
const ADDRESS = { account: 'acme', address: 'ada@example.com' };
const DOMAIN = { account: 'acme', domain: 'example.org' };

export const EXAMPLES: Readonly<Record<string, Example>> = {
  'account.create': { given: { name: 'shop', rate: '10/1h' }, audit: ['account.create shop'] },
  'account.set': { given: { account: 'acme', volume: 7 }, audit: ['account.set acme'] },
  'account.list': { given: {}, after: [[createAccount, { name: 'shop' }]] },
  'account.show': { given: { account: 'acme' } },
  'account.lock': { given: { account: 'acme', reason: 'unpaid' }, audit: ['account.lock acme'] },
  'account.unlock': {
    given: { account: 'acme' },
    after: [[lockAccount, { account: 'acme', reason: 'unpaid' }]],
    audit: ['account.unlock acme'],
  },
  'key.create': { given: { account: 'acme', name: 'web' }, audit: ['key.create acme'] },
  'key.list': { given: { account: 'acme' }, after: [[createKey, { account: 'acme' }]] },
  'key.rotate': { given: { key: 'key_1' }, after: [[createKey, { account: 'acme' }]], audit: ['key.rotate key_1'] },
  'key.revoke': { given: { key: 'key_1' }, after: [[createKey, { account: 'acme' }]], audit: ['key.revoke key_1'] },
  'domain.add': { given: DOMAIN, audit: ['domain.add example.org'] },
  'domain.list': { given: {}, after: [[addDomain, DOMAIN]] },
  'domain.show': { given: { domain: 'example.org' }, after: [[addDomain, DOMAIN]] },
  'domain.set': {
    given: { domain: 'example.org', subdomains: true },
    after: [[addDomain, DOMAIN]],
    audit: ['domain.set example.org'],
  },
  // A check that finds what the last one found is no change.
  'domain.verify': {
    given: { domain: 'example.org' },
    after: [[addDomain, DOMAIN]],
    async prepare(rig, { zone }) {
      const { records } = await rig.performOk(showDomain, { domain: 'example.org' });
      for (const { name, value } of records) zone[name] = { TXT: [value] };
    },
    audit: ['domain.update example.org'],
  },
  'domain.rotate': {
    given: { domain: 'example.org' },
    after: [[addDomain, DOMAIN]],
    audit: ['domain.update example.org'],
  },
  'domain.remove': {
    given: { domain: 'example.org' },
    after: [[addDomain, DOMAIN]],
    audit: ['domain.remove example.org'],
  },
  'suppression.add': { given: ADDRESS, audit: ['suppression.add acme'] },
  'suppression.remove': { given: ADDRESS, after: [[addSuppression, ADDRESS]], audit: ['suppression.remove acme'] },
  'suppression.show': { given: { address: ADDRESS.address }, after: [[addSuppression, ADDRESS]] },
  'suppression.search': { given: { account: 'acme', search: 'ada' }, after: [[addSuppression, ADDRESS]] },
  'suppression.import': {
    given: { account: 'acme' },
    file: 'bob@example.com\nnonsense\n',
    audit: ['suppression.import acme'],
  },
  'suppression.export': { given: { account: 'acme' }, after: [[addSuppression, ADDRESS]] },
  'token.create': { given: { name: 'ci' }, audit: ['token.create ci'] },
  'token.list': { given: {}, after: [[createToken, { name: 'ci' }]] },
  'token.revoke': { given: { id: 1 }, after: [[createToken, { name: 'ci' }]], audit: ['token.revoke ci'] },
  'message.list': { given: { to: MESSAGE.to }, prepare: accepted },
  'message.search': { given: { q: 'ada', waitReason: true }, prepare: accepted },
  'message.show': { given: { id: MESSAGE.id }, prepare: accepted },
  'message.explain': { given: { id: MESSAGE.id }, prepare: accepted },
  'message.retry': { given: { id: MESSAGE.id }, prepare: accepted, audit: [`message.retry ${MESSAGE.id}`] },
  'message.cancel': { given: { id: MESSAGE.id }, prepare: accepted, audit: [`message.cancel ${MESSAGE.id}`] },
  'feedback.list': { given: {}, prepare: reported },
  'feedback.show': { given: { id: 1 }, prepare: reported },
  'overview.show': { given: { range: '1h' }, prepare: accepted },
  'doctor.run': { given: {} },
  // Nothing comes back from the transport of the example, which is a finding.
  'doctor.loop': { given: { within: '1s' } },
  'config.show': { given: {} },
  'inbox.list': { given: {}, prepare: captured },
  'inbox.show': { given: { id: MESSAGE.id }, prepare: captured },
  'audit.list': { given: {}, after: [[createToken, { name: 'ci' }]] },
};
