/**
 * The formats of suppression lists that `suppression import` reads, as data. A format is recognized by the names of its
 * columns, which are the header row of a CSV file or the members of a JSON record. Each row has a meaning: the reason
 * of its entry, or an exclusion. Pure.
 *
 * The column names are those of the providers' documentation (`source`). Column names and values are compared
 * in normalized form (`normalizeName`, `normalizeValue`).
 */
import type { SuppressionReason } from '../model/suppression.ts';

/**
 * The reason why a valid row adds no address. `block`: a refusal because of content, policy or reputation.
 * `soft-bounce`: a temporary failure. `reactivated`: the address was removed from the provider's list. `one-category`:
 * the recipient unsubscribed from one category of messages. `not-suppressed`: the row reports no failure, for example a
 * delivery.
 */
export const EXCLUSIONS = ['block', 'soft-bounce', 'reactivated', 'one-category', 'not-suppressed'] as const;
export type Exclusion = (typeof EXCLUSIONS)[number];

/**
 * `by-reply`: the status code and the reply of the server in the columns `status` and `reason`, or `code` and `error`,
 * determine the meaning.
 */
export type RowMeaning = SuppressionReason | Exclusion | 'by-reply';

/**
 * A rule applies if each column in `columnValues` has one of the values, and each column in `startsWith` has the
 * prefix.
 */
export interface RowRule {
  readonly columnValues?: Readonly<Record<string, readonly string[]>>;
  readonly startsWith?: Readonly<Record<string, string>>;
  readonly meaning: RowMeaning;
}

export interface ExportFormat {
  /** The content and the provider, as in `bounces of Mailgun`. */
  readonly label: string;
  readonly provider: string;
  /** The names of the columns that every file of this format contains. */
  readonly names: readonly string[];
  /**
   * True if a file of this format has no columns other than `names`. Formats with few and common columns need this
   * condition.
   */
  readonly isExact?: true;
  readonly address: string;
  /** The columns with the time, in order of preference. */
  readonly times: readonly string[];
  /**
   * A column that contains free text in this format. If the column contains a reason of a plain list, such as
   * `unsubscribed`, this reason takes precedence over the rules, because a plain list can have the same column names.
   */
  readonly plainReason?: string;
  /** The column whose value an error message quotes if no rule applies; null if the last rule always applies. */
  readonly reason: string | null;
  /**
   * The first rule that applies determines the meaning of a row. If each row of a format is a suppressed address, the
   * last rule has no condition and the meaning `provider`. This rule applies to every reason that the documentation of
   * the provider does not contain.
   */
  readonly rules: readonly RowRule[];
  /** The page that documents the column names. */
  readonly source: string;
}

const POSTMARK_REACTIVATABLE_TYPES = [
  'hardbounce',
  'bademailaddress',
  'spamcomplaint',
  'manuallydeactivated',
  'unsubscribe',
];

/** Returns the rules for the statuses of messages at Mailjet. `column` is the name of the column with the status. */
function createMailjetRules(column: string): readonly RowRule[] {
  return [
    { columnValues: { [column]: ['hardbounced', 'hardbounce'] }, meaning: 'bounce' },
    // Without the column `StatePermanent`, the file is a plain list.
    { columnValues: { [column]: ['bounce', 'bounced'], statepermanent: ['true', ''] }, meaning: 'bounce' },
    { columnValues: { [column]: ['spam'] }, meaning: 'complaint' },
    { columnValues: { [column]: ['unsub', 'unsubscribed'] }, meaning: 'unsubscribed' },
    // The states 14 and 20 are `PreBlocked` and `BlackListed`: Mailjet suppresses the recipient. 21 is `SpamReporter`.
    { columnValues: { [column]: ['blocked'], stateid: ['14', '20'] }, meaning: 'provider' },
    { columnValues: { [column]: ['blocked'], stateid: ['21'] }, meaning: 'complaint' },
    { columnValues: { [column]: ['blocked'] }, meaning: 'block' },
    {
      columnValues: { [column]: ['softbounced', 'softbounce', 'bounce', 'bounced', 'deferred'] },
      meaning: 'soft-bounce',
    },
    {
      columnValues: { [column]: ['unknown', 'processed', 'queued', 'sent', 'delivered', 'opened', 'clicked'] },
      meaning: 'not-suppressed',
    },
  ];
}

/**
 * The formats in the order of recognition. A format whose columns include all columns of another format precedes that
 * format.
 */
export const EXPORT_FORMATS: readonly ExportFormat[] = [
  {
    label: 'suppressions of Postmark',
    provider: 'postmark',
    names: ['emailaddress', 'suppressionreason'],
    address: 'emailaddress',
    times: ['createdat'],
    reason: null,
    rules: [
      { columnValues: { suppressionreason: ['hardbounce'] }, meaning: 'bounce' },
      { columnValues: { suppressionreason: ['spamcomplaint'] }, meaning: 'complaint' },
      { columnValues: { suppressionreason: ['manualsuppression'], origin: ['recipient'] }, meaning: 'unsubscribed' },
      { columnValues: { suppressionreason: ['manualsuppression'] }, meaning: 'manual' },
      { meaning: 'provider' },
    ],
    source: 'https://postmarkapp.com/developer/api/suppressions-api#suppression-dump',
  },
  {
    label: 'bounces of Postmark',
    provider: 'postmark',
    names: ['email', 'type', 'bouncedat', 'inactive'],
    address: 'email',
    times: ['bouncedat'],
    reason: null,
    rules: [
      { columnValues: { inactive: ['false'], type: POSTMARK_REACTIVATABLE_TYPES }, meaning: 'reactivated' },
      { columnValues: { type: ['hardbounce', 'bademailaddress'] }, meaning: 'bounce' },
      { columnValues: { type: ['spamcomplaint'] }, meaning: 'complaint' },
      { columnValues: { type: ['unsubscribe'] }, meaning: 'unsubscribed' },
      { columnValues: { type: ['manuallydeactivated'] }, meaning: 'manual' },
      { columnValues: { inactive: ['true'] }, meaning: 'provider' },
      { columnValues: { type: ['softbounce', 'transient', 'dnserror'] }, meaning: 'soft-bounce' },
      { columnValues: { type: ['blocked', 'dmarcpolicy', 'spamnotification'] }, meaning: 'block' },
      { meaning: 'not-suppressed' },
    ],
    source: 'https://postmarkapp.com/developer/api/bounce-api#bounces',
  },
  {
    label: 'bounces or blocks of SendGrid',
    provider: 'sendgrid',
    // Lists of bounces and lists of blocks have the same column names, so the reply of the server distinguishes them.
    names: ['status', 'reason', 'email'],
    address: 'email',
    times: ['created'],
    plainReason: 'reason',
    reason: null,
    rules: [{ meaning: 'by-reply' }],
    source: 'https://www.twilio.com/docs/sendgrid/api-reference/bounces-api/retrieve-all-bounces',
  },
  {
    label: 'spam reports of SendGrid',
    provider: 'sendgrid',
    names: ['ip', 'email', 'created'],
    isExact: true,
    address: 'email',
    times: ['created'],
    reason: null,
    rules: [{ meaning: 'complaint' }],
    source: 'https://www.twilio.com/docs/sendgrid/api-reference/spam-reports-api/retrieve-all-spam-reports',
  },
  {
    label: 'invalid emails of SendGrid',
    provider: 'sendgrid',
    names: ['reason', 'email', 'created'],
    isExact: true,
    address: 'email',
    times: ['created'],
    plainReason: 'reason',
    reason: null,
    rules: [{ meaning: 'bounce' }],
    source: 'https://www.twilio.com/docs/sendgrid/api-reference/invalid-e-mails-api/retrieve-all-invalid-emails',
  },
  {
    label: 'group unsubscribes of SendGrid',
    provider: 'sendgrid',
    names: ['email', 'groupname'],
    address: 'email',
    times: ['createdat', 'created'],
    reason: null,
    rules: [{ meaning: 'unsubscribed' }],
    source: 'https://www.twilio.com/docs/sendgrid/api-reference/suppressions-suppressions/retrieve-all-suppressions',
  },
  {
    label: 'unsubscribes of SendGrid',
    provider: 'sendgrid',
    names: ['email', 'created'],
    isExact: true,
    address: 'email',
    times: ['created'],
    reason: null,
    rules: [{ meaning: 'unsubscribed' }],
    source:
      'https://www.twilio.com/docs/sendgrid/api-reference/suppressions-global-suppressions/retrieve-all-global-suppressions',
  },
  {
    label: 'bounces of Mailgun',
    provider: 'mailgun',
    names: ['address', 'code', 'error'],
    address: 'address',
    times: ['createdat'],
    reason: null,
    rules: [{ startsWith: { code: '4' }, meaning: 'soft-bounce' }, { meaning: 'by-reply' }],
    source: 'https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/bounces',
  },
  {
    label: 'unsubscribes of Mailgun',
    provider: 'mailgun',
    names: ['address', 'tags'],
    address: 'address',
    times: ['createdat'],
    reason: null,
    // The tag `*` means every message of the domain. Any other tag means one category of messages.
    rules: [
      { columnValues: { tags: ['', '*', '["*"]', "['*']"] }, meaning: 'unsubscribed' },
      { meaning: 'one-category' },
    ],
    source: 'https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/unsubscribe',
  },
  {
    label: 'unsubscribes of Mailgun',
    provider: 'mailgun',
    names: ['address', 'tag'],
    address: 'address',
    times: ['createdat'],
    reason: null,
    rules: [{ columnValues: { tag: ['', '*'] }, meaning: 'unsubscribed' }, { meaning: 'one-category' }],
    source: 'https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/unsubscribe',
  },
  {
    label: 'complaints of Mailgun',
    provider: 'mailgun',
    names: ['address', 'createdat'],
    isExact: true,
    address: 'address',
    times: ['createdat'],
    reason: null,
    rules: [{ meaning: 'complaint' }],
    source: 'https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/complaints',
  },
  {
    label: 'suppression list of Amazon SES',
    provider: 'ses',
    names: ['emailaddress', 'reason'],
    address: 'emailaddress',
    times: ['lastupdatetime'],
    reason: null,
    rules: [
      { columnValues: { reason: ['bounce'] }, meaning: 'bounce' },
      { columnValues: { reason: ['complaint'] }, meaning: 'complaint' },
      { meaning: 'provider' },
    ],
    source: 'https://docs.aws.amazon.com/cli/latest/reference/sesv2/list-suppressed-destinations.html',
  },
  {
    label: 'blocked contacts of Brevo',
    provider: 'brevo',
    // The member `reason` of a record is an object with the member `code`.
    names: ['email', 'reasoncode', 'blockedat'],
    address: 'email',
    times: ['blockedat'],
    reason: null,
    rules: createBrevoRules('reasoncode'),
    source: 'https://developers.brevo.com/reference/get-transac-blocked-contacts',
  },
  {
    label: 'blocked contacts of Brevo',
    provider: 'brevo',
    names: ['email', 'reason', 'blockedat'],
    address: 'email',
    times: ['blockedat'],
    reason: null,
    rules: createBrevoRules('reason'),
    source: 'https://developers.brevo.com/reference/get-transac-blocked-contacts',
  },
  {
    label: 'contacts of Brevo',
    provider: 'brevo',
    names: ['email', 'emailblacklisted'],
    address: 'email',
    times: ['modifiedat'],
    reason: 'emailblacklisted',
    rules: [
      { columnValues: { emailblacklisted: ['true'] }, meaning: 'provider' },
      { columnValues: { emailblacklisted: ['false'] }, meaning: 'not-suppressed' },
    ],
    source: 'https://developers.brevo.com/reference/get-contacts',
  },
  {
    label: 'suppressions of Resend',
    provider: 'resend',
    names: ['email', 'origin', 'createdat'],
    address: 'email',
    times: ['createdat'],
    reason: null,
    rules: [
      { columnValues: { origin: ['bounce'] }, meaning: 'bounce' },
      { columnValues: { origin: ['complaint'] }, meaning: 'complaint' },
      { columnValues: { origin: ['manual'] }, meaning: 'manual' },
      { meaning: 'provider' },
    ],
    source: 'https://resend.com/docs/api-reference/suppressions/list-suppressions',
  },
  {
    label: 'contacts of Mailjet',
    provider: 'mailjet',
    names: ['email', 'isexcludedfromcampaigns'],
    address: 'email',
    times: ['exclusionfromcampaignsupdatedat', 'lastupdateat'],
    reason: 'isexcludedfromcampaigns',
    rules: [
      { columnValues: { isspamcomplaining: ['true'] }, meaning: 'complaint' },
      { columnValues: { isexcludedfromcampaigns: ['true'] }, meaning: 'provider' },
      { columnValues: { isexcludedfromcampaigns: ['false'] }, meaning: 'not-suppressed' },
    ],
    source: 'https://dev.mailjet.com/email/reference/contacts/contact/',
  },
  {
    label: 'messages of Mailjet',
    provider: 'mailjet',
    names: ['contactalt', 'status'],
    address: 'contactalt',
    times: ['arrivedat'],
    reason: 'status',
    rules: createMailjetRules('status'),
    source: 'https://dev.mailjet.com/email/reference/messages/',
  },
  {
    label: 'statistics of Mailjet',
    provider: 'mailjet',
    names: ['email', 'status'],
    address: 'email',
    times: ['arrivedat', 'date', 'time'],
    reason: 'status',
    rules: createMailjetRules('status'),
    source: 'https://dev.mailjet.com/email/reference/messages/',
  },
];

/** Returns the rules for the codes of blocked contacts at Brevo. `column` is the name of the column with the code. */
function createBrevoRules(column: string): readonly RowRule[] {
  return [
    { columnValues: { [column]: ['hardbounce'] }, meaning: 'bounce' },
    { columnValues: { [column]: ['contactflaggedasspam'] }, meaning: 'complaint' },
    {
      columnValues: { [column]: ['unsubscribedviaemail', 'unsubscribedviama', 'unsubscribedviaapi'] },
      meaning: 'unsubscribed',
    },
    { columnValues: { [column]: ['adminblocked'] }, meaning: 'manual' },
    { meaning: 'provider' },
  ];
}

/** The labels of the formats, for the error about an unknown header. */
export const FORMAT_NAMES = [...new Set(EXPORT_FORMATS.map(({ label }) => label))].join(', ');

/** Returns the format of a file with these normalized column names, or null. */
export function findExportFormat(names: readonly string[]): ExportFormat | null {
  const fileNames = new Set(names);
  return (
    EXPORT_FORMATS.find(
      (format) =>
        format.names.every((name) => fileNames.has(name)) &&
        (!format.isExact || fileNames.size === format.names.length),
    ) ?? null
  );
}

/** The maximum number of characters of a column name or a value that are compared. */
const MAX_COMPARED_CHARACTERS = 40;

/**
 * Normalizes the name of a column: `Email-Address` and `emailAddress` are equal. Only ASCII letters and digits remain.
 */
export function normalizeName(text: string): string {
  let name = '';
  for (const character of text.slice(0, MAX_COMPARED_CHARACTERS).toLowerCase()) {
    if ((character >= 'a' && character <= 'z') || (character >= '0' && character <= '9')) name += character;
  }
  return name;
}

/** Normalizes the value of a column: `Hard bounce` and `hard_bounce` are equal. */
export function normalizeValue(text: string): string {
  return text
    .slice(0, MAX_COMPARED_CHARACTERS)
    .toLowerCase()
    .replaceAll(/[\s_-]/g, '');
}

/**
 * Returns the meaning of a row according to the rules, or null if no rule applies. `cell` returns the text of a column.
 */
export function findMeaning(rules: readonly RowRule[], cell: (name: string) => string): RowMeaning | null {
  const rule = rules.find(
    ({ columnValues = {}, startsWith = {} }) =>
      Object.entries(columnValues).every(([name, values]) => values.includes(normalizeValue(cell(name)))) &&
      Object.entries(startsWith).every(([name, prefix]) => normalizeValue(cell(name)).startsWith(prefix)),
  );
  return rule?.meaning ?? null;
}

const PLAIN_ADDRESS_NAMES = [
  'address',
  'email',
  'emailaddress',
  'recipient',
  'recipientaddress',
  'recipientemail',
  'mail',
  'contactemail',
];
const PLAIN_REASON_NAMES = [
  'reason',
  'suppressionreason',
  'suppressiontype',
  'type',
  'bouncetype',
  'event',
  'status',
  'origin',
];
const PLAIN_TIME_NAMES = [
  'at',
  'created',
  'createdat',
  'createdon',
  'datecreated',
  'dateadded',
  'addedat',
  'blockedat',
  'suppressedat',
  'lastupdatetime',
  'bouncedat',
  'date',
  'time',
  'timestamp',
];

/** The columns of a list that is not the export of a known provider; null if there is no such column. */
export interface PlainColumns {
  readonly address: string;
  readonly reason: string | null;
  readonly time: string | null;
}

/**
 * Returns the columns of a plain list by common column names, or null if no column has the name of an address column.
 */
export function findPlainColumns(names: readonly string[]): PlainColumns | null {
  const findColumn = (candidates: readonly string[]) => candidates.find((name) => names.includes(name)) ?? null;
  const address = findColumn(PLAIN_ADDRESS_NAMES);
  return address === null
    ? null
    : { address, reason: findColumn(PLAIN_REASON_NAMES), time: findColumn(PLAIN_TIME_NAMES) };
}

/** The meaning of the words in the reason column of a list that is not the export of a known provider. */
const PLAIN_MEANINGS: ReadonlyMap<string, SuppressionReason | Exclusion> = new Map(
  Object.entries({
    bounce: ['bounce', 'bounced', 'hardbounce', 'hardbounced', 'permanent', 'invalid', 'bademailaddress'],
    complaint: ['complaint', 'complained', 'spam', 'spamcomplaint', 'spamreport', 'abuse'],
    manual: ['manual', 'manualsuppression'],
    unsubscribed: ['unsub', 'unsubscribe', 'unsubscribed'],
    provider: ['provider'],
    'soft-bounce': ['softbounce', 'softbounced', 'transient', 'temporary', 'deferred'],
    reactivated: ['reactivated'],
    'not-suppressed': ['sent', 'delivered', 'opened', 'clicked'],
  } satisfies Partial<Record<SuppressionReason | Exclusion, readonly string[]>>).flatMap(([meaning, words]) =>
    words.map((word) => [word, meaning as SuppressionReason | Exclusion] as const),
  ),
);

/** Returns the meaning of a word such as `HardBounce`, or null for an unknown word. */
export function findPlainMeaning(text: string): SuppressionReason | Exclusion | null {
  return PLAIN_MEANINGS.get(normalizeName(text)) ?? null;
}
