import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeSettings, loadSettings } from '../../../src/config/load.ts';
import { TOKEN_SCOPES } from '../../../src/model/audit.ts';
import { generateToken } from '../../../src/model/credentials.ts';
import {
  describeError,
  escapeJson,
  MASK,
  maskSecrets,
  maskUrl,
  toPrintable,
  toPrintableLines,
} from '../../../src/printing/escape.ts';
import { formatCsvCell, toSentence, unescapeCsvText } from '../../../src/printing/text.ts';
import { selectCaseCount } from '../../rig/sample.ts';

/** All Unicode control characters, line and paragraph separators, bidirectional controls, and a lone surrogate. */
const CONTROL_CHARACTERS = [
  ...Array.from({ length: 0x20 }, (_, unit) => unit),
  ...Array.from({ length: 0x21 }, (_, unit) => 0x7f + unit),
  ...[0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
  0xd800,
].map((unit) => String.fromCharCode(unit));
const HARMLESS_TEXT = 'Grüße 👩‍👩‍👧 日本 \u00a0\u200d\ufeff "\\/';
const findUnescapedControls = (text: string) =>
  [...text].filter((character) => CONTROL_CHARACTERS.includes(character) || /\p{Cs}/u.test(character));

test('escaped JSON contains no control characters, and its parsed value is unchanged', () => {
  for (const controlCharacter of [...CONTROL_CHARACTERS, CONTROL_CHARACTERS.join('')]) {
    const value = { [`k${controlCharacter}`]: [`a${controlCharacter}b`, HARMLESS_TEXT] };
    const json = escapeJson(JSON.stringify(value));
    expect(findUnescapedControls(json)).toEqual([]);
    expect(JSON.parse(json)).toEqual(value);
  }
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.parse(escapeJson(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
    { seed: 12_021, numRuns: selectCaseCount(100, 300) },
  );
});

test('printable text has U+FFFD for each control character, and other characters are unchanged', () => {
  for (const controlCharacter of CONTROL_CHARACTERS) {
    expect(toPrintable(`a${controlCharacter}b`)).toBe('a\uFFFDb');
    expect(toPrintableLines(`a${controlCharacter}b`)).toBe(
      '\n\t\u001b'.includes(controlCharacter) ? `a${controlCharacter}b` : 'a\uFFFDb',
    );
  }
  expect(toPrintable(HARMLESS_TEXT)).toBe(HARMLESS_TEXT);
});

const SECRET = 'hunter2SECRETword';

/** Mistyped forms of the URL `SCHEME://user:SECRET@host/name`. */
const MISTYPED_URLS: readonly ((scheme: string, secret: string) => string)[] = [
  (scheme, secret) => `${scheme}://user:${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:${secret}@db.example`,
  (scheme, secret) => `${scheme}://user:${secret}@`,
  (scheme, secret) => `${scheme}://user:${secret}`,
  (scheme, secret) => `${scheme}://user:${secret}/mail`,
  (scheme, secret) => `${scheme}://user:${secret}?sslmode=no`,
  (scheme, secret) => `${scheme}://:${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:${secret}@db.example:x/mail`,
  (scheme, secret) => `${scheme}://user@db.example:${secret}/mail`,
  (scheme, secret) => `${scheme}://user:${secret}@a@db.example/mail?wrong=1`,
  (scheme, secret) => `${scheme}://user:a@${secret}@db.example:99999/mail`,
  (scheme, secret) => `${scheme}://user:a/${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:12/${secret}@db.example`,
  (scheme, secret) => `${scheme}://user:a?${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:a/b?${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:a/b?c=${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:a#${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:a ${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:a//${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}://user:${secret}%@db.example/mail`,
  (scheme, secret) => `${scheme}://user:${secret}%40db.example/mail`,
  (scheme, secret) => `${scheme}:user:${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}:/user:${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}:user:${secret}`,
  (scheme, secret) => `${scheme}//user:${secret}@db.example/mail`,
  (scheme, secret) => `${scheme}:///user:${secret}@db.example/mail`,
  (_scheme, secret) => `user:${secret}@db.example/mail`,
  (_scheme, secret) => `//user:${secret}@db.example/mail`,
  (scheme, secret) => ` ${scheme}://user:${secret}@db.example/mail`,
  (scheme, secret) => ` ${scheme}://user:${secret}`,
  (scheme, secret) => `"${scheme}://user:${secret}@db.example/mail"`,
  (scheme, secret) => `sqlite:${scheme}://user:${secret}@db.example/mail`,
  (scheme, secret) => `sqlite:${scheme}:/user:${secret}@db.example/mail`,
  (scheme, secret) => `sqlite://user:${secret}@db.example/${scheme}`,
  (scheme, secret) => `sqlite:sqlite:${scheme}://user:${secret}@db.example/mail`,
  (_scheme, secret) => `sqlite:user:${secret}@db.example/mail`,
  (scheme, secret) => `capture:${scheme}://user:${secret}@db.example/mail`,
  (scheme, secret) => `jdbc:${scheme}://db.example/mail?user=u&password=${secret}`,
  (scheme, secret) => `${scheme}://db.example/mail?password=${secret}`,
  (scheme, secret) => `${scheme}://db.example/mail?sslpassword=a&${secret}`,
  (scheme, secret) => `${scheme}://db.example/mail?pass%77ord=${secret}`,
  (scheme, secret) => `${scheme}://db.example?endpoint=http%3A%2F%2Fuser%3A${secret}%40other.example`,
  (scheme, secret) => `${scheme}%3A%2F%2Fuser%3A${secret}%40db.example%2Fmail`,
  (_scheme, secret) => `host=db.example user=me password=${secret} dbname=mail`,
  (scheme, secret) => `${scheme}://user:${secret}@db.example:5432,other.example:5433/mail?x=1`,
  (scheme, secret) => `${scheme}://user:${secret}@db.example/mail?application_name=a@b`,
  (scheme, secret) => `${scheme}://user:${secret}@db.example/mail\n`,
  (scheme, secret) => `${scheme}://user:\u202e${secret}@db.example/mail`,
];

const SCHEMES = 'postgres postgresql postgers POSTGRES smtp smtps smpt ses mx http mysql'.split(' ');
const SETTINGS = [
  ...'POSTRIDER_DATABASE POSTRIDER_TRANSPORT POSTRIDER_LISTEN POSTRIDER_OPERATOR_LISTEN'.split(' '),
  ...'POSTRIDER_SES_QUEUE POSTRIDER_SES_TOPICS POSTRIDER_RETURN_PATH_DOMAIN POSTRIDER_DNS'.split(' '),
  ...'POSTRIDER_TLS_CERT POSTRIDER_ROLES POSTRIDER_LOG POSTRIDER_MAX_AGE POSTRIDER_MAX_REQUEST'.split(' '),
];

function printSetting(name: string, value: string): string {
  try {
    return JSON.stringify(describeSettings({ [name]: value }, null));
  } catch (error) {
    return describeError(error);
  }
}

describe('a password in a setting', () => {
  test.each(MISTYPED_URLS.map((write) => [write('postgres', 'PW'), write] as const))(
    'is in no output, for the mistyped form %j',
    (_shown, write) => {
      for (const scheme of SCHEMES) {
        const value = write(scheme, SECRET);
        expect([value, maskUrl(value).includes(SECRET)]).toEqual([value, false]);
        for (const name of ['POSTRIDER_DATABASE', 'POSTRIDER_TRANSPORT']) {
          expect([name, value, printSetting(name, value).includes(SECRET)]).toEqual([name, value, false]);
        }
        if (!value.includes('//') || !value.includes('@')) continue;
        for (const name of SETTINGS) {
          expect([name, value, printSetting(name, value).includes(SECRET)]).toEqual([name, value, false]);
        }
      }
    },
  );

  test('a URL that follows sqlite: is refused, so that it never becomes a file name', () => {
    for (const value of ['sqlite:postgres://u:PW@h/db', 'sqlite:u:PW@h/db', 'sqlite:postgres://h/db'])
      expect(() => loadSettings({ POSTRIDER_DATABASE: value }, null)).toThrow(/remove sqlite:/);
    expect(loadSettings({ POSTRIDER_DATABASE: 'sqlite:./a:b@c/x.db' }, null).database).toMatchObject({
      path: './a:b@c/x.db',
    });
  });
});

describe('masking', () => {
  test.each([
    ...'sqlite:./data/postrider.db sqlite:/srv/mail@home/postrider.db sqlite:///srv/postrider.db'.split(' '),
    ...'capture: ses://eu-west-1?endpoint=http://127.0.0.1:8005&configuration-set=x'.split(' '),
    ...'smtp://relay.example:587?tls=required&name=a.example smtp://[::1]:25'.split(' '),
    ...'postgres://a.example:5432,b.example:5433/mail?sslmode=verify-full&options=-c%20search_path%3Dx'.split(' '),
    ...'postgres:///mail?host=/run/postgresql'.split(' '),
  ])('does not change %s', (value) => expect(maskUrl(value)).toBe(value));

  test('redacts only URL credentials, secret parameters and keys in a line', () => {
    const key = `pr_${'A'.repeat(43)}`;
    expect(maskSecrets(`cannot reach "postgres://me:${SECRET}@db.example/mail", nor smtp://x:${SECRET}@h:25.`)).toBe(
      `cannot reach "postgres://me:${MASK}@db.example/mail", nor smtp://x:${MASK}@h:25.`,
    );
    expect(maskSecrets(`see https://h.example/?token=${SECRET} and ${key}`)).toBe(
      `see https://h.example/?token=${MASK} and pr_AAAAAAA${MASK}`,
    );
    for (const scope of TOKEN_SCOPES) {
      const { token, prefix } = generateToken(() => Buffer.alloc(32, 'key'), scope);
      expect(maskSecrets(`the token ${token}, again`)).toBe(`the token ${prefix}${MASK}, again`);
    }
    for (const line of ['550 see https://x.example/@user for help', 'pr_short', 'a@b.example: //', 'x // y@z'])
      expect(maskSecrets(line)).toBe(line);
  });

  test('of a line hides the password of every URL, whichever characters follow its host, and keeps scheme and user', () => {
    const word = fc.string({ unit: fc.constantFrom(...'aZ09:/?#@%&=+,![]~$;*().-_'), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(fc.constantFrom('http', ...SCHEMES), word, word, word, (scheme, prefix, suffix, path) => {
        const login = `see ${scheme}://user:`;
        const maskedText = maskSecrets(`${login}x${prefix}${SECRET}${suffix}@db.example/${path}`);
        expect(maskedText).not.toContain(SECRET);
        expect(maskedText.startsWith(`${login}${MASK}`)).toBe(true);
        expect(maskSecrets(maskedText)).toBe(maskedText);
      }),
      { seed: 11, numRuns: selectCaseCount(100, 3_000) },
    );
  });

  test('runs in linear time on hostile text', () => {
    // In quadratic time each text would take minutes. The test checks only that the function returns.
    const size = 100_000;
    for (const part of ['//', ':', '@', '=', '%', 'sqlite:', 'a=%25', '&a=', 'pr_', '//a:b@', '%2525', 'x=y ', ',:a'])
      for (const maskText of [maskUrl, maskSecrets])
        expect(maskText(part.repeat(size / part.length)).length).toBeGreaterThan(0);
  });
});

test('a cell that a spreadsheet evaluates begins with an apostrophe, which a reader removes', () => {
  const texts = ['=1+1', '+49', '-1', '@SUM(A1)', '\tx', "'=1", 'plain', "o'neil", ''];
  const cells = ["'=1+1", "'+49", "'-1", "'@SUM(A1)", "'\tx", "''=1", 'plain', "o'neil", ''];
  expect(texts.map(formatCsvCell)).toEqual(cells);
  expect(cells.map(unescapeCsvText)).toEqual(texts);
  expect(formatCsvCell('\r=,"')).toBe('"\'\r=,"""');
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...`'=+-@\t\ra`) }), (text) => {
      const cell = formatCsvCell(text);
      const content = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
      expect(/^[=+\-@\t\r]/.test(content)).toBe(false);
      expect(unescapeCsvText(content)).toBe(text);
    }),
  );
});

test('a full stop is added only if the text ends without punctuation', () => {
  const texts = ['550 No such user', '550 No such user.', 'is the mail server running there?', 'Stop!'];
  expect(texts.map(toSentence)).toEqual([
    '550 No such user.',
    '550 No such user.',
    'is the mail server running there?',
    'Stop!',
  ]);
});
