/** Tests the findings of `postrider doctor` about notifications to operators. */
import { describe, expect, test } from 'vitest';
import { checkNotifications, type NotificationTargetFacts } from '../../../src/doctor/notifications.ts';
import type { StoredNotification } from '../../../src/model/notification.ts';
import { HTTPS_TARGET, MAIL_TARGET } from '../../rig/notifier.ts';

const NOW = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;
const DELIVERED_NOTIFICATION: StoredNotification = {
  ...{ id: 'ntf_1', target: HTTPS_TARGET.text, status: 'delivered', createdAt: NOW - MINUTE_MS, attempts: 1 },
  ...{ attemptedAt: NOW - MINUTE_MS, error: null, messageId: null },
};
const RETRIED_NOTIFICATION: StoredNotification = {
  ...DELIVERED_NOTIFICATION,
  id: 'ntf_2',
  status: 'pending',
  error: 'status 500',
};
const FAILED_NOTIFICATION: StoredNotification = { ...RETRIED_NOTIFICATION, id: 'ntf_3', status: 'failed' };
const NEW_NOTIFICATION: StoredNotification = {
  ...DELIVERED_NOTIFICATION,
  id: 'ntf_4',
  status: 'pending',
  attempts: 0,
  attemptedAt: null,
};

const createFacts = (change: Partial<NotificationTargetFacts> = {}): NotificationTargetFacts => ({
  ...{ target: HTTPS_TARGET, notifications: [DELIVERED_NOTIFICATION], messageState: null, isSuppressed: false },
  ...change,
});
const createMailFacts = (change: Partial<NotificationTargetFacts> = {}, attemptedAt = NOW - MINUTE_MS) =>
  createFacts({
    target: MAIL_TARGET,
    notifications: [{ ...DELIVERED_NOTIFICATION, attemptedAt, messageId: 'm-1' }],
    ...change,
  });
const check = (...targets: readonly NotificationTargetFacts[]) =>
  checkNotifications({ now: NOW, senderFault: null, targets });

test('without a target, one finding names the setting', () => {
  expect(check()).toMatchObject([{ check: 'notifications', result: 'ok' }]);
  expect(check()[0]?.detail).toContain('POSTRIDER_NOTIFY');
});

test('the finding is a warning if no target uses HTTPS, because a failure of the transport causes no notification by mail', () => {
  expect(check(createMailFacts())).toMatchObject([
    { check: 'notifications', result: 'warning', remedy: expect.stringContaining('https') },
    { check: 'notifications mailto:ops@example.com', result: 'ok' },
  ]);
});

test('the finding for a URL contains the origin of the URL, and not the path, which may contain a secret', () => {
  expect(check(createFacts())).toMatchObject([{ check: 'notifications https://hooks.example.com', result: 'ok' }]);
  expect(JSON.stringify(check(createFacts()))).not.toContain('/ops');
});

describe('the result of a target', () => {
  test.each([
    [
      'is ok before the first notification',
      createFacts({ notifications: [] }),
      'ok',
      'no notification has been delivered yet',
    ],
    ['is ok after a delivery', createFacts(), 'ok', 'was delivered'],
    [
      'is ok if an attempt succeeded after a failed notification',
      createFacts({ notifications: [DELIVERED_NOTIFICATION, FAILED_NOTIFICATION] }),
      'ok',
      '',
    ],
    [
      'is ok if there was no attempt yet to deliver the newest notification',
      createFacts({ notifications: [NEW_NOTIFICATION, DELIVERED_NOTIFICATION] }),
      'ok',
      '',
    ],
    [
      'is a warning if the last attempt failed and another attempt follows',
      createFacts({ notifications: [RETRIED_NOTIFICATION] }),
      'warning',
      'another attempt follows',
    ],
    [
      'is a warning if the last attempt failed and no attempt follows',
      createFacts({ notifications: [FAILED_NOTIFICATION, DELIVERED_NOTIFICATION] }),
      'warning',
      'no attempt follows',
    ],
    [
      'is a failure if the address is suppressed',
      createMailFacts({ isSuppressed: true }),
      'failure',
      'suppression list',
    ],
    ['is a warning if the message bounced', createMailFacts({ messageState: 'bounced' }), 'warning', 'bounced'],
    ['is ok if the message was delivered', createMailFacts({ messageState: 'delivered' }), 'ok', ''],
    ['is ok if the message has been queued for one minute', createMailFacts({ messageState: 'queued' }), 'ok', ''],
    [
      'is a warning if the message has been queued for one hour',
      createMailFacts({ messageState: 'queued' }, NOW - 60 * MINUTE_MS),
      'warning',
      'queued',
    ],
  ] as const)('%s', (_name, facts, result, detail) => {
    const finding = check(facts, createFacts({ target: { ...HTTPS_TARGET, text: 'https://other.example.com/' } }))[0];
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
      const findings = checkNotifications({ now: NOW, senderFault, targets: [createMailFacts(), createFacts()] });
      expect(findings.map((finding) => finding.result)).toEqual([result, 'ok']);
      expect(findings[0]).toMatchObject({ detail: senderFault.text, remedy: senderFault.remedy });
    },
  );
});
