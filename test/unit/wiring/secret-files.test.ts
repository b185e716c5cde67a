import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TransportSetting } from '../../../src/config/settings.ts';
import { watchSecretFiles } from '../../../src/wiring/secret-files.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';

const INTERVAL_MS = 5_000;

/** Watches one file with the given content. `change` replaces the content and waits until a change is detected. */
function watchOneFile(name: string, content: string, restartReason: string | null = null) {
  const path = join(createTemporaryFolder(), 'value');
  writeFileSync(path, content);
  const clock = createVirtualClock(0);
  const appliedTransports: TransportSetting[] = [];
  const appliedRoutes: string[] = [];
  const secrets: unknown[] = [];
  const faults: (readonly [string, string | null])[] = [];
  const lines: string[] = [];
  const stop = watchSecretFiles({
    files: [{ name, path }],
    clock,
    intervalMs: INTERVAL_MS,
    applyTransport: (route, setting) => {
      appliedRoutes.push(route);
      if (restartReason === null) appliedTransports.push(setting);
      return restartReason;
    },
    applyEventSecrets: (provider, texts) => {
      secrets.push([provider, texts]);
      return null;
    },
    applyNotifySecrets: (texts) => void secrets.push(['notify', texts]),
    recordRouteFault: (route, fault) => void faults.push([route, fault]),
    warn: (line) => void lines.push(line),
  });
  const waitForChecks = () => clock.advance(3 * INTERVAL_MS);
  const change = async (text: string) => {
    writeFileSync(path, text);
    await waitForChecks();
  };
  return { path, applied: appliedTransports, appliedRoutes, faults, secrets, lines, stop, waitForChecks, change };
}

test('a changed transport is applied once, and nothing is applied without a change', async () => {
  const { applied, lines, waitForChecks, change, stop } = watchOneFile(
    'POSTRIDER_TRANSPORT',
    'smtp://u:old@relay.example:587',
  );
  await waitForChecks();
  expect(applied).toEqual([]);
  await change('smtp://u:changed@relay.example:587\n');
  await waitForChecks();
  expect(applied).toMatchObject([{ kind: 'smtp', auth: { user: 'u', pass: 'changed' } }]);
  expect(lines).toEqual([]);
  stop();
  await change('smtp://u:later-value@relay.example:587');
  expect(applied).toHaveLength(1);
});

test('changed secrets of notifications are applied, and an invalid secret is reported and changes nothing', async () => {
  const [first, second] = [1, 2].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`);
  const { secrets, lines, change, stop } = watchOneFile('POSTRIDER_NOTIFY_SECRET', first ?? '');
  await change(`${second},${first}\n`);
  expect(secrets).toEqual([['notify', [second, first]]]);
  await change('whsec_short');
  expect(secrets).toHaveLength(1);
  expect(lines).toEqual([expect.stringContaining('POSTRIDER_NOTIFY_SECRET_FILE: a secret must be `whsec_`')]);
  stop();
});

test('a changed file of a further route is applied to this route, and bad content keeps the last good one', async () => {
  const { applied, appliedRoutes, faults, lines, change } = watchOneFile(
    'POSTRIDER_ROUTE_BACKUP',
    'smtp://relay.example',
  );
  await change('ses://eu-west-1');
  await change('ses://');
  expect([appliedRoutes, applied]).toMatchObject([['backup'], [{ kind: 'ses', region: 'eu-west-1' }]]);
  expect(lines).toEqual([expect.stringMatching(/^POSTRIDER_ROUTE_BACKUP_FILE: .*; correct the file; until then/)]);
  await change('smtp://relay.example');
  expect(faults.map(([route, fault]) => [route, fault !== null])).toEqual([
    ['backup', false],
    ['backup', true],
    ['backup', false],
  ]);
});

test('a transport that cannot be applied is reported once with its remedy', async () => {
  const { applied, lines, path, waitForChecks, change } = watchOneFile(
    'POSTRIDER_TRANSPORT',
    'capture:',
    'the kind changes',
  );
  await change('smtp://relay.example');
  await change('not a transport');
  rmSync(path);
  await waitForChecks();
  expect(applied).toEqual([]);
  expect(lines).toEqual([
    expect.stringMatching(/^POSTRIDER_TRANSPORT_FILE: the kind changes; restart the service to apply it; until then/),
    expect.stringMatching(/^POSTRIDER_TRANSPORT_FILE: .*; correct the file; until then/),
    expect.stringMatching(/^POSTRIDER_TRANSPORT_FILE: .* cannot be read \(ENOENT\)/),
  ]);
});

test('a changed operator password is reported once and needs a restart', async () => {
  const { applied, lines, waitForChecks, change } = watchOneFile('POSTRIDER_OPERATOR_PASSWORD', 'the first password');
  await change('the second password');
  await waitForChecks();
  expect(applied).toEqual([]);
  expect(lines).toEqual([
    'POSTRIDER_OPERATOR_PASSWORD_FILE: the file has changed; restart the service to apply it; until then the previous value is used',
  ]);
});

test('changed secrets of a provider’s events are applied once; invalid secrets are reported without the secret', async () => {
  const { secrets, lines, change } = watchOneFile('POSTRIDER_EVENTS_POSTMARK', 'user:old-password');
  await change('user:old-password,user:new-password\n');
  expect(secrets).toEqual([['postmark', ['user:old-password', 'user:new-password']]]);
  await change('user:short');
  expect(secrets).toHaveLength(1);
  expect(lines).toEqual([expect.stringMatching(/^POSTRIDER_EVENTS_POSTMARK_FILE: .*8 characters.*; correct the file/)]);
  expect(lines.join()).not.toContain('short;');
});
