/** The first matching rule decides. RFC 3463, 4954, 5248, 6710, 7372 and 7505 define the enhanced codes. */

import {
  CONFIGURATION_FAULT,
  CONTENT_REFUSAL,
  type FailureRule,
  nameRules,
  POLICY_REFUSAL,
  ROUTE_THROTTLED,
  SENDER_FAULT,
  SIZE_REFUSAL,
  THROTTLED,
  type Verdict,
} from '../model/failure.ts';
import type { Stage } from '../model/outcome.ts';
import {
  ACCOUNT_DISABLED_PHRASES,
  AUTHENTICATION_PHRASES,
  BLOCKLIST_PHRASES,
  CONTENT_PHRASES,
  DOMAIN_MISSING_PHRASES,
  EXPIRY_PHRASES,
  FAILED_LOOKUP_PHRASES,
  LOOP_PHRASES,
  MAILBOX_DISABLED_PHRASES,
  MAILBOX_FULL_PHRASES,
  MAILBOX_MISSING_PHRASES,
  MAILBOX_UNAVAILABLE_PHRASES,
  NO_MAIL_PHRASES,
  NO_MAILBOX_PHRASES,
  NO_SIZE_PHRASES,
  OTHER_CAUSE_PHRASES,
  OTHER_SUBJECT_PHRASES,
  POLICY_PHRASES,
  parsePhrases,
  REPUTATION_PHRASES,
  SENDER_PHRASES,
  SIZE_PHRASES,
  TEMPORARY_PHRASES,
  VAGUE_DOMAIN_PHRASES,
  VAGUE_MAILBOX_PHRASES,
  without,
} from './phrases.ts';

const STAGES_BEFORE_MAIL: readonly Stage[] = ['connect', 'greeting', 'ehlo', 'starttls'];
const STAGES_BEFORE_CONTENT: readonly Stage[] = [...STAGES_BEFORE_MAIL, 'mail', 'rcpt'];
const MESSAGE_STAGES: readonly Stage[] = ['rcpt', 'data', 'content'];
const MAILBOX_STAGES: readonly Stage[] = ['rcpt', 'content'];

const MAILBOX_MISSING: Verdict = { class: 'hard', category: 'mailbox-unknown', scope: 'recipient' };
const DOMAIN_MISSING: Verdict = { class: 'hard', category: 'domain', scope: 'recipient' };
const MAILBOX_DISABLED: Verdict = { class: 'hard', category: 'mailbox-disabled', scope: 'recipient' };
const MAILBOX_REFUSAL: Verdict = { class: 'block', category: 'mailbox-disabled', scope: 'recipient' };
const MAILBOX_CLOSED: Verdict = { class: 'soft', category: 'mailbox-disabled', scope: 'recipient' };
const MAILBOX_FULL: Verdict = { class: 'soft', category: 'mailbox-full', scope: 'recipient' };
const GREYLISTED: Verdict = { class: 'soft', category: 'greylisted', scope: 'recipient' };
export const RECIPIENT_UNAVAILABLE: Verdict = { class: 'soft', category: 'network', scope: 'recipient' };
export const SERVER_UNAVAILABLE: Verdict = { class: 'soft', category: 'network', scope: 'route' };
const REPUTATION_REFUSAL: Verdict = { class: 'block', category: 'reputation', scope: 'route' };
export const SENDER_REFUSAL: Verdict = { class: 'block', category: 'policy', scope: 'sender' };
export const UNKNOWN_REFUSAL: Verdict = { class: 'block', category: 'unknown', scope: 'message' };
const LOOP_REFUSAL: Verdict = { class: 'block', category: 'network', scope: 'message' };
const PROTOCOL_FAULT: Verdict = { class: 'soft', category: 'unknown', scope: 'route' };

const IN_ANY_TEXT = { form: 'any', stages: MESSAGE_STAGES } as const;

const DOMAIN_CODES: readonly number[] = [550, 551, 552, 553, 554, 556];
const DOMAIN_ENHANCED_CODES: readonly string[] = [
  ...['', '5.0.0', '5.1.0', '5.1.1', '5.1.2', '5.1.3', '5.1.10'],
  ...['5.4.0', '5.4.4', '5.4.310', '5.5.0'],
];

export const RULES: readonly FailureRule[] = nameRules({
  // ── Configuration of this service ─────────────────────────────────────────────────────────────────────
  'sign-in required': {
    codes: [530, 534, 535, 538],
    verdict: CONFIGURATION_FAULT,
    samples: ['auth 535 5.7.3 Authentication unsuccessful', 'mail 535 5.7.8 Error: authentication failed'],
  },
  'relaying denied': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: parsePhrases(`
      relay access denied, relaying denied, relay denied, relay not permitted, relay is not permitted
      relaying not allowed, relaying is not allowed, relaying is prohibited, relay prohibited, unable to relay
      not permitted to relay, do not relay, authenticated to relay, rcpthosts, unauthorized ip address
    `),
    verdict: CONFIGURATION_FAULT,
    samples: [
      'rcpt 550 5.7.1 <a@b.example>... Relaying denied. Proper authentication required.',
      'mail 550-5.7.0 Mail relay denied [192.0.2.1].',
    ],
  },
  'sign-in required, according to the text': {
    stages: STAGES_BEFORE_CONTENT,
    phrases: parsePhrases(`
      authentication required, authentication is required, must authenticate, please authenticate, auth required
      client was not authenticated, client not authenticated, not logged in, starttls command first
      invalid credentials
    `),
    exceptPhrases: ['delivery restriction'],
    verdict: CONFIGURATION_FAULT,
    samples: [
      'mail 550 5.7.1 Client was not authenticated',
      'rcpt 554 5.7.1 Authentication required',
      'rcpt 550-5.7.1 Invalid credentials for relay [192.0.2.1].',
      'rcpt 553 5.7.1 <a@b.example>: Sender address rejected: not logged in',
    ],
  },
  'EHLO name, reverse DNS name or account refused': {
    phrases: parsePhrases(`
      helo command rejected, invalid helo, invalid ehlo, bad helo, helo name, ehlo name, helo/ehlo
      ptr record, reverse dns, cannot find your, reverse hostname, no reverse, dns ptr, rdns
      sending paused, account is paused, sending suspended, smtp account is not, account is not yet activated
      account is under review
    `),
    verdict: CONFIGURATION_FAULT,
    samples: [
      'ehlo 550 Invalid HELO name (See RFC2821 4.1.1.1)',
      'rcpt 450 4.7.1 <mailer>: Helo command rejected: Host not found',
      'rcpt 550 5.7.25 [192.0.2.1] The IP address sending this message does not have a PTR record setup',
      'content 554 Sending paused for this account. For more information, please check the inbox of the address of the account.',
    ],
  },
  'EHLO refused by syntax': {
    stages: ['ehlo'],
    codes: [500, 501, 502, 504],
    verdict: CONFIGURATION_FAULT,
    samples: ['ehlo 501 5.5.4 Invalid domain name', 'ehlo 504 Parameter not implemented'],
  },
  'no reverse DNS name, according to the code': {
    enhancedCodes: ['5.7.25'],
    verdict: CONFIGURATION_FAULT,
    samples: ['content 550 5.7.25 See the guidelines for senders'],
  },
  // Amazon SES behind another relay refuses a second DKIM signature: a route with one signature delivers the message.
  'sender not verified with the provider': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: parsePhrases(`
      address is not verified, identities failed the check, verified sender, sender signature, sender identity
      unverified sender, unverified domain, unverified identity, domain is not verified, domain not verified
      domain is unverified, unconfigured sending domain, permissions to send as, not owned by user
      not authorized to send from, not allowed to send from, not authorized as sender
      duplicate header 'dkim-signature'
    `),
    verdict: SENDER_FAULT,
    samples: [
      'rcpt 553 5.7.1 <a@b.example>: Sender address rejected: not owned by user mailer',
      "content 554 Transaction failed: Duplicate header 'DKIM-Signature'.",
    ],
  },
  'sender fails authentication at the recipient': {
    stages: MESSAGE_STAGES,
    enhancedCodes: ['5.7.20', '5.7.21', '5.7.22', '5.7.23', '5.7.24', '5.7.26', '5.7.27', '5.7.30', '5.7.515'],
    verdict: SENDER_FAULT,
    samples: [
      'content 550-5.7.26 This mail has been blocked because the sender is unauthenticated.',
      'content 550 5.7.23 The message was rejected because of Sender Policy Framework violation',
      'content 421-4.7.26 This mail has been rate limited because it is unauthenticated.',
    ],
  },
  'sender fails authentication, according to the text': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: parsePhrases('dmarc, spf check, spf fail, fails spf, failed spf, dkim, sender policy framework'),
    verdict: SENDER_FAULT,
    samples: [
      'content 550 5.7.1 Email rejected per DMARC policy for b.example',
      'content 554 5.7.9 Message not accepted for policy reasons: failed DMARC',
      'rcpt 550 5.7.1 SPF check failed',
    ],
  },

  // ── Unknown mailboxes, with phrases that also occur in blocklist replies ──────────────────────────────
  'recipient not listed in the directory': {
    stages: MAILBOX_STAGES,
    codes: [550, 551, 553, 554],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.1', '5.1.10'],
    phrases: parsePhrases(`
      user not listed, recipient not listed, not listed in domino directory, not listed in the domino directory
      not listed in directory, not listed in the directory, not listed in public name & address book
    `),
    exceptPhrases: without(OTHER_CAUSE_PHRASES, 'listed$'),
    verdict: MAILBOX_MISSING,
    samples: ['rcpt 550 ada (ada@b.example) not listed in Domino Directory'],
  },

  // ── The recipient, with phrases that also occur in replies about an unknown mailbox ──────────────────
  'recipient refuses this message': {
    stages: MAILBOX_STAGES,
    phrases: parsePhrases(`
      recipient preferences, recipient's preferences, recipients preferences, may not have permission to post
      not have permission to post
    `),
    verdict: POLICY_REFUSAL,
    samples: [
      'rcpt 550 5.1.1 The group you tried to contact (a) may not exist, or you may not have permission to post messages to the group.',
    ],
  },
  // A null MX record is an answer of DNS (RFC 7505), and Sendmail quotes the name server that answered.
  'recipient’s domain has a null MX record': {
    stages: MAILBOX_STAGES,
    codes: DOMAIN_CODES,
    enhancedCodes: DOMAIN_ENHANCED_CODES,
    phrases: parsePhrases('null mx, nullmx, null-mx, host unknown (name server, host unknown (authoritative answer'),
    exceptPhrases: [...without(OTHER_CAUSE_PHRASES, 'dns', 'name server'), ...OTHER_SUBJECT_PHRASES],
    verdict: DOMAIN_MISSING,
    samples: [
      'rcpt 550 5.1.10 Recipient domain has a null MX DNS record',
      'rcpt 550 5.1.2 <a@b.example>... Host unknown (Name server: b.example.: host not found)',
    ],
  },
  // The code of Microsoft 365 for a domain that does not exist. The text of the reply contains the word DNS.
  'recipient’s domain does not exist, according to the code of Microsoft 365': {
    stages: MAILBOX_STAGES,
    codes: [550, 554],
    enhancedCodes: ['5.4.310'],
    exceptPhrases: [...without(OTHER_CAUSE_PHRASES, 'dns'), ...OTHER_SUBJECT_PHRASES],
    verdict: DOMAIN_MISSING,
    samples: ['rcpt 550 5.4.310 DNS domain b.example does not exist [Message=InfoDomainNonexistent]'],
  },
  'recipient’s domain accepts no mail': {
    stages: MAILBOX_STAGES,
    codes: DOMAIN_CODES,
    enhancedCodes: DOMAIN_ENHANCED_CODES,
    phrases: [...DOMAIN_MISSING_PHRASES, ...NO_MAIL_PHRASES],
    exceptPhrases: [...OTHER_CAUSE_PHRASES, ...OTHER_SUBJECT_PHRASES],
    verdict: DOMAIN_MISSING,
    samples: [
      'rcpt 550 5.1.2 <a@b.example>: Recipient address rejected: Domain not found',
      'rcpt 550 5.1.2 <a@b.example>... Host unknown',
      'rcpt 550 5.4.4 Host or domain name not found. Name service error for name=b.example type=A: Host not found',
    ],
  },
  'recipient’s domain does not exist, in vague words beside a code': {
    stages: MAILBOX_STAGES,
    codes: DOMAIN_CODES,
    enhancedCodes: ['5.1.2', '5.4.4'],
    phrases: VAGUE_DOMAIN_PHRASES,
    exceptPhrases: [...OTHER_CAUSE_PHRASES, ...OTHER_SUBJECT_PHRASES],
    verdict: DOMAIN_MISSING,
    samples: ['rcpt 550 5.4.4 Invalid domain'],
  },
  'recipient’s domain accepts no mail, according to the code': {
    stages: MAILBOX_STAGES,
    codes: [550, 551, 553, 554, 556],
    enhancedCodes: ['5.1.2'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: DOMAIN_MISSING,
    samples: ['rcpt 550 5.1.2 Bad destination system: a@b.example'],
  },
  'recipient’s domain accepts no mail, according to the reply code': {
    stages: ['rcpt'],
    codes: [556],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.10'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: DOMAIN_MISSING,
    samples: ['rcpt 556 No mail for this domain'],
  },

  // ── Reputation of this service ────────────────────────────────────────────────────────────────────────
  'host on a blocklist': {
    stages: STAGES_BEFORE_CONTENT,
    phrases: BLOCKLIST_PHRASES,
    exceptPhrases: parsePhrases(`
      mailbox, user is, recipient, account is, user you are trying, message was blocked, message has been blocked
    `),
    verdict: REPUTATION_REFUSAL,
    samples: [
      'greeting 554 5.7.1 Your IP address 192.0.2.1 has a poor reputation',
      'greeting 421 4.7.0 Our system has detected an unusual rate of unsolicited mail originating from your IP address.',
    ],
  },
  'connection refused by policy': {
    stages: STAGES_BEFORE_MAIL,
    codes: [521, 530, 550, 553, 554, 571],
    enhancedCodes: ['5.7.'],
    verdict: REPUTATION_REFUSAL,
    samples: ['greeting 554 5.7.1 You are not allowed to connect.', 'ehlo 550 5.7.1 Access denied'],
  },
  'message refused because of reputation': {
    stages: ['data', 'content'],
    phrases: [
      ...REPUTATION_PHRASES,
      ...parsePhrases(`
        listed in, listed by, your ip, user complaints, unexpected volume, unsolicited mail originating
      `),
    ],
    exceptPhrases: parsePhrases('mailbox, user you are trying, greylist'),
    verdict: REPUTATION_REFUSAL,
    samples: [
      'content 550-5.7.1 Our system has detected that this message is likely suspicious due to the very low reputation of the sending domain.',
      'content 554 5.7.1 Message contains a URL listed in dbl.spamhaus.org',
      'content 421 4.7.0 [192.0.2.1] Our system has detected an unusual rate of unsolicited mail originating from your IP address.',
      'content 421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to user complaints',
    ],
  },

  // ── Temporary failures ────────────────────────────────────────────────────────────────────────────────
  greylisted: {
    form: 'any',
    phrases: parsePhrases('greylist, graylist, grey list, gray list, grey-list, gray-list, postgrey'),
    verdict: GREYLISTED,
    samples: [
      'rcpt 451 4.7.1 Greylisting in action, please come back later',
      'rcpt 421 4.7.1 Graylisted, try again in 5 minutes',
      'The message was greylisted.',
    ],
  },
  'recipient receives too many messages': {
    phrases: parsePhrases(`
      user you are trying to contact is receiving, receiving mail too quickly, receiving mail at a rate
    `),
    verdict: THROTTLED,
    samples: [
      'rcpt 450 4.2.1 The user you are trying to contact is receiving mail too quickly. Please resend your message at a later time.',
    ],
  },
  'sending rate or quota exceeded': {
    phrases: parsePhrases(`
      maximum sending rate exceeded, daily message quota exceeded, throttling failure, exceeded your messaging limits
      sending quota exceeded, sending limit, too many connections, concurrent connections, too many concurrent
      connection rate limit
    `),
    verdict: ROUTE_THROTTLED,
    samples: [
      'content 550 5.4.5 Daily user sending limit exceeded.',
      'mail 421 4.3.2 The maximum number of concurrent connections has exceeded a limit, closing transmission channel',
    ],
  },
  'connection closed by a rate limit': {
    codes: [421],
    phrases: parsePhrases('too many, rate limit, throttl, try fewer'),
    verdict: ROUTE_THROTTLED,
    samples: [
      'mail 421 4.7.0 Too many messages in this session',
      'rcpt 421 4.7.28 Our system has detected an unusual rate; your messages are rate limited',
    ],
  },
  'connection closed because of one recipient': {
    stages: MESSAGE_STAGES,
    codes: [421],
    phrases: parsePhrases('recipient, mailbox, this user, this message, rcpt domain'),
    verdict: RECIPIENT_UNAVAILABLE,
    samples: [
      'rcpt 421 4.2.1 Recipient mailbox is being moved',
      'rcpt 421 4.7.0 TLS required for RCPT domain, closing connection.',
    ],
  },
  'connection closed by the server': {
    codes: [421],
    verdict: SERVER_UNAVAILABLE,
    samples: [
      'rcpt 421 4.3.0 Temporary System Problem. Try again later.',
      'greeting 421 mx.example Service not available, closing transmission channel',
    ],
  },
  throttled: {
    stages: MESSAGE_STAGES,
    codes: [450, 451, 452, 454],
    phrases: parsePhrases(`
      too many, too fast, rate limit, throttl, slow down, exceeded the rate, too much mail, try fewer
    `),
    verdict: THROTTLED,
    samples: [
      'rcpt 452 4.5.3 Too many recipients',
      'rcpt 451 4.7.500 Server busy. You are sending too fast.',
      'content 450 4.7.1 Rate limit exceeded for this recipient domain',
    ],
  },
  'next hop has insufficient storage': {
    codes: [450, 451, 452],
    enhancedCodes: ['4.3.1', '4.3.2'],
    verdict: SERVER_UNAVAILABLE,
    samples: ['rcpt 451 4.3.2 System not accepting network messages'],
  },
  'host accepts no messages': {
    stages: STAGES_BEFORE_MAIL,
    codes: [521],
    verdict: CONFIGURATION_FAULT,
    samples: ['greeting 521 web.example does not accept mail'],
  },

  // ── The message ───────────────────────────────────────────────────────────────────────────────────────
  'message too large': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: SIZE_PHRASES,
    exceptPhrases: [...NO_SIZE_PHRASES, 'mailbox is full'],
    verdict: SIZE_REFUSAL,
    samples: [
      'mail 552 5.2.3 Message size exceeds fixed maximum message size',
      'content 552 Message size exceeds maximum permitted',
      'content 552 5.3.4 Error: message file too big',
      'content 523 the message size exceeds the quota of the recipient',
    ],
  },
  'message too large, according to the code': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    enhancedCodes: ['5.3.4', '5.2.3'],
    verdict: SIZE_REFUSAL,
    samples: ['content 554 5.3.4 Refused'],
  },
  'content refused': {
    stages: MESSAGE_STAGES,
    phrases: [
      ...CONTENT_PHRASES,
      'antispam',
      'bulk mail',
      'virus',
      'antivirus',
      'attachment',
      'blocked because its content',
      'url in this message',
    ],
    verdict: CONTENT_REFUSAL,
    samples: [
      'content 550 5.7.1 Message rejected as spam by Content Filtering.',
      'content 554 5.7.1 Spam message rejected',
      'content 550 High probability of spam',
      'content 554 5.7.1 virus found: Eicar-Test-Signature',
    ],
  },
  'content refused, according to the code': {
    stages: MESSAGE_STAGES,
    enhancedCodes: ['5.6.'],
    verdict: CONTENT_REFUSAL,
    samples: [
      'content 550 5.6.0 Lone CR or LF in body',
      'content 554 5.6.1 Body type not supported by remote host',
      'rcpt 553 5.6.7 Must use SMTPUTF8 capability for non-ASCII addresses',
      'rcpt 550 5.6.7 SMTPUTF8 not supported',
    ],
  },

  // ── The mailbox ───────────────────────────────────────────────────────────────────────────────────────
  'mailbox full': {
    ...IN_ANY_TEXT,
    phrases: [...MAILBOX_FULL_PHRASES, 'quota', 'storage allocation'],
    verdict: MAILBOX_FULL,
    samples: [
      'rcpt 552 5.2.2 The email account that you tried to reach is over quota',
      'content 552 Requested mail action aborted: exceeded storage allocation',
      'rcpt 554 5.2.2 mailbox full',
      'content 552 Quota violation for a@b.example',
      'rcpt 452 4.2.2 The email account that you tried to reach is over quota',
      "The recipient's mailbox is full and cannot take messages now.",
      'user is over quota: 52428800 of 52428800',
      'Das Postfach des Empfängers ist voll.',
      'La boîte aux lettres est pleine.',
      '宛先のメールボックスがいっぱいのため、受信できませんでした。',
      'Превышена квота почтового ящика',
      '对方邮箱已满，暂时无法接收。',
    ],
  },
  'mailbox full, according to the code': {
    stages: MESSAGE_STAGES,
    enhancedCodes: ['5.2.2'],
    verdict: MAILBOX_FULL,
    samples: ['rcpt 550 5.2.2 Cannot store this message', 'rcpt 452 4.2.2 Mailbox cannot take this message'],
  },
  'no such recipient, according to the code': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.1.351'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: MAILBOX_MISSING,
    samples: [
      'rcpt 501 5.1.3 Bad recipient address syntax',
      'rcpt 550 5.1.6 Recipient has moved, no forwarding address',
    ],
  },
  'mailbox disabled, according to the code': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.2.1'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: MAILBOX_DISABLED,
    samples: ['content 550 5.2.1 Mailbox disabled, not accepting messages'],
  },
  'lookup of the recipient’s domain failed': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.10'],
    phrases: FAILED_LOOKUP_PHRASES,
    exceptPhrases: parsePhrases('sender, mail from, from address'),
    verdict: UNKNOWN_REFUSAL,
    samples: ['rcpt 550 5.1.2 Unable to resolve MX: nameserver unreachable'],
  },
  'address refused for another reason': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1'],
    exceptPhrases: ['sender'],
    verdict: POLICY_REFUSAL,
    samples: [
      'rcpt 550 5.1.1 <a@b.example>: Recipient address rejected: blocked by policy',
      'rcpt 550 5.2.1 Mailbox not allowed to receive from outside, denied',
    ],
  },
  'no such recipient, according to the text': {
    stages: MAILBOX_STAGES,
    codes: [550, 551, 552, 553, 554],
    enhancedCodes: ['', '5.0.', '5.1.0', '5.2.', '5.3.', '5.4.', '5.5.'],
    phrases: MAILBOX_MISSING_PHRASES,
    exceptPhrases: [...OTHER_CAUSE_PHRASES, ...NO_MAILBOX_PHRASES],
    verdict: MAILBOX_MISSING,
    samples: [
      'rcpt 550 <a@b.example>... User unknown',
      'rcpt 550 sorry, no mailbox here by that name (#5.1.1)',
      'rcpt 550 Unknown user',
    ],
  },
  'mailbox unavailable': {
    stages: ['rcpt'],
    codes: [550],
    enhancedCodes: ['', '5.0.0', '5.5.0'],
    phrases: MAILBOX_UNAVAILABLE_PHRASES,
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: MAILBOX_MISSING,
    samples: ['rcpt 550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).'],
  },
  // The account that a reply calls disabled can be that of this service at the relay, so such a reply suppresses
  // nobody.
  'mailbox disabled, according to the text': {
    stages: MAILBOX_STAGES,
    phrases: MAILBOX_DISABLED_PHRASES,
    exceptPhrases: [...OTHER_CAUSE_PHRASES, 'your account', 'your mailbox'],
    verdict: MAILBOX_DISABLED,
    samples: ['content 550 inactive user'],
  },
  'account disabled, according to the text': {
    stages: MAILBOX_STAGES,
    phrases: [...MAILBOX_DISABLED_PHRASES, ...ACCOUNT_DISABLED_PHRASES, 'no longer accept'],
    verdict: MAILBOX_REFUSAL,
    samples: ['rcpt 550 5.7.1 Account inactive', 'rcpt 550 Mailbox disabled by policy'],
  },
  // Microsoft 365 refuses a recipient that is not in the directory (directory-based edge blocking).
  'recipient not in the directory of the gateway': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.4.1'],
    phrases: parsePhrases(`
      recipient address rejected: access denied, recipient addresses rejected: access denied
      recipient addresses rejected : access denied
    `),
    exceptPhrases: without(OTHER_CAUSE_PHRASES, 'denied'),
    verdict: MAILBOX_MISSING,
    samples: ['rcpt 550 5.4.1 All recipient addresses rejected : Access denied [mx.protection.outlook.example]'],
  },
  // Cisco ESA writes this reply for a recipient that its directory does not contain.
  'address refused by Cisco ESA': {
    stages: MAILBOX_STAGES,
    codes: [550],
    enhancedCodes: ['5.1.0'],
    phrases: ['address rejected'],
    exceptPhrases: [
      ...OTHER_CAUSE_PHRASES,
      'recipient address',
      'address rejected:',
      'address rejected by',
      'address rejected due',
      'address rejected because',
      'address rejected for',
    ],
    verdict: MAILBOX_MISSING,
    samples: ['rcpt 550 #5.1.0 a@b.example Address rejected'],
  },
  'address without a route': {
    form: 'any',
    stages: MAILBOX_STAGES,
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.1', '5.1.2', '5.4.0', '5.4.4', '5.5.0'],
    phrases: parsePhrases('unrouteable address, unroutable address'),
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: MAILBOX_MISSING,
    samples: ['rcpt 550 <a@b.example>: unroutable address'],
  },

  // ── Sender and policy ─────────────────────────────────────────────────────────────────────────────────
  'sender refused': {
    stages: ['mail', 'rcpt', 'content'],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.7', '5.1.8', '5.4.0', '5.5.0'],
    phrases: parsePhrases('sender, from address, mail from, return path, envelope from'),
    verdict: SENDER_REFUSAL,
    samples: ['rcpt 550 5.1.8 <a@b.example>: Sender address rejected: Domain not found'],
  },
  'sender refused, according to the code': {
    stages: ['mail', 'rcpt', 'content'],
    codes: [450, 451, 501, 550, 551, 553, 554],
    enhancedCodes: ['5.1.7', '5.1.8'],
    verdict: SENDER_REFUSAL,
    samples: ['mail 501 5.1.7 Invalid address', 'mail 451 4.1.8 Domain of sender address a@b.example does not resolve'],
  },
  // Some servers answer with a code of the recipient.
  'sender does not exist': {
    stages: ['mail', 'rcpt', 'content'],
    phrases: [...SENDER_PHRASES, 'sender does not exist', 'sender unknown', 'unknown sender', 'no such sender'],
    verdict: SENDER_REFUSAL,
    samples: ['rcpt 550 5.1.1 Sender does not exist', 'rcpt 550 5.1.1 <a@b.example>: Sender address rejected'],
  },
  policy: {
    stages: ['mail', ...MESSAGE_STAGES],
    enhancedCodes: ['5.7.'],
    verdict: POLICY_REFUSAL,
    samples: [
      'content 550 5.7.1 This message violates b.example email policy. - gcdp',
      'rcpt 550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup',
      'content 554 5.7.7 Email not accepted for policy reasons.',
    ],
  },
  'refused by policy, according to the text': {
    stages: MESSAGE_STAGES,
    phrases: [...POLICY_PHRASES, 'policy', 'rejected due to'],
    verdict: POLICY_REFUSAL,
    samples: ['rcpt 550 Rejected by local policy', 'rcpt 554 Denied by policy'],
  },
  'message refused with the invalid code 571': {
    codes: [571],
    verdict: POLICY_REFUSAL,
    samples: ['content 571 Message blocked'],
  },

  // ── Protocol errors ───────────────────────────────────────────────────────────────────────────────────
  'unexpected command or syntax error': {
    stages: [...STAGES_BEFORE_CONTENT, 'data', 'content'],
    codes: [500, 501, 502, 503, 504, 555],
    verdict: PROTOCOL_FAULT,
    samples: [
      'mail 500 5.5.1 Command unrecognized',
      'rcpt 501 5.5.4 Syntax error in parameters',
      'data 502 5.5.1 Unrecognized command.',
    ],
  },

  // ── Texts without a code, and replies that match no rule above ────────────────────────────────────────
  'throttled, in prose': {
    ...IN_ANY_TEXT,
    phrases: parsePhrases(
      'too many connections, receiving mail at a rate, rate limit, ratelimit, too many messages too quickly',
    ),
    verdict: THROTTLED,
    samples: ['You have sent too many messages too quickly.'],
  },
  'mailbox temporarily disabled, in prose': {
    ...IN_ANY_TEXT,
    phrases: parsePhrases('temporarily disabled, temporarily suspended, temporarily inactive, temporarily locked'),
    verdict: MAILBOX_CLOSED,
    samples: ['This mailbox is temporarily suspended.'],
  },
  'temporary failure, in prose': {
    ...IN_ANY_TEXT,
    phrases: ['found, try again', ...TEMPORARY_PHRASES],
    exceptPhrases: parsePhrases('not temporary, no temporary, non-temporary, nicht vorübergehend'),
    verdict: RECIPIENT_UNAVAILABLE,
    samples: [
      'Der Empfang ist vorübergehend gestört.',
      'サーバーが一時的に利用できません',
      'The server is busy; please try again later.',
    ],
  },
  'reputation, in prose': {
    ...IN_ANY_TEXT,
    phrases: REPUTATION_PHRASES,
    verdict: REPUTATION_REFUSAL,
    samples: ['the sender is listed at spamhaus'],
  },
  'authentication, in prose': {
    ...IN_ANY_TEXT,
    phrases: AUTHENTICATION_PHRASES,
    verdict: SENDER_FAULT,
    samples: ['Relaying is not permitted for this destination.'],
  },
  'content refused, in prose': {
    ...IN_ANY_TEXT,
    phrases: CONTENT_PHRASES,
    exceptPhrases: ['antispam recipient check'],
    verdict: CONTENT_REFUSAL,
    samples: ['The message was classified as spam and refused.', 'メッセージは迷惑メールと判断されました'],
  },
  'sender refused, in prose': {
    ...IN_ANY_TEXT,
    phrases: SENDER_PHRASES,
    verdict: SENDER_REFUSAL,
    samples: ['The list refused the message: invalid sender.'],
  },
  'policy, in prose': {
    form: 'prose',
    phrases: ['blocked', 'message refused', ...POLICY_PHRASES],
    exceptPhrases: ['recipient address rejected: access denied'],
    verdict: POLICY_REFUSAL,
    samples: ['You are not allowed to send mail to this group.'],
  },
  'message too large, in prose': {
    ...IN_ANY_TEXT,
    phrases: SIZE_PHRASES,
    exceptPhrases: NO_SIZE_PHRASES,
    verdict: SIZE_REFUSAL,
    samples: ['Your message exceeds the maximum size that this server accepts.', 'Die Nachricht ist zu groß.'],
  },
  'mail loop or protocol': {
    ...IN_ANY_TEXT,
    phrases: LOOP_PHRASES,
    verdict: LOOP_REFUSAL,
    samples: ['554 too many hops 26 (25 max)', 'mail for host.example loops back to myself'],
  },
  'recipient’s domain does not exist, in prose': {
    form: 'prose',
    phrases: [...DOMAIN_MISSING_PHRASES, ...VAGUE_DOMAIN_PHRASES, 'no smtp service'],
    exceptPhrases: parsePhrases(`
      try again, temporar, servfail, sender domain, helo, ehlo, client host, your domain, from domain
      domain of sender, sender address, reverse
    `),
    verdict: DOMAIN_MISSING,
    samples: [
      'The address uses a domain that could not be found: host not found.',
      'Die Domain existiert nicht.',
      'домен не найден',
    ],
  },
  'mailbox disabled, in prose': {
    form: 'prose',
    phrases: [...MAILBOX_DISABLED_PHRASES, ...ACCOUNT_DISABLED_PHRASES],
    exceptPhrases: NO_MAILBOX_PHRASES,
    verdict: MAILBOX_DISABLED,
    samples: ['The account has been closed.'],
  },
  'no such recipient, in prose': {
    form: 'prose',
    phrases: [...MAILBOX_MISSING_PHRASES, ...VAGUE_MAILBOX_PHRASES, ...MAILBOX_UNAVAILABLE_PHRASES],
    exceptPhrases: NO_MAILBOX_PHRASES,
    verdict: MAILBOX_MISSING,
    samples: [
      'There is no one here with that name: no such user.',
      "L'adresse que vous avez saisie n'existe pas.",
      'El usuario no existe en este servidor.',
      'Die Adresse ist unbekannt.',
      'このアドレスは存在しません。',
      '收件人不存在，请检查地址。',
      'Такого пользователя нет: пользователь не найден',
    ],
  },
  'delivery stopped after retries': {
    ...IN_ANY_TEXT,
    phrases: EXPIRY_PHRASES,
    verdict: RECIPIENT_UNAVAILABLE,
    samples: [
      'I tried for five days and the host did not respond.',
      'retry timeout exceeded',
      'Delivery was aborted after 72 hours.',
      'Zeitüberschreitung beim Verbindungsaufbau',
    ],
  },
  'server not reached, according to the code': {
    enhancedCodes: parsePhrases(`
      5.3.1, 5.3.2, 5.4.1, 5.4.2, 5.4.3, 5.4.5, 5.4.7, 5.4.300, 5.4.312, 5.4.316, 5.4.317, 5.4.318, 5.4.319
    `),
    verdict: RECIPIENT_UNAVAILABLE,
    samples: ['rcpt 550 5.4.7 no'],
  },
});
