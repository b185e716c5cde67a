import { describe, expect, test } from 'vitest';
import { describeSettings, type Environment, loadSettings } from '../../../src/config/load.ts';
import { SETTINGS_TABLE } from '../../../src/config/table.ts';
import { MASK } from '../../../src/printing/escape.ts';

const SECRET_SPECS = Object.values(SETTINGS_TABLE).filter(({ secrecy }) => secrecy !== 'no');
const PUBLIC_SPECS = Object.values(SETTINGS_TABLE).filter(({ secrecy }) => secrecy === 'no');

const createFileReader = (content: string) => (path: string) => {
  if (path !== '/run/secrets/value') throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  return content;
};

/** Each key is a setting. Its value contains the other settings that this setting requires. */
const REQUIRED_SETTINGS: Readonly<Record<string, Environment>> = {
  POSTRIDER_NOTIFY: {
    POSTRIDER_NOTIFY_FROM: 'postrider@example.com',
    POSTRIDER_NOTIFY_SECRET: `whsec_${Buffer.alloc(32).toString('base64')}`,
  },
  POSTRIDER_DATABASE_DIRECT: { POSTRIDER_DATABASE: 'postgres://me@db.example/postrider' },
};

const LISTENER_SETTINGS: Environment = {
  POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:8443',
  POSTRIDER_FEEDBACK_URL: 'https://events.example.org',
};

describe('a setting that contains a secret', () => {
  test.each(SECRET_SPECS.map((spec) => [spec.name, spec.example] as const))('%s can be in a file', (name, example) => {
    const otherSettings = REQUIRED_SETTINGS[name] ?? (name.startsWith('POSTRIDER_EVENTS_') ? LISTENER_SETTINGS : {});
    const settingsFromVariable = loadSettings({ ...otherSettings, [name]: example }, null);
    const read = createFileReader(`${example}\n`);
    const settingsFromFile = { ...settingsFromVariable, secretFiles: [{ name, path: '/run/secrets/value' }] };
    expect(loadSettings({ ...otherSettings, [`${name}_FILE`]: '/run/secrets/value' }, null, read)).toEqual(
      settingsFromFile,
    );
    expect(loadSettings(otherSettings, `${name}_FILE=/run/secrets/value\n`, read)).toEqual(settingsFromFile);
  });

  test('only one line end at the end of the file is removed', () => {
    const load = (content: string) =>
      loadSettings({ POSTRIDER_OPERATOR_PASSWORD_FILE: '/run/secrets/value' }, null, createFileReader(content))
        .operatorPassword;
    expect(load('pass word')).toBe('pass word');
    expect(load('pass word\n')).toBe('pass word');
    expect(load('pass word\r\n')).toBe('pass word');
    expect(() => load('pass word\n\n')).toThrow('contains a line break or another control character');
    expect(load(' pass word ')).toBe(' pass word ');
  });

  test('a value from a file is masked, and the source of the setting is `file`', () => {
    const describedSettings = describeSettings(
      { POSTRIDER_SECRET_FILE: '/run/secrets/value' },
      null,
      createFileReader('0f'.repeat(32)),
    );
    expect(describedSettings.find(({ name }) => name === 'POSTRIDER_SECRET')).toMatchObject({
      value: MASK,
      source: 'file',
    });
  });

  test('the paths and queries of notification targets are masked, and the hosts are not', () => {
    const value = 'mailto:ops@example.com, https://hooks.example.com:8443/a?token=b,https://other.example.com/';
    const describedSettings = describeSettings(
      { ...REQUIRED_SETTINGS.POSTRIDER_NOTIFY, POSTRIDER_NOTIFY: value },
      null,
    );
    expect(describedSettings.find(({ name }) => name === 'POSTRIDER_NOTIFY')).toMatchObject({
      value: `mailto:ops@example.com,https://hooks.example.com:8443/${MASK},https://other.example.com/`,
    });
  });
});

test.each(PUBLIC_SPECS.map(({ name }) => [name]))(
  '%s does not contain a secret and is not read from a file',
  (name) => {
    expect(() => loadSettings({ [`${name}_FILE`]: '/run/secrets/value' }, null, createFileReader('x'))).toThrow(
      `${name}_FILE in the environment is not a setting: only the value of a setting that contains a secret can be in a file; set ${name}`,
    );
  },
);

describe('variables that Kubernetes sets for a Service named postrider', () => {
  const INJECTED_VARIABLES = {
    POSTRIDER_SERVICE_HOST: '10.96.0.17',
    POSTRIDER_SERVICE_PORT: '80',
    POSTRIDER_SERVICE_PORT_PUBLIC: '80',
    POSTRIDER_PORT: 'tcp://10.96.0.17:80',
    POSTRIDER_PORT_80_TCP: 'tcp://10.96.0.17:80',
    POSTRIDER_PORT_80_TCP_PROTO: 'tcp',
    POSTRIDER_PORT_80_TCP_PORT: '80',
    POSTRIDER_PORT_80_TCP_ADDR: '10.96.0.17',
    POSTRIDER_OPERATOR_SERVICE_HOST: '10.96.0.18',
    POSTRIDER_OPERATOR_SERVICE_PORT: '8081',
    POSTRIDER_OPERATOR_PORT: 'tcp://10.96.0.18:8081',
    POSTRIDER_OPERATOR_PORT_8081_TCP: 'tcp://10.96.0.18:8081',
  };

  test('are ignored and listed', () => {
    const ignoredVariables = Object.keys(INJECTED_VARIABLES);
    expect(loadSettings({ ...INJECTED_VARIABLES, HOME: '/' }, null)).toEqual({
      ...loadSettings({}, null),
      ignoredVariables,
    });
  });

  test('POSTRIDER_PORT is refused as an unknown setting if its value is not one that Kubernetes sets', () => {
    expect(() => loadSettings({ POSTRIDER_PORT: '8080' }, null)).toThrow(
      'POSTRIDER_PORT in the environment is not a setting',
    );
  });
});
