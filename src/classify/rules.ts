/**
 * Rules for the replies of mail servers and providers, as data. The first matching rule decides. The order is: configuration of
 * this service, reputation of this service, temporary failures, the message, the mailbox, sender and policy, protocol errors.
 *
 * Phrases are in lower case and match whole words of the reply text. A phrase that ends with `*` also matches longer words:
 * `greylist*` matches `greylisted`. A rule with a permanent result applies only if the reply code and the enhanced code are both
 * permanent. Each rule has sample replies, and a test checks that each sample matches its rule. The enhanced codes are defined in
 * RFC 3463, RFC 4954, RFC 5248, RFC 6710, RFC 7372 and RFC 7505.
 */
import type { FailureCategory } from '../model/failure.ts';
import type { Reason, Stage } from '../model/outcome.ts';

export type RuleResult =
  | { readonly kind: 'permanent'; readonly reason: Reason; readonly suppress: boolean }
  | { readonly kind: 'temporary'; readonly reason: Reason; readonly scope: 'message' | 'transport' };

export interface Rule {
  readonly name: string;
  /** The rule matches only replies at these stages. If absent, the rule matches replies at every stage. */
  readonly stages?: readonly Stage[];
  /** The rule matches only replies with these codes. If absent, the rule matches replies with any code. */
  readonly codes?: readonly number[];
  /**
   * Patterns of enhanced codes: `5.1.1` matches this code in every class, `5.7.` matches every code with this subject,
   * and the empty string matches a missing code.
   */
  readonly enhancedCodes?: readonly string[];
  /** The rule matches only texts that contain one of these phrases. */
  readonly phrases?: readonly string[];
  /** The rule matches no text that contains one of these phrases. */
  readonly exceptPhrases?: readonly string[];
  readonly result: RuleResult;
  /** The category of the failure. If absent, the reason of the result determines the category. */
  readonly category?: FailureCategory;
  /** Sample replies of real servers. Each sample begins with the stage and a space. */
  readonly samples: readonly string[];
}

const STAGES_BEFORE_MAIL: readonly Stage[] = ['connect', 'greeting', 'ehlo', 'starttls'];
const STAGES_BEFORE_CONTENT: readonly Stage[] = [...STAGES_BEFORE_MAIL, 'mail', 'rcpt'];
const MESSAGE_STAGES: readonly Stage[] = ['rcpt', 'data', 'content'];
const MAILBOX_STAGES: readonly Stage[] = ['rcpt', 'content'];

/** Phrases of a failed DNS lookup. A failed lookup does not prove that the domain does not exist. */
const FAILED_LOOKUP_PHRASES: readonly string[] = [
  'nameserver*',
  'name server*',
  'unreachable',
  'servfail',
  'unable to resolve',
  'cannot resolve',
  'cannot be resolved',
  'could not resolve',
  'could not be resolved',
  'lookup failed',
  'lookup failure*',
  'lookup error*',
];

/** Phrases of other causes. A reply with one of them does not prove that the mailbox does not exist. */
const OTHER_CAUSE_PHRASES: readonly string[] = [
  'spam*',
  'antispam*',
  'block*',
  'blacklist*',
  'black list*',
  'reputation*',
  'listed',
  'policy',
  'policies',
  'denied',
  'banned',
  'prohibited',
  'not permitted',
  'not allowed',
  'unsolicited*',
  'abuse*',
  'spf*',
  'dkim*',
  'dmarc*',
  'dnsbl*',
  'rbl*',
  'uribl*',
  'surbl*',
  'relaying',
  'greylist*',
  'graylist*',
  'rate limit*',
  'too many',
  'receiving mail',
  'try again',
  'later',
  'temporar*',
  'quota*',
  'is full',
  'mailbox full',
  'inbox full',
  'storage full',
  'disk full',
  'sender*',
  'from address*',
  'mail from',
  'verify',
  'verified',
  'authenticat*',
  'notauthenticat*',
  'virus*',
  'antivirus*',
  'content*',
  'client host*',
  'helo*',
  'dns*',
  'timeout*',
  'timed out',
  // Phrases about counts and volumes. A server that uses them refuses the number of recipients or messages, not this
  // mailbox.
  'count',
  'counts',
  'threshold*',
  'exceed*',
  'limit',
  'limits',
  'limited',
  'volume*',
  'rate',
  'frequen*',
  ...FAILED_LOOKUP_PHRASES,
];

/** Phrases of a domain that does not exist, or that accepts no mail (a null MX record, RFC 7505). */
const DOMAIN_PHRASES: readonly string[] = [
  'null mx',
  'nullmx',
  'null-mx',
  'does not accept mail',
  'does not accept email',
  'does not accept any mail',
  'does not receive mail',
  'does not receive email',
  'no smtp service',
  'no mail service',
  'unrouteable mail domain',
  'unroutable mail domain',
  'all relevant mx records point to non-existent',
  'recipient domain not found',
  'recipient domain does not exist',
  'domain does not exist',
  'domain not found',
  'no such domain',
  'unknown domain',
  'host unknown',
  'unknown host',
  'host not found',
];

/** Phrases of another subject in a reply about a domain. */
const OTHER_DOMAIN_PHRASES: readonly string[] = [
  'mail from',
  'email from',
  'messages from',
  'client*',
  'your',
  'relay host',
  'smart host',
  'smarthost',
  'service not available',
];

const BLOCKLIST_PHRASES: readonly string[] = [
  'spamhaus*',
  'spamcop*',
  'sorbs*',
  'barracudacentral*',
  'blocklist*',
  'block list*',
  'blacklist*',
  'black list*',
  'denylist*',
  'dnsbl*',
  'rbl*',
  'reputation*',
  'listed at',
  'listed in',
  'listed on',
  'listed by',
  'blocked using',
  'banned sending ip',
  'has been blocked',
  'is blocked',
  'was blocked',
  'temporarily blocked',
  'your ip*',
  'sender ip*',
  'sending ip*',
  'your host*',
  'your network*',
  'from your server',
  'connections from this host',
  'connections will not be accepted from',
  'unsolicited mail originating*',
  'user complaints',
  'unexpected volume',
  'excessive spam',
];

const SPAM_PHRASES: readonly string[] = [
  'spam*',
  'antispam*',
  'unsolicited*',
  'bulk mail*',
  'phish*',
  'virus*',
  'antivirus*',
  'malware*',
  'message content*',
  'content rejected',
  'content filter*',
  'suspicious*',
  'blocked because its content',
  'url in this message*',
  'attachment*',
];

const CONFIGURATION_FAULT: RuleResult = { kind: 'temporary', reason: 'configuration', scope: 'transport' };
/**
 * A configuration fault of one sender. Messages of other senders are delivered, so this fault must not open the circuit
 * breaker.
 */
const SENDER_CONFIGURATION_FAULT: RuleResult = { kind: 'temporary', reason: 'configuration', scope: 'message' };
const REPUTATION_REFUSAL: RuleResult = { kind: 'temporary', reason: 'reputation', scope: 'transport' };
const RECIPIENT_UNKNOWN: RuleResult = { kind: 'permanent', reason: 'recipient-unknown', suppress: true };

export const RULES: readonly Rule[] = [
  // ── Configuration of this service ─────────────────────────────────────────────────────────────────────
  {
    name: 'temporary sign-in failure',
    stages: ['auth'],
    codes: [421, 432, 451, 454],
    result: { kind: 'temporary', reason: 'unavailable', scope: 'transport' },
    samples: ['auth 454 4.7.0 Temporary authentication failure', 'auth 421 4.7.0 Try again later, closing connection.'],
  },
  {
    name: 'credentials refused',
    stages: ['auth'],
    codes: [500, 501, 502, 503, 504, 525, 530, 534, 535, 538, 550, 554],
    result: CONFIGURATION_FAULT,
    samples: [
      'auth 535 5.7.8 Username and Password not accepted',
      'auth 535 Authentication Credentials Invalid',
      'auth 535 5.7.3 Authentication unsuccessful',
      'auth 534 5.7.9 Application-specific password required',
      'auth 538 5.7.11 Encryption required for requested authentication mechanism',
      'auth 525 5.7.1 Unauthorized IP address',
    ],
  },
  {
    name: 'sign-in required',
    codes: [530, 534, 535, 538],
    result: CONFIGURATION_FAULT,
    samples: [
      'mail 530 5.7.0 Authentication Required',
      'mail 530 Authentication required',
      'mail 530 5.7.0 Must issue a STARTTLS command first',
      'mail 530 5.7.57 Client not authenticated to send mail',
      'mail 535 5.7.8 Error: authentication failed',
    ],
  },
  {
    name: 'relaying denied',
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: [
      'relay access denied*',
      'relaying denied',
      'relay denied',
      'relay not permitted',
      'relay is not permitted',
      'relaying not allowed',
      'relaying is not allowed',
      'relaying is prohibited',
      'relay prohibited',
      'unable to relay',
      'not permitted to relay',
      'do not relay',
      'authenticated to relay',
      'rcpthosts',
      'unauthorized ip address',
    ],
    result: CONFIGURATION_FAULT,
    samples: [
      'rcpt 554 5.7.1 <a@b.example>: Relay access denied',
      'rcpt 550 5.7.1 Relaying denied',
      'rcpt 550 5.7.1 <a@b.example>... Relaying denied. Proper authentication required.',
      'rcpt 550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain',
      'rcpt 550 relay not permitted',
      "rcpt 553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)",
      'rcpt 454 4.7.1 <a@b.example>: Relay access denied',
      'mail 550-5.7.0 Mail relay denied [192.0.2.1].',
    ],
  },
  {
    name: 'sign-in required, by text',
    stages: STAGES_BEFORE_CONTENT,
    phrases: [
      'authentication required',
      'authentication is required',
      'must authenticate',
      'please authenticate',
      'auth required',
      'client was not authenticated',
      'client not authenticated',
      'not logged in',
      'starttls command first',
      'invalid credentials',
    ],
    result: CONFIGURATION_FAULT,
    samples: [
      'mail 550 5.7.1 Client was not authenticated',
      'rcpt 554 5.7.1 Authentication required',
      'rcpt 550-5.7.1 Invalid credentials for relay [192.0.2.1].',
      'rcpt 553 5.7.1 <a@b.example>: Sender address rejected: not logged in',
    ],
  },
  {
    name: 'EHLO name refused',
    phrases: [
      'helo command rejected',
      'invalid helo',
      'invalid ehlo',
      'bad helo',
      'helo name*',
      'ehlo name*',
      'helo/ehlo',
    ],
    result: CONFIGURATION_FAULT,
    samples: [
      'rcpt 504 5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname',
      'ehlo 550 Invalid HELO name (See RFC2821 4.1.1.1)',
      'ehlo 501 Syntactically invalid EHLO argument(s)',
      'rcpt 450 4.7.1 <mailer>: Helo command rejected: Host not found',
    ],
  },
  {
    name: 'EHLO refused by syntax',
    stages: ['ehlo'],
    codes: [500, 501, 502, 504],
    result: CONFIGURATION_FAULT,
    samples: ['ehlo 501 5.5.4 Invalid domain name', 'ehlo 504 Parameter not implemented'],
  },
  {
    name: 'no reverse DNS name',
    phrases: ['ptr record*', 'reverse dns', 'cannot find your', 'reverse hostname', 'no reverse', 'dns ptr', 'rdns'],
    result: CONFIGURATION_FAULT,
    samples: [
      'rcpt 550 5.7.25 [192.0.2.1] The IP address sending this message does not have a PTR record setup',
      'rcpt 450 4.7.1 Client host rejected: cannot find your hostname, [192.0.2.1]',
      'rcpt 550 5.7.1 Client host rejected: cannot find your reverse hostname, [192.0.2.1]',
      'greeting 554-gmx.example (mxgmx101) Nemesis ESMTP Service not available, Bad DNS PTR resource record.',
    ],
  },
  {
    name: 'no reverse DNS name, by code',
    enhancedCodes: ['5.7.25'],
    result: CONFIGURATION_FAULT,
    samples: ['content 550 5.7.25 See the guidelines for senders'],
  },
  {
    name: 'account paused',
    phrases: [
      'sending paused',
      'account is paused',
      'sending suspended',
      'smtp account is not',
      'account is not yet activated',
      'account is under review',
    ],
    result: CONFIGURATION_FAULT,
    samples: [
      'content 554 Sending paused for this account. For more information, please check the inbox of the address of the account.',
      'mail 502 5.7.0 Your SMTP account is not yet activated',
    ],
  },
  {
    name: 'configuration set of Amazon SES does not exist or is not allowed to send',
    stages: ['data', 'content'],
    phrases: ['configuration set*'],
    // Each account can have its own configuration set.
    result: SENDER_CONFIGURATION_FAULT,
    samples: ['content 554 Configuration set <news> does not exist.'],
  },
  {
    name: 'sender not verified with the provider',
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: [
      'address is not verified',
      'identities failed the check',
      'verified sender*',
      'sender signature*',
      'sender identity',
      'unverified sender*',
      'unverified domain*',
      'unverified identity',
      'domain is not verified',
      'domain not verified',
      'domain is unverified',
      'unconfigured sending domain',
      'permissions to send as',
      'not owned by user',
      'not authorized to send from',
      'not allowed to send from',
      'not authorized as sender',
    ],
    result: SENDER_CONFIGURATION_FAULT,
    samples: [
      'content 554 Message rejected: Email address is not verified. The following identities failed the check in region EU-WEST-1: a@b.example',
      'content 550 The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved.',
      "content 550 The 'From' address you supplied is not a Sender Signature on your account.",
      'content 550 5.7.1 Unconfigured Sending Domain <b.example>',
      'content 550 5.7.60 SMTP; Client does not have permissions to send as this sender',
      'rcpt 553 5.7.1 <a@b.example>: Sender address rejected: not owned by user mailer',
    ],
  },
  {
    name: 'sender fails authentication at the recipient',
    stages: MESSAGE_STAGES,
    enhancedCodes: ['5.7.20', '5.7.21', '5.7.22', '5.7.23', '5.7.24', '5.7.26', '5.7.27', '5.7.30', '5.7.515'],
    result: SENDER_CONFIGURATION_FAULT,
    samples: [
      'content 550-5.7.26 This mail has been blocked because the sender is unauthenticated.',
      'content 550 5.7.23 The message was rejected because of Sender Policy Framework violation',
      'content 421-4.7.26 This mail has been rate limited because it is unauthenticated.',
      'content 550 5.7.515 Access denied, sending domain does not meet the required authentication level.',
    ],
  },
  {
    name: 'sender fails authentication, by text',
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: ['dmarc*', 'spf check*', 'spf fail*', 'fails spf*', 'failed spf*', 'dkim*', 'sender policy framework*'],
    result: SENDER_CONFIGURATION_FAULT,
    samples: [
      'content 550 5.7.1 Email rejected per DMARC policy for b.example',
      'content 554 5.7.9 Message not accepted for policy reasons: failed DMARC',
      'rcpt 550 5.7.1 SPF check failed',
      'content 550 5.7.509 Access denied, sending domain does not pass DMARC verification and has a DMARC policy of reject.',
    ],
  },

  // ── Unknown mailboxes, with phrases that also occur in blocklist replies ──────────────────────────────
  {
    name: 'recipient not listed in the directory',
    stages: MAILBOX_STAGES,
    codes: [550, 551, 553, 554],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.1', '5.1.10'],
    phrases: [
      'user not listed',
      'recipient not listed',
      'not listed in domino directory',
      'not listed in the domino directory',
      'not listed in directory',
      'not listed in the directory',
      'not listed in public name & address book',
    ],
    exceptPhrases: OTHER_CAUSE_PHRASES.filter((phrase) => phrase !== 'listed'),
    result: RECIPIENT_UNKNOWN,
    samples: [
      'rcpt 550 5.1.1 User not listed in Domino Directory',
      'rcpt 550 ada (ada@b.example) not listed in Domino Directory',
    ],
  },

  // ── The recipient, with phrases that also occur in replies about an unknown mailbox ──────────────────
  {
    name: 'recipient refuses this message',
    stages: MAILBOX_STAGES,
    phrases: [
      'recipient preferences',
      "recipient's preferences",
      'recipients preferences',
      'may not have permission to post',
      'not have permission to post',
    ],
    result: { kind: 'permanent', reason: 'policy', suppress: false },
    samples: [
      'rcpt 550 5.1.1 <a@b.example> Mail refused due to recipient preferences',
      'content 554 5.1.1 Message refused due to recipient preferences',
      'rcpt 550 5.1.1 The group you tried to contact (a) may not exist, or you may not have permission to post messages to the group.',
    ],
  },
  {
    // The reply of Sendmail contains the domain of the lookup. DNS answered that the domain does not exist.
    name: 'recipient’s domain does not exist, with the name that was looked up',
    stages: MAILBOX_STAGES,
    codes: [550, 553, 554],
    enhancedCodes: ['', '5.1.2', '5.4.4'],
    phrases: ['host unknown (name server*'],
    exceptPhrases: [...OTHER_CAUSE_PHRASES.filter((phrase) => phrase !== 'name server*'), ...OTHER_DOMAIN_PHRASES],
    result: RECIPIENT_UNKNOWN,
    category: 'domain',
    samples: ['rcpt 550 5.1.2 <a@b.example>... Host unknown (Name server: b.example.: host not found)'],
  },
  {
    name: 'recipient’s domain accepts no mail',
    stages: MAILBOX_STAGES,
    codes: [550, 551, 552, 553, 554, 556],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.1', '5.1.2', '5.1.3', '5.1.10', '5.4.0', '5.4.4', '5.4.310', '5.5.0'],
    phrases: DOMAIN_PHRASES,
    exceptPhrases: [...OTHER_CAUSE_PHRASES, ...OTHER_DOMAIN_PHRASES],
    result: RECIPIENT_UNKNOWN,
    category: 'domain',
    samples: [
      'rcpt 556 5.1.10 Recipient address has null MX',
      'rcpt 556 5.1.10 <a@b.example>: Recipient address rejected: Domain b.example does not accept mail (nullMX)',
      'rcpt 550 The domain b.example has a null MX record',
      'rcpt 550 an MX or SRV record indicated no SMTP service',
      'rcpt 550 5.1.2 <a@b.example>: Recipient address rejected: Domain not found',
      'rcpt 550 unrouteable mail domain "b.example"',
      'rcpt 550 5.1.2 <a@b.example>... Host unknown',
      'rcpt 550 5.4.4 Host or domain name not found. Name service error for name=b.example type=A: Host not found',
    ],
  },
  {
    name: 'recipient’s domain accepts no mail, by code',
    stages: MAILBOX_STAGES,
    codes: [550, 551, 553, 554, 556],
    enhancedCodes: ['5.1.2'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    result: RECIPIENT_UNKNOWN,
    category: 'domain',
    samples: ['rcpt 550 5.1.2 Bad destination system: a@b.example'],
  },
  {
    name: 'recipient’s domain accepts no mail, by reply code',
    stages: ['rcpt'],
    codes: [556],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.10'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    result: RECIPIENT_UNKNOWN,
    category: 'domain',
    samples: ['rcpt 556 No mail for this domain'],
  },

  // ── Reputation of this service ────────────────────────────────────────────────────────────────────────
  {
    name: 'host on a blocklist',
    stages: STAGES_BEFORE_CONTENT,
    phrases: BLOCKLIST_PHRASES,
    exceptPhrases: ['mailbox*', 'user is', 'recipient*', 'account is', 'user you are trying'],
    result: REPUTATION_REFUSAL,
    samples: [
      'rcpt 554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org',
      'mail 550 5.7.1 Unfortunately, messages from [192.0.2.1] weren’t sent. Part of your network is on our block list (S3150).',
      'greeting 554 5.7.1 Your IP address 192.0.2.1 has a poor reputation',
      'rcpt 550 5.7.606 Access denied, banned sending IP [192.0.2.1].',
      'mail 421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints',
      'mail 553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1, because the ip is in a block list',
      'rcpt 450 4.7.1 Service unavailable; client [192.0.2.1] blocked using bl.spamcop.net',
      'greeting 421 4.7.0 Our system has detected an unusual rate of unsolicited mail originating from your IP address.',
    ],
  },
  {
    name: 'host on a blocklist, refused after the content',
    stages: ['data', 'content'],
    codes: [421, 450, 451, 452, 454],
    phrases: BLOCKLIST_PHRASES,
    exceptPhrases: ['mailbox*', 'user you are trying', 'greylist*'],
    result: REPUTATION_REFUSAL,
    samples: [
      'content 421 4.7.0 [192.0.2.1] Our system has detected an unusual rate of unsolicited mail originating from your IP address.',
      'content 421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to user complaints',
    ],
  },
  {
    name: 'connection refused by policy',
    stages: STAGES_BEFORE_MAIL,
    codes: [521, 530, 550, 553, 554, 571],
    enhancedCodes: ['5.7.'],
    result: REPUTATION_REFUSAL,
    samples: ['greeting 554 5.7.1 You are not allowed to connect.', 'ehlo 550 5.7.1 Access denied'],
  },
  {
    name: 'message refused because of reputation',
    stages: ['data', 'content'],
    phrases: [
      'reputation*',
      'spamhaus*',
      'blocklist*',
      'block list*',
      'blacklist*',
      'listed in',
      'listed by',
      'your ip*',
    ],
    result: { kind: 'permanent', reason: 'reputation', suppress: false },
    samples: [
      'content 550-5.7.1 Our system has detected that this message is likely suspicious due to the very low reputation of the sending domain.',
      'content 554 5.7.1 Message contains a URL listed in dbl.spamhaus.org',
    ],
  },

  // ── Temporary failures ────────────────────────────────────────────────────────────────────────────────
  {
    name: 'greylisted',
    phrases: ['greylist*', 'graylist*', 'grey list*', 'gray list*', 'grey-list*', 'gray-list*', 'postgrey*'],
    result: { kind: 'temporary', reason: 'greylisted', scope: 'message' },
    samples: [
      'rcpt 450 4.2.0 <a@b.example>: Recipient address rejected: Greylisted, see http://postgrey.example/help',
      'rcpt 451 4.7.1 Greylisting in action, please come back later',
      'rcpt 421 4.7.1 Graylisted, try again in 5 minutes',
    ],
  },
  {
    name: 'recipient receives too many messages',
    phrases: ['user you are trying to contact is receiving', 'receiving mail too quickly', 'receiving mail at a rate'],
    result: { kind: 'temporary', reason: 'throttled', scope: 'message' },
    samples: [
      'rcpt 450 4.2.1 The user you are trying to contact is receiving mail too quickly. Please resend your message at a later time.',
      'rcpt 550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages from being delivered.',
    ],
  },
  {
    name: 'sending rate or quota exceeded',
    phrases: [
      'maximum sending rate exceeded',
      'daily message quota exceeded',
      'throttling failure*',
      'exceeded your messaging limits',
      'sending quota exceeded',
      'sending limit*',
      'too many connections',
      'concurrent connections',
      'too many concurrent',
      'connection rate limit*',
    ],
    result: { kind: 'temporary', reason: 'throttled', scope: 'transport' },
    samples: [
      'content 454 Throttling failure: Maximum sending rate exceeded.',
      'content 454 Throttling failure: Daily message quota exceeded.',
      'mail 451 You have exceeded your messaging limits',
      'greeting 421 4.7.0 mx.example Error: too many connections from 192.0.2.1',
      'content 550 5.4.5 Daily user sending limit exceeded.',
      'mail 421 4.3.2 The maximum number of concurrent connections has exceeded a limit, closing transmission channel',
    ],
  },
  {
    name: 'mailbox full, temporary reply',
    codes: [421, 431, 450, 451, 452],
    phrases: ['quota*', 'mailbox full', 'mailbox is full', 'out of storage', 'storage space*'],
    exceptPhrases: ['system storage*', 'queue*'],
    result: { kind: 'temporary', reason: 'mailbox-full', scope: 'message' },
    samples: [
      'rcpt 452 4.2.2 The email account that you tried to reach is over quota',
      'rcpt 452-4.2.2 The recipient’s inbox is out of storage space.',
    ],
  },
  {
    name: 'mailbox full, temporary reply, by code',
    stages: MESSAGE_STAGES,
    codes: [421, 450, 451, 452],
    enhancedCodes: ['4.2.2'],
    result: { kind: 'temporary', reason: 'mailbox-full', scope: 'message' },
    samples: ['rcpt 452 4.2.2 Mailbox cannot take this message'],
  },
  {
    name: 'connection closed by a rate limit',
    codes: [421],
    phrases: ['too many', 'rate limit*', 'throttl*', 'try fewer'],
    result: { kind: 'temporary', reason: 'throttled', scope: 'transport' },
    samples: [
      'mail 421 4.7.0 Too many messages in this session',
      'rcpt 421 4.7.28 Our system has detected an unusual rate; your messages are rate limited',
    ],
  },
  {
    name: 'connection closed because of one recipient',
    stages: MESSAGE_STAGES,
    codes: [421],
    phrases: ['recipient*', 'mailbox*', 'this user*', 'this message*', 'rcpt domain*'],
    result: { kind: 'temporary', reason: 'unavailable', scope: 'message' },
    samples: [
      'rcpt 421 4.2.1 Recipient mailbox is being moved',
      'rcpt 421 4.7.0 TLS required for RCPT domain, closing connection.',
    ],
  },
  {
    name: 'connection closed by the server',
    codes: [421],
    result: { kind: 'temporary', reason: 'unavailable', scope: 'transport' },
    samples: [
      'rcpt 421 4.3.0 Temporary System Problem. Try again later.',
      'greeting 421 mx.example Service not available, closing transmission channel',
      'content 421 4.4.2 mx.example Error: timeout exceeded',
    ],
  },
  {
    name: 'sender domain not found, temporary reply',
    codes: [450, 451],
    enhancedCodes: ['4.1.7', '4.1.8'],
    result: { kind: 'temporary', reason: 'sender-refused', scope: 'message' },
    samples: [
      'rcpt 450 4.1.8 <a@b.example>: Sender address rejected: Domain not found',
      'mail 451 4.1.8 Domain of sender address a@b.example does not resolve',
    ],
  },
  {
    name: 'throttled',
    stages: MESSAGE_STAGES,
    codes: [450, 451, 452, 454],
    phrases: [
      'too many',
      'too fast',
      'rate limit*',
      'throttl*',
      'slow down',
      'exceeded the rate',
      'too much mail',
      'try fewer',
    ],
    result: { kind: 'temporary', reason: 'throttled', scope: 'message' },
    samples: [
      'rcpt 452 4.5.3 Too many recipients',
      'rcpt 451 4.7.500 Server busy. You are sending too fast.',
      'content 450 4.7.1 Rate limit exceeded for this recipient domain',
    ],
  },
  {
    name: 'next hop has insufficient storage',
    codes: [450, 451, 452],
    enhancedCodes: ['4.3.1', '4.3.2'],
    result: { kind: 'temporary', reason: 'unavailable', scope: 'transport' },
    samples: ['mail 452 4.3.1 Insufficient system storage', 'rcpt 451 4.3.2 System not accepting network messages'],
  },
  {
    name: 'host accepts no messages',
    stages: STAGES_BEFORE_MAIL,
    codes: [521],
    result: CONFIGURATION_FAULT,
    samples: ['greeting 521 web.example does not accept mail'],
  },

  // ── The message ───────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'message too large',
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: [
      'too large',
      'too big',
      'size limit*',
      'size exceeds',
      'message size*',
      'maximum message size',
      'maximum size*',
      'exceeds fixed',
    ],
    result: { kind: 'permanent', reason: 'size', suppress: false },
    samples: [
      'mail 552 5.3.4 Message size exceeds fixed limit',
      'mail 552 5.2.3 Message size exceeds fixed maximum message size',
      'content 552 Message size exceeds maximum permitted',
      'content 552 5.3.4 Error: message file too big',
      'content 523 the message size exceeds the quota of the recipient',
    ],
  },
  {
    name: 'message too large, by code',
    stages: ['mail', 'rcpt', 'data', 'content'],
    enhancedCodes: ['5.3.4', '5.2.3'],
    result: { kind: 'permanent', reason: 'size', suppress: false },
    samples: ['content 554 5.3.4 Refused'],
  },
  {
    name: 'SMTPUTF8 not supported',
    enhancedCodes: ['5.6.7', '5.6.9'],
    result: { kind: 'permanent', reason: 'smtputf8', suppress: false },
    samples: [
      'rcpt 553 5.6.7 Must use SMTPUTF8 capability for non-ASCII addresses',
      'rcpt 550 5.6.7 SMTPUTF8 not supported',
    ],
  },
  {
    name: 'content refused',
    stages: MESSAGE_STAGES,
    phrases: SPAM_PHRASES,
    result: { kind: 'permanent', reason: 'content', suppress: false },
    samples: [
      'content 550 5.7.1 Message rejected as spam by Content Filtering.',
      'content 554 5.7.1 Spam message rejected',
      'content 552-5.7.0 This message was blocked because its content presents a potential security issue.',
      'content 550 High probability of spam',
      'content 554 5.7.1 virus found: Eicar-Test-Signature',
      'rcpt 550 5.1.1 <a@b.example> rejected as spam',
    ],
  },
  {
    name: 'content refused, by code',
    stages: MESSAGE_STAGES,
    enhancedCodes: ['5.6.'],
    result: { kind: 'permanent', reason: 'content', suppress: false },
    samples: ['content 550 5.6.0 Lone CR or LF in body', 'content 554 5.6.1 Body type not supported by remote host'],
  },

  // ── The mailbox ───────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'mailbox full',
    stages: MESSAGE_STAGES,
    phrases: ['quota*', 'mailbox full', 'mailbox is full', 'out of storage', 'storage allocation*', 'inbox is full'],
    result: { kind: 'permanent', reason: 'mailbox-full', suppress: false },
    samples: [
      'rcpt 552 5.2.2 The email account that you tried to reach is over quota',
      'content 552 Requested mail action aborted: exceeded storage allocation',
      'rcpt 554 5.2.2 mailbox full',
      'content 552 Quota violation for a@b.example',
    ],
  },
  {
    name: 'mailbox full, by code',
    stages: MESSAGE_STAGES,
    enhancedCodes: ['5.2.2'],
    result: { kind: 'permanent', reason: 'mailbox-full', suppress: false },
    samples: ['rcpt 550 5.2.2 Cannot store this message'],
  },
  {
    name: 'no such recipient, by code',
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    result: RECIPIENT_UNKNOWN,
    samples: [
      'rcpt 550 5.1.1 <a@b.example>: Recipient address rejected: User unknown in local recipient table',
      'rcpt 550-5.1.1 The email account that you tried to reach does not exist. Please try double-checking the address for typos',
      'rcpt 550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup',
      'rcpt 501 5.1.3 Bad recipient address syntax',
      'rcpt 550 5.1.6 Recipient has moved, no forwarding address',
      'rcpt 553 5.1.1 unknown or illegal user: a@b.example',
    ],
  },
  {
    name: 'mailbox disabled, by code',
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.2.1'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    result: { kind: 'permanent', reason: 'recipient-disabled', suppress: true },
    samples: [
      'rcpt 550 5.2.1 The email account that you tried to reach is disabled.',
      'content 550 5.2.1 Mailbox disabled, not accepting messages',
    ],
  },
  {
    name: 'lookup of the recipient’s domain failed',
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.10'],
    phrases: FAILED_LOOKUP_PHRASES,
    exceptPhrases: ['sender*', 'mail from', 'from address*'],
    result: { kind: 'permanent', reason: 'unknown', suppress: false },
    samples: ['rcpt 550 5.1.2 Unable to resolve MX: nameserver unreachable'],
  },
  {
    name: 'address refused for another reason',
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1'],
    exceptPhrases: ['sender*'],
    result: { kind: 'permanent', reason: 'policy', suppress: false },
    samples: [
      'rcpt 550 5.1.1 <a@b.example>: Recipient address rejected: blocked by policy',
      'rcpt 550 5.2.1 Mailbox not allowed to receive from outside, denied',
    ],
  },
  {
    name: 'no such recipient, by text',
    stages: MAILBOX_STAGES,
    codes: [550, 551, 552, 553, 554],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.2.0', '5.3.0', '5.5.0'],
    phrases: [
      'user unknown',
      'unknown user',
      'no such user',
      'no such recipient',
      'no such mailbox',
      'no such address',
      'no such account',
      'user not found',
      'mailbox not found',
      'recipient not found',
      'account not found',
      'addressee unknown',
      'recipient unknown',
      'unknown recipient',
      'unknown mailbox',
      'unknown or illegal user',
      'invalid recipient',
      'invalid mailbox',
      'not a valid mailbox',
      'not a valid recipient',
      'no mailbox here by that name',
      'mailbox does not exist',
      'user does not exist',
      "user doesn't exist",
      'account does not exist',
      'address does not exist',
      'recipient does not exist',
      "this user doesn't have a",
    ],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    result: RECIPIENT_UNKNOWN,
    samples: [
      'rcpt 550 <a@b.example>... User unknown',
      'rcpt 550 No such user here',
      'rcpt 553 5.3.0 <a@b.example>... Addressee unknown',
      'rcpt 550 Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#550',
      "content 554 delivery error: dd This user doesn't have a yahoo.com account (a@yahoo.com) [0]",
      'content 552 1 Requested mail action aborted, mailbox not found',
      'rcpt 550 sorry, no mailbox here by that name (#5.1.1)',
      'rcpt 550 Unknown user',
    ],
  },
  {
    name: 'mailbox unavailable',
    stages: ['rcpt'],
    codes: [550],
    enhancedCodes: ['', '5.0.0', '5.5.0'],
    phrases: ['mailbox unavailable'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    result: RECIPIENT_UNKNOWN,
    samples: [
      'rcpt 550 Requested action not taken: mailbox unavailable',
      'rcpt 550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).',
    ],
  },
  {
    name: 'mailbox disabled, by text',
    stages: MAILBOX_STAGES,
    phrases: [
      'account is disabled',
      'account disabled',
      'account has been disabled',
      'mailbox disabled',
      'mailbox is disabled',
      'mailbox is inactive',
      'account is inactive',
      'account inactive',
      'inactive user',
      'user is inactive',
      'no longer accept*',
      'mailbox suspended',
      'user suspended',
    ],
    result: { kind: 'permanent', reason: 'recipient-disabled', suppress: false },
    samples: [
      'rcpt 554 30 Sorry, your message cannot be delivered. This mailbox is disabled (554.30).',
      'rcpt 550 5.7.1 Account inactive',
    ],
  },
  {
    // Microsoft 365 refuses a recipient that is not in the directory (directory-based edge blocking).
    name: 'recipient not in the directory of the gateway',
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.4.1'],
    phrases: [
      'recipient address rejected: access denied',
      'recipient addresses rejected: access denied',
      'recipient addresses rejected : access denied',
    ],
    exceptPhrases: OTHER_CAUSE_PHRASES.filter((phrase) => phrase !== 'denied'),
    result: RECIPIENT_UNKNOWN,
    samples: [
      'rcpt 550 5.4.1 Recipient address rejected: Access denied. [AM0EUR02FT001.eop-EUR02.prod.protection.outlook.com]',
      'rcpt 550 5.4.1 Recipient address rejected: Access denied',
      'rcpt 550 5.4.1 All recipient addresses rejected : Access denied [mx.protection.outlook.example]',
    ],
  },
  {
    // Cisco ESA writes this reply for a recipient that its directory does not contain.
    name: 'address refused by Cisco ESA',
    stages: MAILBOX_STAGES,
    codes: [550],
    enhancedCodes: ['5.1.0'],
    phrases: ['address rejected'],
    exceptPhrases: [
      ...OTHER_CAUSE_PHRASES,
      'recipient address*',
      'address rejected:*',
      'address rejected by',
      'address rejected due',
      'address rejected because',
      'address rejected for',
    ],
    result: RECIPIENT_UNKNOWN,
    samples: ['rcpt 550 #5.1.0 Address rejected.', 'rcpt 550 #5.1.0 a@b.example Address rejected'],
  },
  {
    name: 'address without a route',
    stages: MAILBOX_STAGES,
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.1', '5.1.2', '5.4.0', '5.4.4', '5.5.0'],
    phrases: ['unrouteable address', 'unroutable address'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    result: RECIPIENT_UNKNOWN,
    samples: ['rcpt 550 Unrouteable address', 'rcpt 550 <a@b.example>: unroutable address'],
  },

  // ── Sender and policy ─────────────────────────────────────────────────────────────────────────────────
  {
    name: 'sender refused',
    stages: ['mail', 'rcpt', 'content'],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.7', '5.1.8', '5.4.0', '5.5.0'],
    phrases: ['sender*', 'from address*', 'mail from', 'return path', 'envelope from'],
    result: { kind: 'permanent', reason: 'sender-refused', suppress: false },
    samples: [
      'rcpt 550 5.1.8 <a@b.example>: Sender address rejected: Domain not found',
      'mail 553 5.1.8 <a@b.example>... Domain of sender address does not exist',
      'rcpt 550 Sender verify failed',
      'mail 550 Requested action not taken: mailbox unavailable. Sender address is not allowed.',
      'rcpt 550 #5.1.0 Address rejected: sender',
    ],
  },
  {
    name: 'sender refused, by code',
    stages: ['mail', 'rcpt', 'content'],
    enhancedCodes: ['5.1.7', '5.1.8'],
    result: { kind: 'permanent', reason: 'sender-refused', suppress: false },
    samples: ['mail 501 5.1.7 Invalid address'],
  },
  {
    name: 'policy',
    stages: ['mail', ...MESSAGE_STAGES],
    enhancedCodes: ['5.7.'],
    result: { kind: 'permanent', reason: 'policy', suppress: false },
    samples: [
      'rcpt 550 5.7.1 Access denied',
      'content 550 5.7.1 This message violates b.example email policy. - gcdp',
      'rcpt 550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup',
      'content 554 5.7.7 Email not accepted for policy reasons.',
    ],
  },
  {
    name: 'policy, by text',
    stages: MESSAGE_STAGES,
    phrases: ['policy', 'administrative prohibition', 'rejected due to', 'access denied'],
    result: { kind: 'permanent', reason: 'policy', suppress: false },
    samples: ['rcpt 550 Administrative prohibition', 'rcpt 550 Rejected by local policy', 'rcpt 554 Denied by policy'],
  },
  {
    name: 'blocked, with the invalid code 571',
    codes: [571],
    result: { kind: 'permanent', reason: 'policy', suppress: false },
    samples: ['rcpt 571 Delivery not authorized, message refused', 'content 571 Message blocked'],
  },

  // ── Protocol errors ───────────────────────────────────────────────────────────────────────────────────
  {
    name: 'unexpected command or syntax error',
    codes: [500, 501, 502, 503, 504, 555],
    result: { kind: 'temporary', reason: 'unknown', scope: 'transport' },
    samples: [
      'data 503 5.5.1 Error: need RCPT command',
      'mail 500 5.5.1 Command unrecognized',
      'mail 555 5.5.2 Syntax error, goodbye',
      'rcpt 501 5.5.4 Syntax error in parameters',
      'data 502 5.5.1 Unrecognized command.',
    ],
  },
];
