import type { Environment } from '../../src/config/load.ts';
import type { SETTINGS_TABLE } from '../../src/config/table.ts';
import { getFormat } from './event-format.ts';

const SENDGRID_EVENTS = getFormat('sendgrid');
const RESEND_EVENTS = getFormat('resend');
const POSTAL_EVENTS = getFormat('postal');

export interface WrongValue {
  readonly value: string;
  /** Text that the error contains: the problem or the remedy. */
  readonly errorText: string;
  /** Settings that the test also sets, because the value is wrong only in combination with them. */
  readonly otherSettings: Environment;
}

export type SettingKey = keyof typeof SETTINGS_TABLE;

type WrongRow = readonly (readonly [value: string, errorText: string, otherSettings?: Environment])[];

export const SECRET_WORD = 'hunter2';

const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:a';
const QUEUE = 'https://sqs.eu-west-1.amazonaws.com/123456789012/ses-feedback';

const NOTIFY_KEY = Buffer.from(SECRET_WORD.repeat(4)).toString('base64');

const NO_PORT = 'no port from 0 to 65535';
const NO_ADDRESS = 'is not an address such as 127.0.0.1:8080';
const WRONG_ADDRESSES: WrongRow = [
  ['8080', NO_ADDRESS],
  ['127.0.0.1', NO_ADDRESS],
  ['127.0.0.1:', NO_PORT],
  ['127.0.0.1:65536', NO_PORT],
  ['127.0.0.1:8080/path', NO_PORT],
  ['127.0.0.300:80', NO_ADDRESS],
  ['me@127.0.0.1:80', NO_ADDRESS],
  ['::1:8080', 'needs brackets around the IPv6 address; write [::1]:8080'],
  ['[127.0.0.1]:8080', NO_ADDRESS],
  ['http://127.0.0.1:8080', NO_ADDRESS],
];
const WRONG_SOCKETS: WrongRow = [
  ['unix:', 'unix:/run/postrider/api.sock'],
  ['unix:api.sock', 'unix:/run/postrider/api.sock'],
  [`unix:/${'x'.repeat(103)}`, 'has a path of 104 bytes, and the limit is 103 bytes'],
];

const WRONG_TEXT_SECRETS: WrongRow = [
  [SECRET_WORD, 'the secret has fewer than 8 characters'],
  [`${SECRET_WORD}-long,`, 'contains an empty secret; remove a comma'],
  [`${SECRET_WORD}-long`, 'no listener receives the events; set POSTRIDER_FEEDBACK_HTTP_LISTEN'],
];
const WRONG_BASIC_SECRETS: WrongRow = [
  [SECRET_WORD, 'has no user name before a colon; give USER:PASSWORD'],
  [`:${SECRET_WORD}-long`, 'has no user name before a colon'],
  [`u:${SECRET_WORD}`, 'the password has fewer than 8 characters'],
  [`u:${SECRET_WORD}-long,`, 'contains an empty secret; remove a comma'],
  [`u:${SECRET_WORD}-long`, 'no listener receives the events; set POSTRIDER_FEEDBACK_HTTP_LISTEN'],
];

const WRONG_FILES: WrongRow = [
  ['/no/such/file.pem', 'there is no file'],
  ['/', 'is not a file'],
  [`/${'x'.repeat(300)}`, 'cannot be read (ENAMETOOLONG)'],
];

const WRONG_POSTGRES: WrongRow = [
  [`postgres://me:${SECRET_WORD}@db.example`, 'names no database after the host'],
  [`postgres://me:${SECRET_WORD}%@db.example/mail`, 'write %25'],
  [`postgres://me:${SECRET_WORD}@db.example/mail?sslmod=require`, 'did you mean sslmode?'],
];

const WRONG_ROWS: { readonly [key in SettingKey]: WrongRow } = {
  database: [
    ...WRONG_POSTGRES,
    ['./data/postrider.db', 'sqlite:./data/postrider.db'],
    [`mysql://me:${SECRET_WORD}@db.example/mail`, 'is not a database such as'],
    [`sqlite:postgres://me:${SECRET_WORD}@db.example/mail`, 'remove sqlite:'],
    ['sqlite:', 'names no file'],
    ['sqlite::memory:', 'would lose accepted messages'],
    ['sqlite://host/file.db', 'names a host'],
    ['sqlite:./p.db?mode=ro', 'has parameters'],
  ],
  databaseDirect: [
    ...WRONG_POSTGRES,
    ['sqlite:./data/postrider.db', 'is not a URL such as postgres://'],
    [`postgres://me:${SECRET_WORD}@db.example/mail?pooler=transaction`, 'give the address of the server itself'],
    [`postgres://me:${SECRET_WORD}@db.example/mail`, 'needs PostgreSQL in POSTRIDER_DATABASE'],
  ],
  requireSyncStandby: [
    ['true', 'is not one of no, yes'],
    ['yes', 'needs PostgreSQL in POSTRIDER_DATABASE'],
  ],
  transport: [
    ['smtp', 'needs // after the scheme'],
    [`smpt://me:${SECRET_WORD}@relay.example`, 'did you mean smtp?'],
    [`smtp://me:${SECRET_WORD}@`, 'has no host'],
    [`smtp://me:${SECRET_WORD}%zz@relay.example`, 'write % as %25'],
    [`smtp://:${SECRET_WORD}@relay.example`, 'set both, or remove them'],
    [`smtp://me:${SECRET_WORD}@relay.example?tsl=required`, 'did you mean tls?'],
    [`ses://AKIA:${SECRET_WORD}@eu-west-1`, 'set AWS_ACCESS_KEY_ID'],
  ],
  listen: [
    ...WRONG_ADDRESSES,
    ...WRONG_SOCKETS,
    [':8081', 'set another port for one of them'],
    ['[::]:8081', 'set another port for one of them'],
    ['unix:/run/a.sock', 'set another path', { POSTRIDER_OPERATOR_LISTEN: 'unix:/run/a.sock' }],
  ],
  operatorListen: [
    ...WRONG_ADDRESSES,
    ...WRONG_SOCKETS,
    ['127.0.0.1:8080', 'set another port for one of them'],
    ['0.0.0.0:8081', 'set POSTRIDER_OPERATOR_PASSWORD'],
    ['unix:/run/postrider/operator.sock', 'set POSTRIDER_OPERATOR_PASSWORD'],
  ],
  operatorPassword: [
    [SECRET_WORD, '8 to 200 characters'],
    [SECRET_WORD.repeat(29), '8 to 200 characters'],
  ],
  trustedProxies: [
    ['proxy.example', 'is not an IP address or a network'],
    ['10.0.0.0/33', 'is not an IP address or a network'],
    ['2001:db8::/129', 'is not an IP address or a network'],
    ['10.0.0.1,', '"" is not an IP address'],
    ['10.0.0.1, 10.0.0.1', '"10.0.0.1" is given twice; remove one'],
  ],
  tlsCert: WRONG_FILES,
  tlsKey: WRONG_FILES,
  senders: [['anyone', 'did you mean any?']],
  maxAgeMs: [
    ['0', 'is not a duration such as'],
    ['0s', 'not between 1s and 30d'],
    ['31d', 'not between 1s and 30d'],
  ],
  maxRequestBytes: [
    ['0', 'not between 1KiB and 64MiB'],
    ['1GiB', 'not between 1KiB and 64MiB'],
    ['large', 'is not a size such as'],
  ],
  keepBodyMs: [['3651d', 'not between 0s and 3650d']],
  keepHistoryMs: [
    ['3651d', 'not between 0s and 3650d'],
    ['6d', 'is less than POSTRIDER_KEEP_BODY'],
  ],
  keepAuditMs: [['3651d', 'not between 0s and 3650d']],
  onUncertain: [['drop', 'is not one of resend, hold']],
  secret: [
    [SECRET_WORD, '64 hexadecimal digits'],
    ['0f'.repeat(33), '64 hexadecimal digits'],
    [`${SECRET_WORD}${'0'.repeat(57)}`, '64 hexadecimal digits'],
    [` ${'0f'.repeat(32)}`, '64 hexadecimal digits'],
  ],
  dns: [
    ['192.0.2.53', 'is not a resolver such as 127.0.0.1:53'],
    ['127.0.0.1:0', 'is not a resolver such as'],
    ['dns.example:53', 'is not a resolver such as'],
    ['127.0.0.1:53,127.0.0.2:53', 'is not a resolver such as'],
  ],
  returnPathDomain: [
    ['localhost', 'is not a domain such as'],
    ['192.0.2.1', 'is not a domain such as'],
    ['me@bounces.example.com', 'is not a domain such as'],
    ['a.example,b.example', 'is not a domain such as'],
    [`${'x'.repeat(64)}.example.com`, 'is not a domain such as'],
  ],
  feedbackListen: [
    ...WRONG_ADDRESSES,
    ['unix:/run/postrider/smtp.sock', 'is a unix socket, which this setting does not support'],
    ['127.0.0.1:2525', 'set POSTRIDER_RETURN_PATH_DOMAIN to its domain'],
    ['127.0.0.1:8080', 'set another port for one of them', { POSTRIDER_RETURN_PATH_DOMAIN: 'b.example.com' }],
  ],
  feedbackHttpListen: [
    ...WRONG_ADDRESSES,
    ...WRONG_SOCKETS,
    ['127.0.0.1:8082', 'has no endpoint; set POSTRIDER_SES_TOPICS'],
    ['127.0.0.1:8081', 'set another port for one of them', { POSTRIDER_SES_TOPICS: TOPIC }],
  ],
  feedbackUrl: [
    ['events.example.com', 'is not a URL such as https://events.example.com'],
    ['ftp://events.example.com', 'is not a URL such as'],
    [`https://me:${SECRET_WORD}@events.example.com`, 'is not a URL such as'],
    ['https://events.example.com?x=1', 'is not a URL such as'],
  ],
  postmarkEvents: WRONG_BASIC_SECRETS,
  sendgridEvents: [
    [SECRET_WORD, 'the value is not a public key in base64 DER'],
    [`-----BEGIN PUBLIC KEY-----${SENDGRID_EVENTS.secretExample}`, 'copy the key without its PEM lines'],
    [`${SENDGRID_EVENTS.secretExample},`, 'contains an empty secret; remove a comma'],
    [SENDGRID_EVENTS.secretExample, 'no listener receives the events; set POSTRIDER_FEEDBACK_HTTP_LISTEN'],
  ],
  mailgunEvents: WRONG_TEXT_SECRETS,
  resendEvents: [
    [SECRET_WORD, 'the secret does not begin with whsec_'],
    [`whsec_${SECRET_WORD}`, 'the text after whsec_ is not a key in base64'],
    [`${RESEND_EVENTS.secretExample},`, 'contains an empty secret; remove a comma'],
    [RESEND_EVENTS.secretExample, 'no listener receives the events; set POSTRIDER_FEEDBACK_HTTP_LISTEN'],
  ],
  brevoEvents: [...WRONG_BASIC_SECRETS, [`Bearer ${SECRET_WORD}`, 'the token has fewer than 8 characters']],
  mailjetEvents: WRONG_BASIC_SECRETS,
  sparkpostEvents: WRONG_BASIC_SECRETS,
  mandrillEvents: [
    ...WRONG_TEXT_SECRETS,
    [`${SECRET_WORD}-long`, 'cover; set POSTRIDER_FEEDBACK_URL', { POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:8082' }],
  ],
  mailersendEvents: WRONG_TEXT_SECRETS,
  mailtrapEvents: WRONG_TEXT_SECRETS,
  postalEvents: [
    [SECRET_WORD, 'the value is not a public key in base64 DER'],
    [`${POSTAL_EVENTS.secretExample},`, 'contains an empty secret; remove a comma'],
    [POSTAL_EVENTS.secretExample, 'no listener receives the events; set POSTRIDER_FEEDBACK_HTTP_LISTEN'],
  ],
  feedbackLoops: [
    ['a b', '"a b" is not a domain'],
    ['fbl.example.com,', '"" is not a domain'],
    ['fbl.example.com, FBL.example.com', 'is given twice; remove one'],
    ['fbl.example.com', 'no listener receives the complaints; set POSTRIDER_FEEDBACK_LISTEN'],
  ],
  sesTopics: [
    ['ses-feedback', 'is not the ARN of an SNS topic'],
    ['arn:aws:sns:eu-west-1:1234:a', 'is not the ARN of an SNS topic'],
    [`${TOPIC},`, '"" is not the ARN'],
    [`${TOPIC}, ${TOPIC}`, 'is given twice; remove one', { POSTRIDER_SES_QUEUE: QUEUE }],
    [TOPIC, 'no listener or queue receives the events'],
  ],
  sesQueue: [
    ['ses-feedback', 'is not the URL of an SQS queue'],
    ['https://sqs.example/', 'is not the URL of an SQS queue'],
    [`https://me:${SECRET_WORD}@sqs.example/1/q`, 'is not the URL of an SQS queue'],
    [`https://sqs.example/1/q?token=${SECRET_WORD}`, 'is not the URL of an SQS queue'],
  ],
  operatorUrl: [
    ['mail.example.com', 'is not a URL such as https://mail.example.com'],
    [`https://me:${SECRET_WORD}@mail.example.com`, 'is not a URL such as'],
  ],
  notifyTargets: [
    ['ops@example.com', 'is not a target such as mailto:ops@example.com or https://hooks.example.com/postrider'],
    [`https:/hooks.example.com/${SECRET_WORD}`, 'is not a target such as mailto:ops@example.com'],
    ['mailto:ops', 'is not an address such as mailto:ops@example.com'],
    ['mailto:ops@example.com,', 'contains an empty target; remove a comma'],
    ['mailto:ops@example.com, MAILTO:ops@example.com', 'is given twice; remove one'],
    [Array.from({ length: 11 }, (_, n) => `mailto:ops${n}@example.com`).join(), 'has 11 targets; give at most 10'],
    [`https://me:${SECRET_WORD}@hooks.example.com/`, 'contains a user name or a password; remove them'],
    [`http://hooks.example.com/${SECRET_WORD}?x=${SECRET_WORD}`, 'use https, or set POSTRIDER_WEBHOOK_TARGETS=any'],
    [`https://127.0.0.1/${SECRET_WORD}`, 'which is not public (loopback'],
    [`https://hooks.example.com/${SECRET_WORD},https://hooks.example.com/${SECRET_WORD}`, 'is given twice; remove one'],
    ['https://hooks.example.com/', 'whose requests are signed; set POSTRIDER_NOTIFY_SECRET'],
    ['mailto:ops@example.com', 'needs a sender; set POSTRIDER_NOTIFY_FROM'],
  ],
  notifyFrom: [
    ['Postrider <ops@example.com>', 'is not an address such as postrider@example.com'],
    [
      'ops@example.com',
      'POSTRIDER_NOTIFY has no mail target; add one, or remove POSTRIDER_NOTIFY_FROM',
      { POSTRIDER_NOTIFY: 'https://hooks.example.com/', POSTRIDER_NOTIFY_SECRET: `whsec_${NOTIFY_KEY}` },
    ],
  ],
  notifySecrets: [
    [SECRET_WORD, 'a secret must be `whsec_` followed by the base64 encoding of 24 to 64 bytes'],
    [`whsec_${SECRET_WORD}`, 'a secret must be `whsec_`'],
    [`whsec_${NOTIFY_KEY},`, 'a secret must be `whsec_`'],
    [
      `whsec_${NOTIFY_KEY},whsec_${NOTIFY_KEY},whsec_${NOTIFY_KEY}`,
      'has 3 secrets; give the new secret and the previous one',
    ],
    [
      `whsec_${NOTIFY_KEY}`,
      'POSTRIDER_NOTIFY has no HTTPS target; add one, or remove POSTRIDER_NOTIFY_SECRET',
      { POSTRIDER_NOTIFY: 'mailto:ops@example.com', POSTRIDER_NOTIFY_FROM: 'ops@example.com' },
    ],
  ],
  webhookTargets: [['private', '"private" is not one of public, any']],
  roles: [
    ['api,delivery', '"delivery" is not a role'],
    ['api,', '"" is not a role'],
    ['api, api', '"api" is given twice; remove one'],
    ['feedback', 'the role feedback has no source of feedback; set POSTRIDER_FEEDBACK_LISTEN'],
  ],
  logLevel: [['warning', 'did you mean warn?']],
  logRecipients: [['mask', 'did you mean masked?']],
};

export function listSettingsWithWrongValues(): readonly string[] {
  return Object.keys(WRONG_ROWS);
}

export function getWrongValues(key: SettingKey, example: string): readonly WrongValue[] {
  const commonRow: WrongRow = [
    ['', 'is empty in the environment; set a value, or remove it'],
    [' \t ', 'is empty in the environment; set a value, or remove it'],
    [`${example}\n`, 'contains a line break or another control character; remove it'],
    [`${example}\0`, 'contains a line break or another control character; remove it'],
  ];
  return [...commonRow, ...WRONG_ROWS[key]].map(([value, errorText, otherSettings = {}]) => ({
    value,
    errorText,
    otherSettings,
  }));
}
