import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { classifyEntry } from '../../../src/classify/classify.ts';
import type { HistoryEntry } from '../../../src/model/message.ts';
import {
  formatWebhookId,
  MESSAGE_EVENT_TYPES,
  parseWebhookId,
  type RecordedMessageEvent,
} from '../../../src/model/webhook.ts';
import {
  buildAccountData,
  buildDomainData,
  buildSuppressionData,
  buildWebhookDisabledData,
  buildWebhookPayload,
  createPayloadSchema,
} from '../../../src/model/webhook-payload.ts';

const MAX_PAYLOAD_BYTES = 20_000;
const ajv = new Ajv({ strict: false, validateFormats: false });

function createEvent(
  type: RecordedMessageEvent['type'],
  entry: Partial<HistoryEntry> = {},
  members: Partial<RecordedMessageEvent> = {},
): RecordedMessageEvent {
  return {
    ...{ kind: 'message', type, id: '019aaaaa-0000-7000-8000-000000000000', account: 'shop', to: 'bob@example.net' },
    ...{ from: 'shop@example.com', subject: 'Reset', sequence: 1, state: 'bounced', suppressed: true },
    entry: {
      at: 0,
      verb: type.slice('message.'.length),
      by: 'node',
      detail: null,
      failure: null,
      attempt: null,
      ...entry,
    },
    ...members,
  };
}

function buildPayload(event: RecordedMessageEvent) {
  return buildWebhookPayload(event, classifyEntry(event.entry));
}

test('the payload of every message event type satisfies its schema and is below 20 kB, even with the longest texts', () => {
  const longestText = '\u{1f600}'.repeat(2_000);
  const reply = { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: longestText } as const;
  const attempt = {
    outcome: { kind: 'bounced', reply, reason: 'recipient-unknown', suppress: true },
    ...{ startedAt: 0, tookMs: 1, remote: 'mx.example.net:25', transcript: ['C: QUIT'] },
  } as const;
  for (const type of MESSAGE_EVENT_TYPES) {
    for (const entry of [{}, { detail: longestText }, { detail: longestText, attempt }]) {
      const payload = buildPayload(createEvent(type, entry, { subject: longestText, to: longestText.slice(0, 320) }));
      const validate = ajv.compile(createPayloadSchema(type));
      expect(validate(payload), JSON.stringify(validate.errors)).toBe(true);
      expect(Buffer.byteLength(JSON.stringify(payload))).toBeLessThan(MAX_PAYLOAD_BYTES);
      expect(JSON.stringify(payload).isWellFormed()).toBe(true);
      expect(JSON.stringify(payload)).not.toContain('QUIT');
    }
  }
});

test('the payload of a bounce contains class, category, status and diagnostic of the reply or of the report, as `message show` does', () => {
  const reply = { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: 'no such user' } as const;
  const attempt = {
    outcome: { kind: 'bounced', reply, reason: 'recipient-unknown', suppress: true },
    ...{ startedAt: 0, tookMs: 1, remote: null, transcript: [] },
  } as const;
  const detail = '550 5.1.1 no such user';
  expect(buildPayload(createEvent('message.bounced', { attempt, detail }))).toEqual({
    type: 'message.bounced',
    timestamp: '1970-01-01T00:00:00.000Z',
    data: {
      ...{ id: '019aaaaa-0000-7000-8000-000000000000', account: 'shop', to: 'bob@example.net' },
      ...{ from: 'shop@example.com', subject: 'Reset', state: 'bounced', sequence: 1, route: 'default' },
      ...{ class: 'hard', category: 'mailbox-unknown', status: '5.1.1', diagnostic: detail, suppressed: true },
    },
  });
  const failure = {
    class: 'soft',
    category: 'mailbox-full',
    status: '4.2.2',
    diagnostic: '452 4.2.2 over quota',
  } as const;
  const report = { by: 'feedback:smtp', detail: '452 4.2.2 over quota (reported by mx.example.net)', failure };
  expect(buildPayload(createEvent('message.bounced', report)).data).toMatchObject(failure);
});

test('the payloads about domains, accounts, suppressions and endpoints satisfy their schemas and are below 20 kB', () => {
  const longValue = 'ü'.repeat(5_000);
  const check = {
    ...{
      purpose: 'dkim',
      type: 'TXT',
      name: 'a'.repeat(253),
      value: longValue,
      found: 'missing',
      seen: [longValue],
      detail: longValue,
    },
  } as const;
  const thresholds = { bounceRate: 0.1, complaintRate: 0.0015 };
  const webhook = { id: 1, url: 'https://example.com/', name: null, account: null };
  const samples = [
    ['domain.failing', buildDomainData({ name: 'example.com' }, 'shop', 'failing', Array(40).fill(check))],
    ['account.locked', buildAccountData('shop', longValue, { emails: 1, bounces: 2, complaints: 3 }, thresholds)],
    ['suppression.added', buildSuppressionData('*', { address: 'a@example.net', reason: 'manual', source: null })],
    ['webhook.disabled', buildWebhookDisabledData(webhook, 'gone')],
    ['webhook.test', { id: 'wh_1' }],
  ] as const;
  for (const [type, data] of samples) {
    const payload = buildWebhookPayload({ kind: 'resource', type, at: 0, data }, null);
    const validate = ajv.compile(createPayloadSchema(type));
    expect(validate(payload), JSON.stringify(validate.errors)).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(payload))).toBeLessThan(MAX_PAYLOAD_BYTES);
  }
});

test('an endpoint id is accepted only in its canonical form', () => {
  expect(parseWebhookId(formatWebhookId(7))).toBe(7);
  for (const text of ['', 'wh_', 'wh_0', 'wh_-1', 'wh_1.5', 'wh_01', 'wh_ 1', 'key_1', 'wh_2147483648', 'wh_1e3'])
    expect(parseWebhookId(text), text).toBeNull();
});
