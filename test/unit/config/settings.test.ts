import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeSettings, loadSettings } from '../../../src/config/load.ts';
import { EVENT_SECRET_SPECS, SETTINGS_TABLE } from '../../../src/config/table.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';

describe('settings', () => {
  it('an empty environment gives the documented defaults', () => {
    expect(loadSettings({}, null)).toEqual({
      database: { kind: 'sqlite', path: './data/postrider.db' },
      transport: { kind: 'capture' },
      routes: [{ name: 'default', transport: { kind: 'capture' } }],
      listen: { host: '127.0.0.1', port: 8080 },
      operatorListen: { host: '127.0.0.1', port: 8081 },
      operatorPassword: null,
      trustedProxies: [],
      tls: null,
      senders: 'authenticated',
      maxAgeMs: 86_400_000,
      maxRequestBytes: 1_048_576,
      keepBodyMs: 7 * 86_400_000,
      keepHistoryMs: 90 * 86_400_000,
      keepAuditMs: 400 * 86_400_000,
      onUncertain: 'resend',
      secret: null,
      dns: null,
      returnPathDomain: null,
      feedbackListen: null,
      feedbackLoops: [],
      feedbackHttpListen: null,
      feedbackUrl: null,
      eventSecrets: {},
      sesTopics: [],
      sesQueue: null,
      webhookTargets: 'public',
      operatorUrl: null,
      notifyTargets: [],
      notifyFrom: null,
      notifySecrets: [],
      roles: new Set(['api', 'deliver', 'feedback', 'operator']),
      logLevel: 'info',
      logRecipients: 'masked',
      requireSyncStandby: false,
      secretFiles: [],
      ignoredVariables: [],
    });
  });

  it('every given setting replaces its default', () => {
    const pem = join(createTemporaryFolder(), 'cert.pem');
    writeFileSync(pem, 'x');
    const environment = {
      POSTRIDER_DATABASE: 'postgres://me@db.example/mail',
      POSTRIDER_DATABASE_DIRECT: 'postgres://me@direct.example/mail',
      POSTRIDER_REQUIRE_SYNC_STANDBY: 'yes',
      POSTRIDER_TRANSPORT: 'smtps://u:p@relay.example?name=out.example.com',
      POSTRIDER_LISTEN: ':9090',
      POSTRIDER_OPERATOR_LISTEN: '[::]:0',
      POSTRIDER_OPERATOR_PASSWORD: 'a long password',
      POSTRIDER_TRUSTED_PROXIES: '192.0.2.7, 10.0.0.0/8,2001:db8::/32',
      POSTRIDER_TLS_CERT: pem,
      POSTRIDER_TLS_KEY: pem,
      POSTRIDER_SENDERS: 'any',
      POSTRIDER_MAX_AGE: '90s',
      POSTRIDER_MAX_REQUEST: '64KiB',
      POSTRIDER_KEEP_BODY: '0s',
      POSTRIDER_KEEP_HISTORY: '0s',
      POSTRIDER_KEEP_AUDIT: '1d',
      POSTRIDER_ON_UNCERTAIN: 'hold',
      POSTRIDER_SECRET: 'ab'.repeat(32),
      POSTRIDER_DNS: '127.0.0.1:5353',
      POSTRIDER_RETURN_PATH_DOMAIN: 'Bounces.Example.com',
      POSTRIDER_FEEDBACK_LISTEN: ':2525',
      POSTRIDER_FEEDBACK_LOOPS: 'Fbl.Example.com, arf.example.net',
      POSTRIDER_FEEDBACK_HTTP_LISTEN: ':8443',
      POSTRIDER_SES_TOPICS: 'arn:aws:sns:eu-west-1:123456789012:a',
      POSTRIDER_SES_QUEUE: 'http://127.0.0.1:9324/000000000000/q',
      POSTRIDER_WEBHOOK_TARGETS: 'any',
      POSTRIDER_OPERATOR_URL: 'https://mail.example.com/',
      POSTRIDER_NOTIFY: 'mailto:Ops@example.com, http://127.0.0.1:9000/hook?a=b',
      POSTRIDER_NOTIFY_FROM: 'postrider@example.org',
      POSTRIDER_NOTIFY_SECRET: SETTINGS_TABLE.notifySecrets.example,
      POSTRIDER_ROLES: 'api, operator',
      POSTRIDER_LOG: 'silent',
      POSTRIDER_LOG_RECIPIENTS: 'none',
      POSTRIDER_FEEDBACK_URL: 'https://events.example.com/',
      ...Object.fromEntries(Object.values(EVENT_SECRET_SPECS).map(({ name, example }) => [name, example])),
    };
    expect(Object.keys(environment).sort()).toEqual(
      Object.values(SETTINGS_TABLE)
        .map((spec) => spec.name)
        .sort(),
    );
    expect(loadSettings(environment, null)).toMatchObject({
      database: expect.objectContaining({
        hosts: [{ host: 'db.example', port: 5432 }],
        direct: expect.objectContaining({ hosts: [{ host: 'direct.example', port: 5432 }] }),
      }),
      transport: { kind: 'smtp', host: 'relay.example', auth: { user: 'u', pass: 'p' }, name: 'out.example.com' },
      listen: { host: '0.0.0.0', port: 9090 },
      operatorListen: { host: '::', port: 0 },
      operatorPassword: 'a long password',
      tls: { certPath: pem, keyPath: pem },
      senders: 'any',
      maxAgeMs: 90_000,
      maxRequestBytes: 65_536,
      keepBodyMs: 0,
      keepHistoryMs: 0,
      keepAuditMs: 86_400_000,
      onUncertain: 'hold',
      secret: 'ab'.repeat(32),
      dns: { host: '127.0.0.1', port: 5353 },
      webhookTargets: 'any',
      operatorUrl: 'https://mail.example.com',
      notifyTargets: [
        { kind: 'mail', text: 'mailto:Ops@example.com', address: 'Ops@example.com' },
        { kind: 'https', text: 'http://127.0.0.1:9000/hook?a=b', url: 'http://127.0.0.1:9000/hook?a=b' },
      ],
      notifyFrom: 'postrider@example.org',
      notifySecrets: [SETTINGS_TABLE.notifySecrets.example],
      returnPathDomain: 'bounces.example.com',
      feedbackListen: { host: '0.0.0.0', port: 2525 },
      feedbackLoops: ['fbl.example.com', 'arf.example.net'],
      feedbackHttpListen: { host: '0.0.0.0', port: 8443 },
      feedbackUrl: 'https://events.example.com',
      eventSecrets: Object.fromEntries(
        Object.entries(EVENT_SECRET_SPECS).map(([provider, { example }]) => [provider, [example]]),
      ),
      sesTopics: ['arn:aws:sns:eu-west-1:123456789012:a'],
      sesQueue: 'http://127.0.0.1:9324/000000000000/q',
      roles: new Set(['api', 'operator']),
      logLevel: 'silent',
      logRecipients: 'none',
    });
  });

  it('the listener for provider events needs no secret if the provider of the relay tests the URL before the secret exists', () => {
    const load = (host: string) => () =>
      loadSettings({ POSTRIDER_TRANSPORT: `smtp://${host}`, POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:8082' }, null);
    expect(load('smtp.mandrillapp.com')).not.toThrow();
    expect(load('smtp.mailersend.net')).not.toThrow();
    expect(load('127.0.0.1:2525?provider=mandrill')).not.toThrow();
    expect(load('smtp.postmarkapp.com')).toThrow('POSTRIDER_FEEDBACK_HTTP_LISTEN has no endpoint');
  });

  it('the environment takes precedence over .env, and .env over the default', () => {
    const dotEnv = 'POSTRIDER_LISTEN=127.0.0.1:1\nPOSTRIDER_MAX_AGE=1h\n';
    const environment = { POSTRIDER_LISTEN: '127.0.0.1:2' };
    expect(loadSettings(environment, dotEnv)).toMatchObject({
      listen: { port: 2 },
      maxAgeMs: 3_600_000,
      keepBodyMs: 604_800_000,
    });
    const sources = describeSettings(environment, dotEnv).map(({ name, source }) => [name, source]);
    expect(sources).toContainEqual(['POSTRIDER_LISTEN', 'environment']);
    expect(sources).toContainEqual(['POSTRIDER_MAX_AGE', '.env']);
    expect(sources).toContainEqual(['POSTRIDER_KEEP_BODY', 'default']);
  });

  it('the settings are frozen', () => {
    const settings = loadSettings({ POSTRIDER_TRANSPORT: 'smtp://u:p@relay.example' }, null);
    expect(Object.isFrozen(settings)).toBe(true);
    expect(Object.isFrozen(settings.listen)).toBe(true);
    expect(Object.isFrozen(settings.transport)).toBe(true);
  });
});
