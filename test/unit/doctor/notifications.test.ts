/** Tests the findings of `postrider doctor` about notifications to operators. */
import { describe, expect, test } from 'vitest';
import { checkNotifications, type NotificationTargetFacts } from '../../../src/doctor/notifications.ts';
import type { StoredNotification } from '../../../src/model/notification.ts';
import { HTTPS_TARGET, MAIL_TARGET } from '../../rig/notifier.ts';

const NOW = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;
const DELIVERED: StoredNotification = {
  ...{ id: 'ntf_1', target: HTTPS_TARGET.text, status: 'delivered', createdAt: NOW - MINUTE_MS, attempts: 1 },
  ...{ attemptedAt: NOW - MINUTE_MS, error: null, messageId: null },
};
const RETRIED: StoredNotification = {
  ...DELIVERED,
  id: 'ntf_2',
  status: 'pending',
  error: 'status 500',
};
const FAILED: StoredNotification = { ...RETRIED, id: 'ntf_3', status: 'failed' };
const NEW: StoredNotification = {
  ...DELIVERED,
  id: 'ntf_4',
  status: 'pending',
  attempts: 0,
  attemptedAt: null,
};

const https = (change: Partial<NotificationTargetFacts> = {}): NotificationTargetFacts => ({
  ...{ target: HTTPS_TARGET, notifications: [DELIVERED], messageState: null, isSuppressed: false },
  ...change,
});
const mail = (change: Partial<NotificationTargetFacts> = {}, attemptedAt = NOW - MINUTE_MS) =>
  https({
    target: MAIL_TARGET,
    notifications: [{ ...DELIVERED, attemptedAt, messageId: 'm-1' }],
    ...change,
  });
const check = (...targets: readonly NotificationTargetFacts[]) =>
  checkNotifications({ now: NOW, senderFault: null, targets });

test('without a target, one finding names the setting', () => {
  expect(check()).toMatchObject([{ check: 'notifications', result: 'ok' }]);
  expect(check()[0]?.detail).toContain('POSTRIDER_NOTIFY');
});

test('the finding is a warning if no target uses HTTPS, because a failure of the transport causes no notification by mail', () => {
  expect(check(mail())).toMatchObject([
    { check: 'notifications', result: 'warning', remedy: expect.stringContaining('https') },
    { check: 'notifications mailto:ops@example.com', result: 'ok' },
  ]);
});

test('the finding for a URL contains the origin of the URL, and not the path, which may contain a secret', () => {
  expect(check(https())).toMatchObject([{ check: 'notifications https://hooks.example.com', result: 'ok' }]);
  expect(JSON.stringify(check(https()))).not.toContain('/ops');
});

describe('the result of a target', () => {
  test.each([
    [
      'is ok before the first notification',
      https({ notifications: [] }),
      'ok',
      'no notification has been delivered yet',
    ],
    ['is ok after a delivery', https(), 'ok', 'was delivered'],
    [
      'is ok if an attempt succeeded after a failed notification',
      https({ notifications: [DELIVERED, FAILED] }),
      'ok',
      '',
    ],
    [
      'is ok if there was no attempt yet to deliver the newest notification',
      https({ notifications: [NEW, DELIVERED] }),
      'ok',
      '',
    ],
    [
      'is a warning if the last attempt failed and another attempt follows',
      https({ notifications: [RETRIED] }),
      'warning',
      'another attempt follows',
    ],
    [
      'is a warning if the last attempt failed and no attempt follows',
      https({ notifications: [FAILED, DELIVERED] }),
      'warning',
      'no attempt follows',
    ],
    ['is a failure if the address is suppressed', mail({ isSuppressed: true }), 'failure', 'suppression list'],
    ['is a warning if the message bounced', mail({ messageState: 'bounced' }), 'warning', 'bounced'],
    ['is ok if the message was delivered', mail({ messageState: 'delivered' }), 'ok', ''],
    ['is ok if the message has been queued for one minute', mail({ messageState: 'queued' }), 'ok', ''],
    [
      'is a warning if the message has been queued for one hour',
      mail({ messageState: 'queued' }, NOW - 60 * MINUTE_MS),
      'warning',
      'queued',
    ],
  ] as const)('%s', (_name, facts, result, detail) => {
    const finding = check(facts, https({ target: { ...HTTPS_TARGET, text: 'https://other.example.com/' } }))[0];
    expect(finding).toMatchObject({ result, detail: expect.stringContaining(detail) });
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
      expect(findings.map((finding) => finding.result)).toEqual([result, 'ok']);
      expect(findings[0]).toMatchObject({ detail: senderFault.text, remedy: senderFault.remedy });
    },
  );
});
