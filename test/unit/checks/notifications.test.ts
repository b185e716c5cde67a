import { describe, expect, test } from 'vitest';
import { checkNotifications, type NotificationTargetFacts } from '../../../src/checks/outbound.ts';
import type { StoredDelivery } from '../../../src/model/webhook.ts';
import { HTTPS_TARGET, MAIL_TARGET } from '../../rig/notifier.ts';

const NOW = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;
const ATTEMPT = { at: NOW - MINUTE_MS, durationMs: 1, status: 200, error: null, body: '' };
const DELIVERED: StoredDelivery = {
  ...{ id: 'n-1', webhookId: -1, status: 'delivered', createdAt: NOW - MINUTE_MS, attempts: [ATTEMPT] },
  ...{ messageId: null, nextAttemptAt: null },
};
const RETRIED: StoredDelivery = {
  ...{ ...DELIVERED, id: 'n-2', status: 'pending', attempts: [{ ...ATTEMPT, status: 500, error: 'status 500' }] },
};
const FAILED: StoredDelivery = { ...RETRIED, id: 'n-3', status: 'failed' };
const NEW: StoredDelivery = { ...DELIVERED, id: 'n-4', status: 'pending', attempts: [] };

const https = (change: Partial<NotificationTargetFacts> = {}): NotificationTargetFacts => ({
  ...{ target: HTTPS_TARGET, notifications: [DELIVERED], messageState: null, isSuppressed: false },
  ...change,
});
const mail = (change: Partial<NotificationTargetFacts> = {}, at = NOW - MINUTE_MS) =>
  https({
    target: MAIL_TARGET,
    notifications: [{ ...DELIVERED, attempts: [{ ...ATTEMPT, at }], messageId: 'm-1' }],
    ...change,
  });
const check = (...targets: readonly NotificationTargetFacts[]) =>
  checkNotifications({ now: NOW, senderFault: null, targets });

test('the finding is a warning if no target uses HTTPS, because a failure of the transport causes no notification by mail', () => {
  expect(check(mail())).toMatchObject([
    { code: 'notifications', subject: null, level: 'warning', remedy: expect.stringContaining('https') },
    { subject: 'mailto:ops@example.com', level: 'ok' },
  ]);
});

test('the finding for a URL contains the origin of the URL, and not the path, which may contain a secret', () => {
  expect(check(https())).toMatchObject([{ subject: 'https://hooks.example.com', level: 'ok' }]);
  expect(JSON.stringify(check(https()))).not.toContain('/ops');
});

describe('the result of a target', () => {
  test.each([
    ['is ok before the first notification', https({ notifications: [] }), 'ok'],
    ['is ok after a delivery', https(), 'ok'],
    ['is ok if an attempt succeeded after a failure', https({ notifications: [DELIVERED, FAILED] }), 'ok'],
    ['is ok before the first attempt for the newest', https({ notifications: [NEW, DELIVERED] }), 'ok'],
    ['is a warning if another attempt follows a failed one', https({ notifications: [RETRIED] }), 'warning'],
    ['is a warning if the last attempt failed', https({ notifications: [FAILED, DELIVERED] }), 'warning'],
    ['is a failure if the address is suppressed', mail({ isSuppressed: true }), 'failure'],
    ['is a warning if the message bounced', mail({ messageState: 'bounced' }), 'warning'],
    ['is ok if the message was delivered', mail({ messageState: 'delivered' }), 'ok'],
    ['is ok if the message is queued since one minute', mail({ messageState: 'queued' }), 'ok'],
    ['is a warning after one hour', mail({ messageState: 'queued' }, NOW - 60 * MINUTE_MS), 'warning'],
  ] as const)('%s', (_name, facts, result) => {
    const finding = check(facts, https({ target: { ...HTTPS_TARGET, text: 'https://other.example.com/' } }))[0];
    expect(finding?.level).toBe(result);
    expect(finding?.remedy === null).toBe(result === 'ok');
  });

  test.each([
    ['refused', 'failure'],
    ['waiting', 'warning'],
  ] as const)(
    'depends on a fault of the sender (%s) if the target is a mail address, and not if the target is a URL',
    (kind, result) => {
      const senderFault = { kind, text: 'the sender has a fault', remedy: 'Correct the sender' };
      const findings = checkNotifications({ now: NOW, senderFault, targets: [mail(), https()] });
      expect(findings.map((finding) => finding.level)).toEqual([result, 'ok']);
      expect(findings[0]).toMatchObject({ text: senderFault.text, remedy: senderFault.remedy });
    },
  );
});
