/**
 * One successful call of each operation, by the name of the operation, for every-operation.test.ts: the input, the
 * operations that precede the call, and the audit log entries that the call writes.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount, lockAccount } from '../../../src/operations/accounts.ts';
import { addDomain, showDomain } from '../../../src/operations/domains.ts';
import { addInboxRule } from '../../../src/operations/inbox-rules.ts';
import { createKey } from '../../../src/operations/keys.ts';
import type { Operation } from '../../../src/operations/operation.ts';
import { addSuppression } from '../../../src/operations/suppressions.ts';
import { createToken } from '../../../src/operations/tokens.ts';
import { testWebhook } from '../../../src/operations/webhook-deliveries.ts';
import { createWebhook, disableWebhook } from '../../../src/operations/webhooks.ts';
import type { FakeDns } from '../../rig/dns.ts';
import { createMessage } from '../../rig/messages.ts';
import type { OperationRig } from './operation-rig.ts';

export interface Example {
  readonly input: Readonly<Record<string, unknown>>;
  /** The file of an upload operation. */
  readonly file?: string;
  /** The operations that are performed before the operation of the example. */
  readonly precedingOperations?: readonly (readonly [Operation, Readonly<Record<string, unknown>>])[];
  /** Creates the state that the operation needs and that the preceding operations do not create. */
  readonly prepare?: (rig: OperationRig, dns: FakeDns) => Promise<void>;
  /** Action and target of each audit log entry that the operation writes; omitted if it changes nothing. */
  readonly audit?: readonly string[];
}

/** A queued message to ada@example.com. */
const MESSAGE = createMessage({ acceptedAt: Date.UTC(2029, 11, 31), to: 'ada@example.com' });
const acceptMessage = async ({ store }: OperationRig): Promise<void> => {
  await store.accept([MESSAGE]);
};
/** Stores a feedback report that names no message. */
const recordReport = async ({ store }: OperationRig): Promise<void> => {
  await store.recordFeedback([
    {
      messageRef: { reference: 'nowhere' },
      events: [{ kind: 'unknown', reason: 'there is no report in it' }],
      source: 'smtp',
      at: Date.UTC(2030, 0, 1),
      digest: '0'.repeat(64),
      summary: 'unknown sender',
      raw: Buffer.from('hello'),
      isFinal: true,
    },
  ]);
};
/** Stores a captured message in the same way as the transport `capture:`. */
const captureMessage = async ({ folder }: Pick<OperationRig, 'folder'>): Promise<void> => {
  mkdirSync(join(folder, 'inbox/new'), { recursive: true });
  const lines = ['Return-Path: <shop@example.org>', 'Delivered-To: ada@example.com', 'Subject: Hello', '', 'Hello', ''];
  writeFileSync(join(folder, `inbox/new/${MESSAGE.id}.eml`), lines.join('\r\n'));
};
const ADDRESS = { account: 'acme', address: 'ada@example.com' };
const RULE = { match: 'Ada@example.com', code: 550, enhanced: '5.1.1', times: 2 };
const DOMAIN = { account: 'acme', domain: 'example.org' };
/** An address that IANA lists as globally reachable. The tests of operations send nothing to it. */
const ENDPOINT = { url: 'https://192.31.196.7/webhooks' };

export const EXAMPLES: Readonly<Record<string, Example>> = {
  'account.create': { input: { name: 'shop', rate: '10/1h' }, audit: ['account.create shop'] },
  'account.set': { input: { account: 'acme', volume: 7 }, audit: ['account.set acme'] },
  'account.list': { input: {}, precedingOperations: [[createAccount, { name: 'shop' }]] },
  'account.show': { input: { account: 'acme' } },
  'account.lock': { input: { account: 'acme', reason: 'unpaid' }, audit: ['account.lock acme'] },
  'account.unlock': {
    input: { account: 'acme' },
    precedingOperations: [[lockAccount, { account: 'acme', reason: 'unpaid' }]],
    audit: ['account.unlock acme'],
  },
  'key.create': { input: { account: 'acme', name: 'web' }, audit: ['key.create acme'] },
  'key.import': {
    input: { account: 'acme', key: `pr_${'k'.repeat(43)}`, name: 'web' },
    audit: ['key.import acme'],
  },
  'key.list': { input: { account: 'acme' }, precedingOperations: [[createKey, { account: 'acme' }]] },
  'key.rotate': {
    input: { key: 'key_1' },
    precedingOperations: [[createKey, { account: 'acme' }]],
    audit: ['key.rotate key_1'],
  },
  'key.revoke': {
    input: { key: 'key_1' },
    precedingOperations: [[createKey, { account: 'acme' }]],
    audit: ['key.revoke key_1'],
  },
  'domain.add': { input: DOMAIN, audit: ['domain.add example.org'] },
  'domain.list': { input: {}, precedingOperations: [[addDomain, DOMAIN]] },
  'domain.show': { input: { domain: 'example.org' }, precedingOperations: [[addDomain, DOMAIN]] },
  'domain.set': {
    input: { domain: 'example.org', subdomains: true },
    precedingOperations: [[addDomain, DOMAIN]],
    audit: ['domain.set example.org'],
  },
  // A check with an unchanged result writes no entry.
  'domain.verify': {
    input: { domain: 'example.org' },
    precedingOperations: [[addDomain, DOMAIN]],
    async prepare(rig, { zone }) {
      const { records } = await rig.performSuccessfully(showDomain, { domain: 'example.org' });
      for (const { name, value } of records) zone[name] = { TXT: [value] };
    },
    audit: ['domain.update example.org'],
  },
  'domain.rotate': {
    input: { domain: 'example.org' },
    precedingOperations: [[addDomain, DOMAIN]],
    audit: ['domain.update example.org'],
  },
  'domain.remove': {
    input: { domain: 'example.org' },
    precedingOperations: [[addDomain, DOMAIN]],
    audit: ['domain.remove example.org'],
  },
  'suppression.add': { input: ADDRESS, audit: ['suppression.add acme'] },
  'suppression.remove': {
    input: ADDRESS,
    precedingOperations: [[addSuppression, ADDRESS]],
    audit: ['suppression.remove acme'],
  },
  'suppression.show': { input: { address: ADDRESS.address }, precedingOperations: [[addSuppression, ADDRESS]] },
  'suppression.search': { input: { account: 'acme', search: 'ada' }, precedingOperations: [[addSuppression, ADDRESS]] },
  'suppression.import': {
    input: { account: 'acme' },
    file: 'bob@example.com\nnonsense\n',
    audit: ['suppression.import acme'],
  },
  'suppression.export': { input: { account: 'acme' }, precedingOperations: [[addSuppression, ADDRESS]] },
  'webhook.create': { input: { ...ENDPOINT, name: 'shop', events: 'message.bounced' }, audit: ['webhook.create wh_1'] },
  'webhook.list': { input: {}, precedingOperations: [[createWebhook, ENDPOINT]] },
  'webhook.statistics': { input: {}, precedingOperations: [[createWebhook, ENDPOINT]] },
  'webhook.show': { input: { id: 'wh_1' }, precedingOperations: [[createWebhook, ENDPOINT]] },
  'webhook.update': {
    input: { id: 'wh_1', events: 'all' },
    precedingOperations: [[createWebhook, ENDPOINT]],
    audit: ['webhook.update wh_1'],
  },
  'webhook.delete': {
    input: { id: 'wh_1' },
    precedingOperations: [[createWebhook, ENDPOINT]],
    audit: ['webhook.delete wh_1'],
  },
  'webhook.enable': {
    input: { id: 'wh_1' },
    precedingOperations: [
      [createWebhook, ENDPOINT],
      [disableWebhook, { id: 'wh_1' }],
    ],
    audit: ['webhook.enable wh_1'],
  },
  'webhook.disable': {
    input: { id: 'wh_1' },
    precedingOperations: [[createWebhook, ENDPOINT]],
    audit: ['webhook.disable wh_1'],
  },
  'webhook.rotate': {
    input: { id: 'wh_1', grace: '1h' },
    precedingOperations: [[createWebhook, ENDPOINT]],
    audit: ['webhook.rotate wh_1'],
  },
  'webhook.test': {
    input: { id: 'wh_1' },
    precedingOperations: [[createWebhook, ENDPOINT]],
    audit: ['webhook.test wh_1'],
  },
  'webhook.deliveries': {
    input: { id: 'wh_1' },
    precedingOperations: [
      [createWebhook, ENDPOINT],
      [testWebhook, { id: 'wh_1' }],
    ],
  },
  'webhook.replay': {
    input: { id: 'wh_1', since: '1h' },
    precedingOperations: [
      [createWebhook, ENDPOINT],
      [testWebhook, { id: 'wh_1' }],
    ],
    audit: ['webhook.replay wh_1'],
  },
  'token.create': { input: { name: 'ci' }, audit: ['token.create ci'] },
  'token.list': { input: {}, precedingOperations: [[createToken, { name: 'ci' }]] },
  'token.revoke': {
    input: { id: 1 },
    precedingOperations: [[createToken, { name: 'ci' }]],
    audit: ['token.revoke ci'],
  },
  'message.list': { input: { to: MESSAGE.to }, prepare: acceptMessage },
  'message.search': { input: { q: 'ada', waitReason: true }, prepare: acceptMessage },
  'message.count': { input: { state: 'queued' }, prepare: acceptMessage },
  'message.change': {
    input: { action: 'cancel', state: 'queued' },
    prepare: acceptMessage,
    audit: ['message.change state=queued'],
  },
  'message.test': {
    input: { account: 'acme', to: 'ada@example.com', message: 'one\ntwo' },
    audit: ['key.create acme', 'key.revoke key_1'],
  },
  'message.export': { input: { state: 'queued' }, prepare: acceptMessage },
  'message.show': { input: { id: MESSAGE.id }, prepare: acceptMessage },
  'message.source': { input: { id: MESSAGE.id }, prepare: acceptMessage },
  'message.explain': { input: { id: MESSAGE.id }, prepare: acceptMessage },
  'message.retry': { input: { id: MESSAGE.id }, prepare: acceptMessage, audit: [`message.retry ${MESSAGE.id}`] },
  'message.resend': {
    input: { id: MESSAGE.id },
    prepare: async (rig) => {
      await acceptMessage(rig);
      await rig.store.cancelMessage(MESSAGE.id, MESSAGE.acceptedAt);
    },
    audit: [`message.resend ${MESSAGE.id}`],
  },
  'message.cancel': { input: { id: MESSAGE.id }, prepare: acceptMessage, audit: [`message.cancel ${MESSAGE.id}`] },
  'feedback.list': { input: {}, prepare: recordReport },
  'feedback.show': { input: { id: 1 }, prepare: recordReport },
  'overview.show': { input: { range: '1h' }, prepare: acceptMessage },
  'deliverability.show': { input: { by: 'recipient-domain', range: '1h' } },
  'setup.show': { input: {} },
  'provider.list': { input: {} },
  'doctor.run': { input: {} },
  // The transport of the example receives no feedback, which is a finding.
  'doctor.loop': { input: { within: '1s' } },
  'config.show': { input: {} },
  'inbox.list': { input: {}, prepare: captureMessage },
  'inbox.show': { input: { id: MESSAGE.id }, prepare: captureMessage },
  'inbox.add-rule': { input: RULE, audit: ['inbox.add-rule ada@example.com'] },
  'inbox.list-rules': { input: {}, precedingOperations: [[addInboxRule, RULE]] },
  'inbox.remove-rule': {
    input: { id: 1 },
    precedingOperations: [[addInboxRule, RULE]],
    audit: ['inbox.remove-rule ada@example.com'],
  },
  'audit.list': { input: {}, precedingOperations: [[createToken, { name: 'ci' }]] },
};
