import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Environment, loadSettings, type ReadFile } from '../../../src/config/load.ts';
import { SettingsError } from '../../../src/config/settings.ts';
import { SETTINGS_TABLE, type SettingSpec } from '../../../src/config/table.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { getWrongValues, listSettingsWithWrongValues, SECRET_WORD, type SettingKey } from '../../rig/wrong-settings.ts';

const SETTING_SPECS = Object.entries(SETTINGS_TABLE) as readonly (readonly [SettingKey, SettingSpec<unknown>])[];
const SECRET_NAMES = SETTING_SPECS.filter(([, { secrecy }]) => secrecy !== 'no').map(([, { name }]) => name);
/** The remedy in an error has one of these forms. */
const REMEDY_PATTERN = /; |\. [A-Z]|such as|one of|between|must |did you mean|as in/;

function readFault(environment: Environment, dotEnv: string | null = null, readFile?: ReadFile): string {
  try {
    loadSettings(environment, dotEnv, readFile);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return error.message;
  }
  throw new Error(`${JSON.stringify(environment)} is accepted`);
}

function expectOneLine(fault: string, name: string, errorText: string): void {
  expect(fault).toContain(name);
  expect(fault).toContain(errorText);
  expect(fault).toMatch(REMEDY_PATTERN);
  expect(fault).not.toMatch(/\p{Cc}/u);
  expect(fault).not.toContain(SECRET_WORD);
}

test('the list of wrong values contains every setting of the table', () => {
  expect([...listSettingsWithWrongValues()].sort()).toEqual(Object.keys(SETTINGS_TABLE).sort());
});

describe.each(SETTING_SPECS.map(([key, spec]) => [spec.name, key, spec] as const))('%s', (name, key, spec) => {
  test.each(getWrongValues(key, spec.example))(
    'refuses the value $value with the error $errorText',
    ({ value, errorText, otherSettings }) => {
      const fault = readFault({ ...otherSettings, [name]: value });
      expectOneLine(fault, name, errorText);
      if (spec.secrecy === 'whole' && value.trim().length > 3) expect(fault).not.toContain(value.trim());
    },
  );

  test('is refused if its name is mistyped, and the error contains the mistyped and the correct name', () => {
    const middleIndex = Math.ceil((name.length + 'POSTRIDER_'.length) / 2);
    const mistypedName = name.slice(0, middleIndex) + name.slice(middleIndex + 1);
    expectOneLine(readFault({ [mistypedName]: spec.example }), mistypedName, `did you mean ${name}?`);
    expectOneLine(readFault({}, `${name}X="${spec.example}"`), `${name}X in .env`, `did you mean ${name}?`);
  });
});

describe.each(SECRET_NAMES)('%s_FILE', (setting) => {
  const name = `${setting}_FILE`;
  const writeSecret = (content: string | Uint8Array) => {
    const path = join(createTemporaryFolder(), 'secret');
    writeFileSync(path, content);
    return path;
  };

  test('is refused if the setting itself is also set', () => {
    expectOneLine(readFault({ [setting]: 'x', [name]: '/x' }), name, 'remove one of them');
  });

  test.each([
    ['the file is absent', () => join(createTemporaryFolder(), 'none'), 'cannot be read (ENOENT)'],
    ['a parent folder in the path is a file', () => join(writeSecret('x'), 'none'), 'cannot be read (ENOTDIR)'],
    ['the path is a folder', createTemporaryFolder, 'is not a file; give the path of a file'],
  ])('is refused if %s', (_label, createPath, errorText) => {
    expectOneLine(readFault({ [name]: createPath() }), name, errorText);
  });

  test('is refused immediately if the path is a device or a pipe', () => {
    expectOneLine(readFault({ [name]: '/dev/zero' }), name, 'is not a file; give the path of a file');
    const pipe = join(createTemporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    expectOneLine(readFault({ [name]: pipe }), name, 'is not a file; give the path of a file');
  });

  test('is refused if the user has no right to read the file', () => {
    const path = writeSecret(SECRET_WORD);
    chmodSync(path, 0o000);
    // The root user may read every file, so the system error is injected.
    const refuseRead = () => {
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
    };
    expectOneLine(readFault({ [name]: path }, null, refuseRead), name, 'cannot be read (EACCES)');
  });

  test.each([
    ['no byte', '', 'is empty; write the value into it'],
    ['only LF', '\n', 'is empty; write the value into it'],
    ['only CR LF', '\r\n', 'is empty; write the value into it'],
    ['only white space', ' \t \n', 'is empty; write the value into it'],
    ['70000 bytes', SECRET_WORD.repeat(10_000), 'is larger than 65536 bytes; '],
    ['a value with a NUL character', `${SECRET_WORD}\0`, 'contains a line break or another control character'],
    ['two lines of text', `${SECRET_WORD}\nx\n`, 'contains a line break or another control character'],
    ['a value followed by two line breaks', `${SECRET_WORD}\n\n`, 'contains a line break or another control character'],
    ['a value with bytes that are not UTF-8', Uint8Array.of(0x68, 0xff, 0xfe, 0x70), 'is not UTF-8 text; '],
    ['a value in UTF-16', Buffer.from(`\uFEFF${SECRET_WORD}`, 'utf16le'), 'is not UTF-8 text; '],
  ])('is refused if the file contains %s', (_label, content, errorText) => {
    expectOneLine(readFault({ [name]: writeSecret(content) }), name, errorText);
  });
});

test('a secret file may be a symbolic link, as in a volume that Kubernetes mounts', () => {
  const folder = createTemporaryFolder();
  mkdirSync(join(folder, '..data'));
  writeFileSync(join(folder, '..data/secret'), `${'0f'.repeat(32)}\n`);
  execFileSync('ln', ['-s', '..data/secret', join(folder, 'secret')]);
  expect(loadSettings({ POSTRIDER_SECRET_FILE: join(folder, 'secret') }, null).secret).toBe('0f'.repeat(32));
});

test('a certificate without a key and a key without a certificate are refused', () => {
  const pem = join(createTemporaryFolder(), 'cert.pem');
  writeFileSync(pem, 'x');
  expectOneLine(
    readFault({ POSTRIDER_TLS_CERT: pem }),
    'POSTRIDER_TLS_CERT',
    'POSTRIDER_TLS_KEY is not; HTTPS needs both',
  );
  expectOneLine(
    readFault({ POSTRIDER_TLS_KEY: pem }),
    'POSTRIDER_TLS_KEY',
    'POSTRIDER_TLS_CERT is not; HTTPS needs both',
  );
});
