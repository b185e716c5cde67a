import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readDotEnv } from '../../../src/config/files.ts';
import { SettingsError } from '../../../src/config/settings.ts';

describe('.env', () => {
  it('comments, blank lines, export, quotes, Windows line ends and a byte order mark are parsed', () => {
    const text =
      '\uFEFFA=1\r\n\r\n# note\r\n  export B = two words # note\r\nC="x # y"\r\nD=\'single\'\r\nE=`tick`\r\nF="two\r\nlines"\r\nG=\r\n';
    expect(readDotEnv(text)).toEqual({
      A: '1',
      B: 'two words',
      C: 'x # y',
      D: 'single',
      E: 'tick',
      F: 'two\nlines',
      G: '',
    });
  });

  it.each([
    ['A=1\nnonsense\n', '.env line 2: the line is not NAME=value'],
    ['=1\n', '.env line 1: the line is not NAME=value'],
    ['A=1\n9L=2\n', '.env line 2: the line is not NAME=value'],
    ['A B=2\n', '.env line 1: the line is not NAME=value'],
    ['POSTRIDER_LISTEN: x\n', '.env line 1: the line is not NAME=value'],
    ['A=1\n\nB="open\nC=2\n', '.env line 3: the value of B has no closing "'],
    ["B='open\n", ".env line 1: the value of B has no closing '"],
    ['A="x\ny"\nB="x" tail\n', '.env line 3: text follows the closing " of the value of B'],
    ['POSTRIDER_LOG=info\nPOSTRIDER_LOG=warn\n', '.env line 2: POSTRIDER_LOG is already set in line 1'],
    [
      'A=1\nPOSTRIDER_OPERATOR_PASSWORD=half#gone\n',
      '.env line 2: a # starts a comment and truncates POSTRIDER_OPERATOR_PASSWORD',
    ],
  ])('the text %j is refused with the error: %s', (text, errorText) => {
    expect(() => readDotEnv(text)).toThrow(SettingsError);
    expect(() => readDotEnv(text)).toThrow(errorText);
  });

  it('an error does not contain the line, which may contain a secret', () => {
    expect(() => readDotEnv('hunter2 hunter2')).toThrow(/^(?!.*hunter2)/);
    expect(() => readDotEnv('POSTRIDER_OPERATOR_PASSWORD="hunter2" hunter2')).toThrow(/^(?!.*hunter2)/);
  });

  it('any text yields values or a SettingsError', () => {
    const parts = fc.constantFrom('A', '=', '"', "'", '`', '#', '\n', '\r', ' ', 'export ', 'POSTRIDER_LOG', '\\', 'é');
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 40 }), (pieces) => {
        try {
          readDotEnv(pieces.join(''));
        } catch (error) {
          expect(error).toBeInstanceOf(SettingsError);
        }
      }),
    );
  });

  it('every accepted line yields its value completely', () => {
    const name = fc.integer({ min: 0, max: 9999 }).map((number) => `NAME_${number}`);
    const value = fc.string({ maxLength: 20 }).map((text) => text.replaceAll(/["\\\r\n]/g, ''));
    fc.assert(
      fc.property(fc.dictionary(name, value, { maxKeys: 8, noNullPrototype: true }), (values) => {
        const text = Object.entries(values)
          .map(([key, content]) => `${key}="${content}"\n`)
          .join('');
        expect(readDotEnv(text)).toEqual(values);
      }),
    );
  });
});
