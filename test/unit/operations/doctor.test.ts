import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runDoctor, testFeedbackLoop } from '../../../src/operations/doctor.ts';
import { perform } from '../../../src/operations/operation.ts';
import { addSuppression } from '../../../src/operations/suppressions.ts';
import { StoreError } from '../../../src/store/error.ts';
import { createErrorAnswer } from '../../rig/ses-fake.ts';
import { startSmtpServer } from '../../rig/smtp-server.ts';
import { createOperationRig, startSes } from './operation-rig.ts';

describe('doctor', () => {
  test('returns a finding for each check, changes nothing and reports its progress', async () => {
    const rig = await createOperationRig();
    const lines: string[] = [];
    const context = { ...rig.context, showProgress: (line: string) => void lines.push(line) };
    const performResult = await perform(runDoctor, {}, context);
    const findings = await rig.performSuccessfully(runDoctor, {});
    expect(performResult).toMatchObject({ ok: true, warnings: [] });
    expect(findings.map(({ check }) => check)).toEqual([
      'database',
      'disk space',
      'clock',
      'transport',
      'notifications',
      'certificate',
      'host name',
      'return path',
    ]);
    expect(lines[0]).toBe('0 checked; database …');
    expect(await rig.listAudit()).toEqual([]);
    expect(existsSync(join(rig.folder, 'secret'))).toBe(false);
  });

  test('a missing sending domain is a finding if the sender of a message must be authenticated', async () => {
    const relay = await startSmtpServer();
    onTestFinished(() => relay.close());
    const settings = { POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}` };
    const findDomainFinding = async (changes: Readonly<Record<string, string>>) => {
      const rig = await createOperationRig({ ...settings, ...changes });
      return (await rig.performSuccessfully(runDoctor, {})).find(({ check }) => check === 'domain');
    };
    expect(await findDomainFinding({})).toMatchObject({
      result: 'warning',
      detail: 'there is no sending domain: messages of every sender are refused',
      remedy: expect.stringContaining('postrider domain add'),
    });
    expect(await findDomainFinding({ POSTRIDER_SENDERS: 'any' })).toBeUndefined();
  });

  test('a store that does not open and a relay that does not answer are findings', async () => {
    const relay = await startSmtpServer();
    await relay.close();
    const rig = await createOperationRig({ POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}` });
    const { installation } = rig.context;
    const brokenParts = {
      ...rig.context,
      installation: { ...installation, withStore: () => Promise.reject(new StoreError('the disk is missing')) },
    };
    const performResult = await perform(runDoctor, {}, brokenParts);
    const failures = (performResult.ok ? performResult.value : []).filter(({ result }) => result === 'failure');
    expect(failures).toEqual([
      { check: 'database', result: 'failure', detail: 'the disk is missing', remedy: expect.any(String) },
      { check: 'transport', result: 'failure', detail: expect.any(String), remedy: expect.any(String) },
    ]);
  });

  test('each route is tested', async () => {
    const relay = await startSmtpServer();
    onTestFinished(() => relay.close());
    const closed = await startSmtpServer();
    await closed.close();
    const rig = await createOperationRig({
      POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}`,
      POSTRIDER_ROUTE_BACKUP: `smtp://127.0.0.1:${closed.port}`,
    });
    const findings = await rig.performSuccessfully(runDoctor, {});
    expect(findings.filter(({ check }) => check.startsWith('transport'))).toMatchObject([
      { check: 'transport default', result: 'ok' },
      { check: 'transport backup', result: 'failure', remedy: expect.stringContaining('POSTRIDER_ROUTE_BACKUP') },
    ]);
  });

  test('with Amazon SES, the suppression lists are compared', async () => {
    const ses = await startSes();
    const rig = await createOperationRig({ POSTRIDER_TRANSPORT: `ses://eu-west-1?endpoint=${ses.endpoint}` });
    for (const address of ['both@example.com', 'here@example.com'])
      await rig.performSuccessfully(addSuppression, { account: 'acme', address, reason: 'bounce' });
    ses.suppressionReasons.set('both@example.com', 'BOUNCE').set('there@example.com', 'COMPLAINT');
    const finding = (await rig.performSuccessfully(runDoctor, {})).find(({ check }) => check === 'suppression lists');
    expect(finding).toMatchObject({
      result: 'warning',
      detail: expect.stringMatching(/SES: there@example\.com; 1 .+ Postrider: here@example\.com \(acme\)$/),
    });
    ses.suppressionList = createErrorAnswer(403, 'AccessDeniedException', 'no');
    expect(await rig.performSuccessfully(runDoctor, {})).toContainEqual(
      expect.objectContaining({
        check: 'suppression lists',
        remedy: expect.stringContaining('ses:ListSuppressedDestinations'),
      }),
    );
  });
});

describe('the feedback test', () => {
  test('returns a finding for a transport or an account without feedback', async () => {
    const rig = await createOperationRig();
    const [capturedFinding] = await rig.performSuccessfully(testFeedbackLoop, {});
    expect(capturedFinding).toMatchObject({ check: 'loop', result: 'failure' });
    const relayRig = await createOperationRig({
      POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1',
      POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
      POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:2525',
    });
    expect(await relayRig.performSuccessfully(testFeedbackLoop, { account: 'unknown' })).toMatchObject([
      { detail: expect.stringContaining('there is no account "unknown"') },
    ]);
    expect(await relayRig.performSuccessfully(testFeedbackLoop, {})).toMatchObject([
      { detail: 'no account has an authenticated domain to send from' },
    ]);
  });
});
