/**
 * Every regular expression in the client library or in a layer that reads bytes from outside, with the reason why it
 * runs in linear time. The check fails if a regular expression is not listed. Replace such an expression with a
 * scanner, or add it with its reason.
 */

/** Layers that process input from clients, relays or remote servers. */
export const EXPOSED_LAYERS: readonly string[] = [
  'classify',
  'doctor',
  'domains',
  'feedback',
  'http',
  'message',
  'model',
  'operator',
  'printing',
  'providers',
  'store',
  'queue',
  'transports',
  'webhooks',
];

export interface ListedRegex {
  readonly file: string;
  /** The literal in the code, with its flags. */
  readonly regex: string;
  readonly reason: string;
}

const SCRIPTS = [
  'Latin',
  'Greek',
  'Cyrillic',
  'Armenian',
  'Georgian',
  'Hebrew',
  'Arabic',
  'Devanagari',
  'Thai',
  'Cherokee',
  'Han',
  'Hiragana',
  'Katakana',
  'Bopomofo',
  'Hangul',
];

export const LISTED_REGEXES: readonly ListedRegex[] = [
  {
    file: 'clients/typescript/src/client.ts',
    regex: '/^[!-~]+$/',
    reason: 'anchored, one character class; the text is an API key or an idempotency key of the caller',
  },
  {
    file: 'clients/typescript/src/client.ts',
    regex: String.raw`/^https?:\/\/[^\s@?#]+$/`,
    reason: 'anchored, one character class; the text is an option of the caller',
  },
  {
    file: 'clients/typescript/src/client.ts',
    regex: String.raw`/\/$/`,
    reason: 'no repetition',
  },
  {
    file: 'clients/typescript/src/client.ts',
    regex: String.raw`/\p{Cc}/gu`,
    reason: 'one character at a time, no repetition',
  },
  {
    file: 'clients/typescript/src/client.ts',
    regex: '/^[0-9a-f-]{36}$/',
    reason: 'anchored, fixed count',
  },
  {
    file: 'clients/typescript/src/client.ts',
    regex: '/^[a-z-]+$/',
    reason: 'anchored, one character class',
  },
  {
    file: 'clients/typescript/src/client.ts',
    regex: String.raw`/^\d+$/`,
    reason: 'anchored, one character class',
  },
  {
    file: 'clients/typescript/src/webhook.ts',
    regex: '/^[^.]+$/',
    reason: 'anchored, one character class',
  },
  {
    file: 'clients/typescript/src/webhook.ts',
    regex: String.raw`/^\d+$/`,
    reason: 'anchored, one character class',
  },
  {
    file: 'clients/typescript/src/webhook.ts',
    regex: '/./',
    reason: 'no repetition',
  },
  {
    file: 'src/model/address.ts',
    regex: String.raw`/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]|(?! )\p{Zs}/u`,
    reason: 'one character at a time, no repetition, on at most 64 octets',
  },
  {
    file: 'src/model/submission.ts',
    regex: '/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/',
    reason: 'anchored, fixed counts, after a check of the length',
  },
  {
    file: 'src/providers/json.ts',
    regex: String.raw`/^-?\d+(?:\.\d+)?$/`,
    reason: 'anchored, two repetitions separated by a point, on at most 32 characters',
  },
  {
    file: 'src/providers/json.ts',
    regex: String.raw`/^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:?\d\d)$/`,
    reason: 'anchored, one repetition, on at most 40 characters',
  },
  {
    file: 'src/providers/json.ts',
    regex: '/^[!-~]+$/',
    reason: 'anchored, one character class, on at most 256 characters',
  },
  {
    file: 'src/doctor/clock.ts',
    regex: String.raw`/\b(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)/`,
    reason: 'fixed counts except one repetition of at most two digits, on at most 500 characters of a greeting',
  },
  {
    file: 'src/operator/access.ts',
    regex: '/^[0-9]{1,3}$/',
    reason: 'anchored, at most three characters',
  },
  {
    file: 'src/operator/frame-html.ts',
    regex: '/<link/gi',
    reason: 'fixed text, no repetition',
  },
  {
    file: 'src/operator/escape-html.ts',
    regex: `/[&<>"']/g`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/model/audit.ts',
    regex: '/At$/',
    reason: 'fixed text, on the name of an internal member',
  },
  {
    file: 'src/model/audit.ts',
    regex: '/[A-Z]/g',
    reason: 'one character class, no repetition, on the name of an internal member',
  },
  {
    file: 'src/domains/dkim-record.ts',
    regex: String.raw`/\s/`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/domains/dmarc-record.ts',
    regex: String.raw`/\s/`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/domains/name.ts',
    regex: String.raw`/\p{C}/gu`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/domains/ses-identity.ts',
    regex: String.raw`/^pr20\d{6}[a-z0-9]{4}a$/`,
    reason: 'anchored, fixed length',
  },
  {
    file: 'src/domains/verify.ts',
    regex: String.raw`/\p{Cc}|\p{Cf}/gu`,
    reason: 'one character at a time, no repetition',
  },
  {
    file: 'src/domains/mixed-scripts.ts',
    regex: String.raw`/\p{Script=Common}|\p{Script=Inherited}/u`,
    reason: 'applied to single characters of a domain name',
  },
  {
    file: 'src/printing/command-line.ts',
    regex: '/(^|`)( *)postrider (?=[a-z-])/gm',
    reason: 'spaces are matched only after the start of a line or a backtick, so each space is read once',
  },
  {
    file: 'src/feedback/proxy-protocol.ts',
    regex: '/^(0|[1-9][0-9]{0,4})$/',
    reason: 'anchored, one character class with a bounded count',
  },
  {
    file: 'src/model/credentials.ts',
    regex: '/^pr_[A-Za-z0-9_-]{43}$/',
    reason: 'anchored, one character class with a fixed count',
  },
  {
    file: 'src/operator/token-authenticator.ts',
    regex: '/^bearer(?: |$)/i',
    reason: 'anchored, no repetition',
  },
  {
    file: 'src/printing/error-line.ts',
    regex: String.raw`/[\r\n]/`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/model/uuid.ts',
    regex: '/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/',
    reason: 'anchored, fixed counts',
  },
  {
    file: 'src/operator/dashboard.ts',
    regex: '/^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/',
    reason: 'anchored, one repeated character class',
  },
  {
    file: 'src/store/postgres/connection.ts',
    regex: String.raw`/\$(\d{1,3})::(uuid|text|int|bigint)\[\]/g`,
    reason: 'bounded count between fixed characters, on SQL statements that this program contains',
  },
  {
    file: 'src/store/postgres/partitions.ts',
    regex: String.raw`/^body_(\d{4})(\d\d)(\d\d)$/`,
    reason: 'anchored, fixed counts, on the names of internal tables',
  },
  {
    file: 'src/store/sqlite/files.ts',
    regex: String.raw`/^\.before-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/`,
    reason: 'an anchored pattern with fixed counts, applied to names of files',
  },
  {
    file: 'src/store/sqlite/files.ts',
    regex: String.raw`/^\.restor(?:e|e-[0-9a-f]{12}|ing-[0-9a-f]{12})$/`,
    reason: 'an anchored pattern with fixed counts, applied to names of files',
  },
  {
    file: 'src/store/search/query.ts',
    regex: String.raw`/\s/`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/store/search/query.ts',
    regex: String.raw`/[\s;-]/`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/store/search/query.ts',
    regex: String.raw`/[\u0300-\u036f]/g`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/store/search/query.ts',
    regex: '/[a-z0-9]+/g',
    reason: 'one character class, repeated; the next character is not in the class, so there is no backtracking',
  },
  {
    file: 'src/store/search/query.ts',
    regex: String.raw`/[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]\p{M}*|[[\p{L}\p{N}\p{M}]--[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]]+|\p{So}/gv`,
    reason:
      'one repeated character class in each alternative, with different first characters, so there is no backtracking',
  },
  {
    file: 'src/feedback/read/phrases.ts',
    regex: String.raw`/[,\n]/`,
    reason: 'one character class, no repetition, on internal data',
  },
  {
    file: 'src/feedback/read/phrases.ts',
    regex: String.raw`/[\s\u2028\u2029]/`,
    reason: 'one character class, no repetition',
  },
  {
    file: 'src/feedback/read/evidence.ts',
    regex: '/^[!-~]+(?: [!-~]+)*$/',
    reason:
      'anchored; a space separates the repetitions and is not in the character class, so there is no backtracking',
  },
  {
    file: 'src/domains/zone-file.ts',
    regex: String.raw`/\s+/g`,
    reason: 'one repeated character class; the text is a description from this program or a validated domain',
  },
  {
    file: 'src/feedback/read/evidence.ts',
    regex: String.raw`/\\x\{([0-9A-Fa-f]{2,6})\}/g`,
    reason: 'bounded count between fixed characters, on an address line of a report',
  },
  ...SCRIPTS.map((script) => ({
    file: 'src/domains/mixed-scripts.ts',
    regex: `/\\p{Script=${script}}/u`,
    reason: 'applied to single characters of a domain name',
  })),
];
