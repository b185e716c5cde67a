import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { ATTENTION_CODE_NAMES, ATTENTION_CODES, getAttentionChannel } from '../../../src/model/attention.ts';
import { buildNotificationData, NotificationPayload } from '../../../src/model/notification.ts';
import { NOTIFICATION_TYPE } from '../../../src/model/webhook.ts';
import { buildNotificationMail } from '../../../src/notifications/mail-text.ts';
import { createApiDocument } from '../../../src/operator/api-document.ts';
import { buildBody } from '../../../src/webhooks/lane.ts';
import { ROOT } from '../../house/source.ts';
import { NOTIFIER_START as AT, createAttention } from '../../rig/notifier.ts';

const NOTIFICATIONS_PAGE = readFileSync(join(ROOT, 'docs/notifications.md'), 'utf8');
const ajv = new Ajv({ strict: false, formats: { 'date-time': true } });

test('docs/notifications.md lists the codes with their targets and consequences, and no other codes', () => {
  const rows = [...NOTIFICATIONS_PAGE.matchAll(/^\| `([a-z-]+)` \| (all|HTTPS) \| (.*) \|$/gm)].map(
    ([, ...cells]) => cells,
  );
  const expected = ATTENTION_CODE_NAMES.filter((code) => getAttentionChannel(code) !== 'none').map((code) => {
    return [code, getAttentionChannel(code) === 'all' ? 'all' : 'HTTPS', ATTENTION_CODES[code].consequence];
  });
  expect(rows).toEqual(expected);
});

test('the documented example and the body of a notification match the schema in the OpenAPI document', () => {
  const isValid = ajv.compile(NotificationPayload);
  const [, example = ''] = /```json\n([\s\S]*?)```/.exec(NOTIFICATIONS_PAGE) ?? [];
  expect(isValid(JSON.parse(example)), JSON.stringify(isValid.errors)).toBe(true);
  const item = { ...createAttention('domain-failing', 'example.com'), beganAt: AT, endedAt: AT + 1 };
  const change = { at: AT, began: [{ ...item, endedAt: null }], ended: [item], ongoingCount: 1 };
  const event = {
    kind: 'resource',
    type: NOTIFICATION_TYPE,
    at: AT,
    data: buildNotificationData(change, null),
  } as const;
  const body: unknown = JSON.parse(buildBody(event));
  expect(isValid(body), JSON.stringify(isValid.errors)).toBe(true);
  expect(createApiDocument('1.0.0', '/api/v1')).toContain('"attention.changed"');
});

test('a mail has a subject of one line for any content of an item, and its text contains cause, consequence, remedy, command and page', () => {
  const text = `Account a is locked: \r\nBcc: x@example.com\0 ${'long '.repeat(100)}`;
  const item = { ...createAttention('account-locked', 'a'), text, beganAt: AT, endedAt: null };
  const mail = buildNotificationMail({ at: AT, began: [item], ended: [], ongoingCount: 1 }, 'https://mail.example.com');
  expect(mail.subject).toMatch(/^Postrider: Account a is locked: [^\p{Cc}]*$/u);
  expect(mail.subject.length).toBeLessThan(200);
  expect(mail.text).not.toContain('\r');
  for (const line of [
    '  Consequence: The keys of the account are refused, and its queued messages wait.',
    '  Remedy: Correct it.',
    '  Command: postrider account show a',
    '  Page: https://mail.example.com/overview',
  ])
    expect(mail.text.split('\n')).toContain(line);
});
