import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeSettings, type Environment, loadSettings } from '../../../src/config/load.ts';
import { SettingsError } from '../../../src/config/settings.ts';
import { SETTINGS_TABLE } from '../../../src/config/table.ts';

let folder = '';
let pem = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postrider-settings-'));
  pem = join(folder, 'cert.pem');
  writeFileSync(pem, 'x');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function faultOf(environment: Environment, dotEnv: string | null = null): string {
  try {
    loadSettings(environment, dotEnv);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return error.message;
  }
  throw new Error('expected a SettingsError');
}

describe('settings', () => {
  it('an empty environment gives the defaults of product.md', () => {
    expect(loadSettings({}, null)).toEqual({
      database: { kind: 'sqlite', path: './data/postrider.db' },
      transport: { kind: 'capture' },
      listen: { host: '127.0.0.1', port: 8080 },
      operatorListen: { host: '127.0.0.1', port: 8081 },
      operatorPassword: null,
      trustedProxies: [],
      tls: null,
      senders: 'authenticated',
      maxAgeMs: 86_400_000,
      maxRequestBytes: 1_048_576,
      keepBodyMs: 7 * 86_400_000,
      onUncertain: 'resend',
      secret: null,
      dns: null,
      returnPathDomain: null,
      feedbackListen: null,
      feedbackHttpListen: null,
      sesTopics: [],
      sesQueue: null,
      roles: new Set(['api', 'deliver', 'feedback', 'operator']),
      logLevel: 'info',
      requireSyncStandby: false,
      secretFiles: [],
      ignoredVariables: [],
    });
  });

  it('every given setting replaces its default', () => {
    const given = {
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
      POSTRIDER_ON_UNCERTAIN: 'hold',
      POSTRIDER_SECRET: 'ab'.repeat(32),
      POSTRIDER_DNS: '127.0.0.1:5353',
      POSTRIDER_RETURN_PATH_DOMAIN: 'Bounces.Example.com',
      POSTRIDER_FEEDBACK_LISTEN: ':2525',
      POSTRIDER_FEEDBACK_HTTP_LISTEN: ':8443',
      POSTRIDER_SES_TOPICS: 'arn:aws:sns:eu-west-1:123456789012:a',
      POSTRIDER_SES_QUEUE: 'http://127.0.0.1:9324/000000000000/q',
      POSTRIDER_ROLES: 'api, operator',
      POSTRIDER_LOG: 'silent',
    };
    expect(Object.keys(given).sort()).toEqual(
      Object.values(SETTINGS_TABLE)
        .map((spec) => spec.name)
        .sort(),
    );
    expect(loadSettings(given, null)).toMatchObject({
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
      onUncertain: 'hold',
      secret: 'ab'.repeat(32),
      dns: { host: '127.0.0.1', port: 5353 },
      returnPathDomain: 'bounces.example.com',
      feedbackListen: { host: '0.0.0.0', port: 2525 },
      feedbackHttpListen: { host: '0.0.0.0', port: 8443 },
      sesTopics: ['arn:aws:sns:eu-west-1:123456789012:a'],
      sesQueue: 'http://127.0.0.1:9324/000000000000/q',
      roles: new Set(['api', 'operator']),
      logLevel: 'silent',
    });
  });

  it.each([
    ['POSTRIDER_DATABASE', 'postgres://localhost', 'names no database after the host'],
    ['POSTRIDER_DATABASE', './data/postrider.db', 'sqlite:./data/postrider.db'],
    ['POSTRIDER_DATABASE', 'sqlite:', 'names no file'],
    ['POSTRIDER_DATABASE', 'sqlite:./data/', 'names no file'],
    ['POSTRIDER_DATABASE', 'sqlite::memory:', 'would lose accepted messages'],
    ['POSTRIDER_DATABASE', 'sqlite://host/file.db', 'names a host'],
    ['POSTRIDER_DATABASE', 'sqlite:./p.db?mode=ro', 'has parameters'],
    ['POSTRIDER_TRANSPORT', 'smpt://relay.example', 'did you mean smtp?'],
    ['POSTRIDER_LISTEN', '8080', '127.0.0.1:8080'],
    ['POSTRIDER_LISTEN', '127.0.0.1:', 'no port from 0 to 65535'],
    ['POSTRIDER_LISTEN', '127.0.0.1:65536', 'no port from 0 to 65535'],
    ['POSTRIDER_LISTEN', '127.0.0.300:80', 'is not an address such as'],
    ['POSTRIDER_LISTEN', '::1:8080', 'needs brackets'],
    ['POSTRIDER_LISTEN', '[127.0.0.1]:8080', 'is not an address such as'],
    ['POSTRIDER_LISTEN', 'http://127.0.0.1:8080', 'is not an address such as'],
    ['POSTRIDER_LISTEN', 'unix:api.sock', 'unix:/run/postrider/api.sock'],
    ['POSTRIDER_LISTEN', 'unix:/run/', 'unix:/run/postrider/api.sock'],
    ['POSTRIDER_LISTEN', `unix:/${'x'.repeat(103)}`, 'has a path of 104 bytes, and a unix socket has at most 103'],
    ['POSTRIDER_OPERATOR_LISTEN', 'unix:/run/postrider/operator.sock', 'set POSTRIDER_OPERATOR_PASSWORD'],
    ['POSTRIDER_FEEDBACK_LISTEN', 'unix:/run/postrider/smtp.sock', '127.0.0.1:8080'],
    ['POSTRIDER_OPERATOR_LISTEN', 'off', 'is not an address such as'],
    ['POSTRIDER_DNS', '192.0.2.53', 'is not a resolver such as 127.0.0.1:53'],
    ['POSTRIDER_DNS', ':53', 'is not a resolver such as'],
    ['POSTRIDER_DNS', '127.0.0.1:0', 'is not a resolver such as'],
    ['POSTRIDER_OPERATOR_LISTEN', '0.0.0.0:8081', 'set POSTRIDER_OPERATOR_PASSWORD'],
    ['POSTRIDER_OPERATOR_LISTEN', '127.0.0.1:8080', 'set another port for one of them'],
    ['POSTRIDER_OPERATOR_PASSWORD', 'short', '8 to 200 characters'],
    ['POSTRIDER_TLS_CERT', '/no/such/file.pem', 'there is no file'],
    ['POSTRIDER_TLS_CERT', '/', 'is not a file'],
    ['POSTRIDER_SENDERS', 'anyone', 'did you mean any?'],
    ['POSTRIDER_MAX_AGE', '0s', 'not between 1s and 30d'],
    ['POSTRIDER_MAX_AGE', '0', 'is not a duration such as'],
    ['POSTRIDER_MAX_AGE', '31d', 'not between 1s and 30d'],
    ['POSTRIDER_MAX_AGE', '24', 'is not a duration such as'],
    ['POSTRIDER_MAX_REQUEST', '1', 'not between 1KiB and 64MiB'],
    ['POSTRIDER_MAX_REQUEST', '1GiB', 'not between 1KiB and 64MiB'],
    ['POSTRIDER_MAX_REQUEST', '1MiBs', 'is not a size such as'],
    ['POSTRIDER_KEEP_BODY', '3651d', 'not between 0s and 3650d'],
    ['POSTRIDER_KEEP_BODY', 'forever', 'is not a duration such as'],
    ['POSTRIDER_ON_UNCERTAIN', 'drop', 'is not one of resend, hold'],
    ['POSTRIDER_ROLES', 'api,delivery', '"delivery" is not a role'],
    ['POSTRIDER_ROLES', 'api,', '"" is not a role'],
    ['POSTRIDER_ROLES', 'all,api', '"all" is not a role'],
    ['POSTRIDER_ROLES', 'feedback', 'the role feedback has no source of feedback; set POSTRIDER_FEEDBACK_LISTEN'],
    ['POSTRIDER_FEEDBACK_LISTEN', '2525', '127.0.0.1:8080'],
    ['POSTRIDER_FEEDBACK_LISTEN', '127.0.0.1:2525', 'set POSTRIDER_RETURN_PATH_DOMAIN to its domain'],
    ['POSTRIDER_FEEDBACK_HTTP_LISTEN', '127.0.0.1:8082', 'accepts only the topics of POSTRIDER_SES_TOPICS'],
    ['POSTRIDER_SES_TOPICS', 'ses-feedback', 'is not the ARN of an SNS topic'],
    ['POSTRIDER_SES_TOPICS', 'arn:aws:sns:eu-west-1:123456789012:a,', '"" is not the ARN'],
    ['POSTRIDER_SES_TOPICS', 'arn:aws:sns:eu-west-1:123456789012:a', 'no listener or queue receives the events'],
    ['POSTRIDER_SES_QUEUE', 'ses-feedback', 'is not the URL of an SQS queue'],
    ['POSTRIDER_SES_QUEUE', 'https://user:pass@sqs.example/1/q', 'is not the URL of an SQS queue'],
    ['POSTRIDER_SES_QUEUE', 'https://sqs.example/', 'is not the URL of an SQS queue'],
    ['POSTRIDER_TLS_CERT', '/proc/self/fd/2/x', 'there is no file'],
    ['POSTRIDER_TLS_CERT', `/${'x'.repeat(300)}`, 'cannot be read (ENAMETOOLONG)'],
    ['POSTRIDER_LOG', 'warning', 'did you mean warn?'],
  ])('%s=%s stops the start with one line that names it', (name, value, part) => {
    const fault = faultOf({ [name]: value });
    expect(fault).toContain(name);
    expect(fault).toContain(part);
    expect(fault).not.toMatch(/[\r\n]/);
  });

  it.each(Object.values(SETTINGS_TABLE).map((spec) => spec.name))(
    '%s is refused when empty, in the environment and in .env',
    (name) => {
      expect(faultOf({ [name]: '' })).toBe(`${name} is empty in the environment; set a value, or remove it`);
      expect(faultOf({}, `${name}=\n`)).toBe(`${name} is empty in .env; set a value, or remove it`);
    },
  );

  it('each feedback listener needs its own address', () => {
    const topic = 'arn:aws:sns:eu-west-1:123456789012:ses-feedback';
    const given = {
      POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
      POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:8080',
      POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:8082',
      POSTRIDER_SES_TOPICS: `${topic}, ${topic}2`,
    };
    expect(faultOf(given)).toBe(
      'POSTRIDER_LISTEN and POSTRIDER_FEEDBACK_LISTEN are both 127.0.0.1:8080; set another port for one of them',
    );
    expect(loadSettings({ ...given, POSTRIDER_ROLES: 'feedback' }, null).sesTopics).toEqual([topic, `${topic}2`]);
    expect(() => loadSettings({ ...given, POSTRIDER_ROLES: 'api' }, null)).not.toThrow();
  });

  it('an unknown setting stops the start; the error names its source and the closest setting', () => {
    expect(faultOf({ POSTRIDER_LISTN: 'x' })).toBe(
      'POSTRIDER_LISTN in the environment is not a setting (did you mean POSTRIDER_LISTEN?)',
    );
    expect(faultOf({}, 'POSTRIDER_TRANSPRT=x')).toContain(
      'POSTRIDER_TRANSPRT in .env is not a setting (did you mean POSTRIDER_TRANSPORT?)',
    );
    expect(faultOf({ POSTRIDER_ZZZZZZZZZZZZZZ: 'x' })).toContain('`postrider config` lists them');
  });

  it('variables of other programs are ignored', () => {
    expect(() => loadSettings({ PATH: '/bin', POSTRIDERX: '1' }, 'DATABASE_URL=x\n')).not.toThrow();
  });

  it('a certificate without a key and a key without a certificate are refused', () => {
    expect(faultOf({ POSTRIDER_TLS_CERT: pem })).toBe(
      'POSTRIDER_TLS_CERT is set and POSTRIDER_TLS_KEY is not; HTTPS needs both',
    );
    expect(faultOf({ POSTRIDER_TLS_KEY: pem })).toBe(
      'POSTRIDER_TLS_KEY is set and POSTRIDER_TLS_CERT is not; HTTPS needs both',
    );
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

  it('printed settings contain no secret', () => {
    const environment = {
      POSTRIDER_OPERATOR_PASSWORD: 'hunter2hunter2',
      POSTRIDER_TRANSPORT: 'smtp://user:hunter2hunter2@relay.example:587?tls=required',
    };
    const described = describeSettings(environment, null);
    expect(JSON.stringify(described)).not.toContain('hunter2');
    expect(described.find(({ name }) => name === 'POSTRIDER_TRANSPORT')?.value).toBe(
      'smtp://user:********@relay.example:587?tls=required',
    );
    expect(described.find(({ name }) => name === 'POSTRIDER_OPERATOR_PASSWORD')?.value).toBe('********');
  });

  it('the error for an invalid password does not contain the password', () => {
    expect(faultOf({ POSTRIDER_OPERATOR_PASSWORD: 'hunter2' })).not.toContain('hunter2');
  });

  it('the settings are frozen', () => {
    const settings = loadSettings({ POSTRIDER_TRANSPORT: 'smtp://u:p@relay.example' }, null);
    expect(Object.isFrozen(settings)).toBe(true);
    expect(Object.isFrozen(settings.listen)).toBe(true);
    expect(Object.isFrozen(settings.transport)).toBe(true);
  });

  it('the parser of every setting accepts its default', () => {
    for (const spec of Object.values(SETTINGS_TABLE))
      if (spec.default !== null) expect(spec.parse(spec.default).ok).toBe(true);
  });
});
