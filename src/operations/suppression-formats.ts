/** Formats that `suppression import` reads, recognized by the normalized names of columns or of members. */
import type { SuppressionReason } from '../model/suppression.ts';

/** `block`: refused for content, policy or reputation. `one-category`: unsubscribed from one category of messages. */
export const EXCLUSIONS = ['block', 'soft-bounce', 'reactivated', 'one-category', 'not-suppressed'] as const;
export type Exclusion = (typeof EXCLUSIONS)[number];

/** `by-reply`: determined by the status code and the reply in `status` and `reason`, or `code` and `error`. */
type RowMeaning = SuppressionReason | Exclusion | 'by-reply';

interface RowRule {
  readonly columnValues?: Readonly<Record<string, readonly string[]>>;
  readonly startsWith?: Readonly<Record<string, string>>;
  readonly meaning: RowMeaning;
}

export interface ExportFormat {
  /** The content and the provider, as in `bounces of Mailgun`. */
  readonly label: string;
  /** The columns that every file of this format contains; the first contains the address. */
  readonly names: readonly [string, ...string[]];
  /** True if a file of this format has no other columns, for formats with few and common columns. */
  readonly isExact?: true;
  /** In order of preference. */
  readonly times: readonly string[];
  /** A reason of a plain list in this column takes precedence over the rules. */
  readonly plainReason?: string;
  /** The column that an error message quotes if no rule applies; absent if the last rule always applies. */
  readonly reason?: string;
  /** The first rule that applies determines the meaning. A last rule without condition covers undocumented reasons. */
  readonly rules: readonly RowRule[];
}

const POSTMARK_REACTIVATABLE_TYPES = [
  'hardbounce',
  'bademailaddress',
  'spamcomplaint',
  'manuallydeactivated',
  'unsubscribe',
];

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

/** In the order of recognition: a format whose columns include all columns of another precedes it. */
export const EXPORT_FORMATS: readonly ExportFormat[] = [
  {
    // https://postmarkapp.com/developer/api/suppressions-api#suppression-dump
    label: 'suppressions of Postmark',
    names: ['emailaddress', 'suppressionreason'],
    times: ['createdat'],
    rules: [
      { columnValues: { suppressionreason: ['hardbounce'] }, meaning: 'bounce' },
      { columnValues: { suppressionreason: ['spamcomplaint'] }, meaning: 'complaint' },
      { columnValues: { suppressionreason: ['manualsuppression'], origin: ['recipient'] }, meaning: 'unsubscribed' },
      { columnValues: { suppressionreason: ['manualsuppression'] }, meaning: 'manual' },
      { meaning: 'provider' },
    ],
  },
  {
    // https://postmarkapp.com/developer/api/bounce-api#bounces
    label: 'bounces of Postmark',
    names: ['email', 'type', 'bouncedat', 'inactive'],
    times: ['bouncedat'],
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
  },
  {
    // https://www.twilio.com/docs/sendgrid/api-reference/bounces-api/retrieve-all-bounces
    label: 'bounces or blocks of SendGrid',
    // Lists of bounces and lists of blocks have the same column names, so the reply of the server distinguishes them.
    names: ['email', 'status', 'reason'],
    times: ['created'],
    plainReason: 'reason',
    rules: [{ meaning: 'by-reply' }],
  },
  {
    // https://www.twilio.com/docs/sendgrid/api-reference/spam-reports-api/retrieve-all-spam-reports
    label: 'spam reports of SendGrid',
    names: ['email', 'ip', 'created'],
    isExact: true,
    times: ['created'],
    rules: [{ meaning: 'complaint' }],
  },
  {
    // https://www.twilio.com/docs/sendgrid/api-reference/invalid-e-mails-api/retrieve-all-invalid-emails
    label: 'invalid emails of SendGrid',
    names: ['email', 'reason', 'created'],
    isExact: true,
    times: ['created'],
    plainReason: 'reason',
    rules: [{ meaning: 'bounce' }],
  },
  {
    // https://www.twilio.com/docs/sendgrid/api-reference/suppressions-suppressions/retrieve-all-suppressions
    label: 'group unsubscribes of SendGrid',
    names: ['email', 'groupname'],
    times: ['createdat', 'created'],
    rules: [{ meaning: 'unsubscribed' }],
  },
  {
    // https://www.twilio.com/docs/sendgrid/api-reference/suppressions-global-suppressions/retrieve-all-global-suppressions
    label: 'unsubscribes of SendGrid',
    names: ['email', 'created'],
    isExact: true,
    times: ['created'],
    rules: [{ meaning: 'unsubscribed' }],
  },
  {
    // https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/bounces
    label: 'bounces of Mailgun',
    names: ['address', 'code', 'error'],
    times: ['createdat'],
    rules: [{ startsWith: { code: '4' }, meaning: 'soft-bounce' }, { meaning: 'by-reply' }],
  },
  {
    // https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/unsubscribe
    label: 'unsubscribes of Mailgun',
    names: ['address', 'tags'],
    times: ['createdat'],
    // The tag `*` means every message of the domain. Any other tag means one category of messages.
    rules: [
      { columnValues: { tags: ['', '*', '["*"]', "['*']"] }, meaning: 'unsubscribed' },
      { meaning: 'one-category' },
    ],
  },
  {
    // https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/unsubscribe
    label: 'unsubscribes of Mailgun',
    names: ['address', 'tag'],
    times: ['createdat'],
    rules: [{ columnValues: { tag: ['', '*'] }, meaning: 'unsubscribed' }, { meaning: 'one-category' }],
  },
  {
    // https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/complaints
    label: 'complaints of Mailgun',
    names: ['address', 'createdat'],
    isExact: true,
    times: ['createdat'],
    rules: [{ meaning: 'complaint' }],
  },
  {
    // https://docs.aws.amazon.com/cli/latest/reference/sesv2/list-suppressed-destinations.html
    label: 'suppression list of Amazon SES',
    names: ['emailaddress', 'reason'],
    times: ['lastupdatetime'],
    rules: [
      { columnValues: { reason: ['bounce'] }, meaning: 'bounce' },
      { columnValues: { reason: ['complaint'] }, meaning: 'complaint' },
      { meaning: 'provider' },
    ],
  },
  {
    // https://developers.brevo.com/reference/get-transac-blocked-contacts
    label: 'blocked contacts of Brevo',
    // The member `reason` of a record is an object with the member `code`.
    names: ['email', 'reasoncode', 'blockedat'],
    times: ['blockedat'],
    rules: createBrevoRules('reasoncode'),
  },
  {
    // https://developers.brevo.com/reference/get-transac-blocked-contacts
    label: 'blocked contacts of Brevo',
    names: ['email', 'reason', 'blockedat'],
    times: ['blockedat'],
    rules: createBrevoRules('reason'),
  },
  {
    // https://developers.brevo.com/reference/get-contacts
    label: 'contacts of Brevo',
    names: ['email', 'emailblacklisted'],
    times: ['modifiedat'],
    reason: 'emailblacklisted',
    rules: [
      { columnValues: { emailblacklisted: ['true'] }, meaning: 'provider' },
      { columnValues: { emailblacklisted: ['false'] }, meaning: 'not-suppressed' },
    ],
  },
  {
    // https://resend.com/docs/api-reference/suppressions/list-suppressions
    label: 'suppressions of Resend',
    names: ['email', 'origin', 'createdat'],
    times: ['createdat'],
    rules: [
      { columnValues: { origin: ['bounce'] }, meaning: 'bounce' },
      { columnValues: { origin: ['complaint'] }, meaning: 'complaint' },
      { columnValues: { origin: ['manual'] }, meaning: 'manual' },
      { meaning: 'provider' },
    ],
  },
  {
    // https://dev.mailjet.com/email/reference/contacts/contact/
    label: 'contacts of Mailjet',
    names: ['email', 'isexcludedfromcampaigns'],
    times: ['exclusionfromcampaignsupdatedat', 'lastupdateat'],
    reason: 'isexcludedfromcampaigns',
    rules: [
      { columnValues: { isspamcomplaining: ['true'] }, meaning: 'complaint' },
      { columnValues: { isexcludedfromcampaigns: ['true'] }, meaning: 'provider' },
      { columnValues: { isexcludedfromcampaigns: ['false'] }, meaning: 'not-suppressed' },
    ],
  },
  {
    // https://dev.mailjet.com/email/reference/messages/
    label: 'messages of Mailjet',
    names: ['contactalt', 'status'],
    times: ['arrivedat'],
    reason: 'status',
    rules: createMailjetRules('status'),
  },
  {
    // https://dev.mailjet.com/email/reference/messages/
    label: 'statistics of Mailjet',
    names: ['email', 'status'],
    times: ['arrivedat', 'date', 'time'],
    reason: 'status',
    rules: createMailjetRules('status'),
  },
];

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

export const FORMAT_NAMES = [...new Set(EXPORT_FORMATS.map(({ label }) => label))].join(', ');

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

const MAX_COMPARED_CHARACTERS = 40;

/** `Email-Address` and `emailAddress` are equal. Only ASCII letters and digits remain. */
export function normalizeName(text: string): string {
  let name = '';
  for (const character of text.slice(0, MAX_COMPARED_CHARACTERS).toLowerCase()) {
    if ((character >= 'a' && character <= 'z') || (character >= '0' && character <= '9')) name += character;
  }
  return name;
}

/** `Hard bounce` and `hard_bounce` are equal. */
export function normalizeValue(text: string): string {
  return text
    .slice(0, MAX_COMPARED_CHARACTERS)
    .toLowerCase()
    .replaceAll(/[\s_-]/g, '');
}

/** Returns null if no rule applies. `cell` returns the text of a column. */
export function findMeaning(rules: readonly RowRule[], cell: (name: string) => string): RowMeaning | null {
  const rule = rules.find(
    ({ columnValues = {}, startsWith = {} }) =>
      Object.entries(columnValues).every(([name, values]) => values.includes(normalizeValue(cell(name)))) &&
      Object.entries(startsWith).every(([name, prefix]) => normalizeValue(cell(name)).startsWith(prefix)),
  );
  return rule?.meaning ?? null;
}

const PLAIN_ADDRESS_NAMES =
  'address email emailaddress recipient recipientaddress recipientemail mail contactemail'.split(' ');
const PLAIN_REASON_NAMES = 'reason suppressionreason suppressiontype type bouncetype event status origin'.split(' ');
const PLAIN_TIME_NAMES =
  'at created createdat createdon datecreated dateadded addedat blockedat suppressedat lastupdatetime bouncedat date time timestamp'.split(
    ' ',
  );

export interface PlainColumns {
  readonly address: string;
  readonly reason: string | null;
  readonly time: string | null;
}

export function findPlainColumns(names: readonly string[]): PlainColumns | null {
  const findColumn = (candidates: readonly string[]) => candidates.find((name) => names.includes(name)) ?? null;
  const address = findColumn(PLAIN_ADDRESS_NAMES);
  return address === null
    ? null
    : { address, reason: findColumn(PLAIN_REASON_NAMES), time: findColumn(PLAIN_TIME_NAMES) };
}

/** The words in the reason column of a plain list. */
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

export function findPlainMeaning(text: string): SuppressionReason | Exclusion | null {
  return PLAIN_MEANINGS.get(normalizeName(text)) ?? null;
}
