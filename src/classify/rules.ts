/** The first matching rule decides. Samples: rules.tsv. Enhanced codes: RFC 3463, 4954, 5248, 6710, 7372, 7505. */

import {
  CONFIGURATION_FAULT,
  CONTENT_REFUSAL,
  type FailureRule,
  nameRules,
  POLICY_REFUSAL,
  ROUTE_QUOTA,
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

const RATE_PHRASES = parsePhrases(
  'too many, too fast, rate limit, throttl, slow down, exceeded the rate, too much mail, try fewer',
);

const IN_ANY_TEXT = { form: 'any', stages: MESSAGE_STAGES } as const;

const DOMAIN_CODES: readonly number[] = [550, 551, 552, 553, 554, 556];
const DOMAIN_ENHANCED_CODES: readonly string[] = [
  ...['', '5.0.0', '5.1.0', '5.1.1', '5.1.2', '5.1.3', '5.1.10'],
  ...['5.4.0', '5.4.4', '5.4.310', '5.5.0'],
];

export const RULES: readonly FailureRule[] = nameRules({
  // ── Configuration of this service ─────────────────────────────────────────────────────────────────────
  'sign-in required': { codes: [530, 534, 535, 538], verdict: CONFIGURATION_FAULT },
  'relaying denied': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: parsePhrases(`
      relay access denied, relaying denied, relay denied, relay not permitted, relay is not permitted
      relaying not allowed, relaying is not allowed, relaying is prohibited, relay prohibited, unable to relay
      not permitted to relay, do not relay, authenticated to relay, rcpthosts, unauthorized ip address
    `),
    verdict: CONFIGURATION_FAULT,
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
  },
  'EHLO name or reverse DNS name refused': {
    phrases: parsePhrases(`
      helo command rejected, invalid helo, invalid ehlo, bad helo, helo name, ehlo name, helo/ehlo
      ptr record, reverse dns, cannot find your, reverse hostname, no reverse, dns ptr, rdns
    `),
    verdict: CONFIGURATION_FAULT,
  },
  'account of this service paused or suspended': {
    phrases: parsePhrases(`
      your account is suspended, your account has been suspended, your account was suspended, your account is disabled
      your account has been disabled, your account is blocked, your account has been blocked, your account is locked
      your account is on hold, your account has been paused, your account is not active, your account is inactive
      your account has been deactivated, your account is temporarily, account may not send, account cannot send
      account is paused, account is under review, account is not yet activated, smtp account is not
      sending paused, sending suspended
      sending is paused, sending has been paused, sending is disabled, sending has been disabled, sending disabled
      sending is suspended, sending has been suspended, mail server has been suspended
    `),
    verdict: CONFIGURATION_FAULT,
  },
  'account disabled, in the reply to the sender': {
    stages: ['mail'],
    phrases: ACCOUNT_DISABLED_PHRASES,
    verdict: CONFIGURATION_FAULT,
  },
  'EHLO refused by syntax': { stages: ['ehlo'], codes: [500, 501, 502, 504], verdict: CONFIGURATION_FAULT },
  'no reverse DNS name, according to the code': { enhancedCodes: ['5.7.25'], verdict: CONFIGURATION_FAULT },
  // Amazon SES behind another relay refuses a second DKIM signature: a route with one signature delivers the message.
  'sender not verified with the provider': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: parsePhrases(`
      address is not verified, identities failed the check, verified sender, sender signature, sender identity
      unverified sender, unverified domain, unverified identity, domain is not verified, domain not verified
      domain is unverified, unconfigured sending domain, permissions to send as, not owned by user
      not authorized to send from, not allowed to send from, not authorized as sender, sender address is not allowed
      sender is not allowed, sender not allowed, sender is not verified, sender not verified, sender is not authorized
      sender not authorized, sender address rejected: access denied
      not associated with your account, as a sender domain
      duplicate header 'dkim-signature'
    `),
    verdict: SENDER_FAULT,
  },
  'sender fails authentication at the recipient': {
    stages: MESSAGE_STAGES,
    enhancedCodes: ['5.7.20', '5.7.21', '5.7.22', '5.7.23', '5.7.24', '5.7.26', '5.7.27', '5.7.30', '5.7.515'],
    verdict: SENDER_FAULT,
  },
  'sender fails authentication, according to the text': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: parsePhrases('dmarc, spf check, spf fail, fails spf, failed spf, dkim, sender policy framework'),
    verdict: SENDER_FAULT,
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
  },

  // ── The recipient, with phrases that also occur in replies about an unknown mailbox ──────────────────
  'recipient refuses this message': {
    stages: MAILBOX_STAGES,
    phrases: parsePhrases(`
      recipient preferences, recipient's preferences, recipients preferences, may not have permission to post
      not have permission to post
    `),
    verdict: POLICY_REFUSAL,
  },
  // A null MX record is an answer of DNS (RFC 7505), and Sendmail quotes the name server that answered.
  'recipient’s domain has a null MX record': {
    stages: MAILBOX_STAGES,
    codes: DOMAIN_CODES,
    enhancedCodes: DOMAIN_ENHANCED_CODES,
    phrases: parsePhrases('null mx, nullmx, null-mx, host unknown (name server, host unknown (authoritative answer'),
    exceptPhrases: [...without(OTHER_CAUSE_PHRASES, 'dns', 'name server'), ...OTHER_SUBJECT_PHRASES],
    verdict: DOMAIN_MISSING,
  },
  // The code of Microsoft 365 for a domain that does not exist. The text of the reply contains the word DNS.
  'recipient’s domain does not exist, according to the code of Microsoft 365': {
    stages: MAILBOX_STAGES,
    codes: [550, 554],
    enhancedCodes: ['5.4.310'],
    exceptPhrases: [...without(OTHER_CAUSE_PHRASES, 'dns'), ...OTHER_SUBJECT_PHRASES],
    verdict: DOMAIN_MISSING,
  },
  'recipient’s domain accepts no mail': {
    stages: MAILBOX_STAGES,
    codes: DOMAIN_CODES,
    enhancedCodes: DOMAIN_ENHANCED_CODES,
    phrases: [...DOMAIN_MISSING_PHRASES, ...NO_MAIL_PHRASES],
    exceptPhrases: [...OTHER_CAUSE_PHRASES, ...OTHER_SUBJECT_PHRASES],
    verdict: DOMAIN_MISSING,
  },
  'recipient’s domain does not exist, in vague words beside a code': {
    stages: MAILBOX_STAGES,
    codes: DOMAIN_CODES,
    enhancedCodes: ['5.1.2', '5.4.4'],
    phrases: VAGUE_DOMAIN_PHRASES,
    exceptPhrases: [...OTHER_CAUSE_PHRASES, ...OTHER_SUBJECT_PHRASES],
    verdict: DOMAIN_MISSING,
  },
  'recipient’s domain accepts no mail, according to the code': {
    stages: MAILBOX_STAGES,
    codes: [550, 551, 553, 554, 556],
    enhancedCodes: ['5.1.2'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: DOMAIN_MISSING,
  },
  'recipient’s domain accepts no mail, according to the reply code': {
    stages: ['rcpt'],
    codes: [556],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.10'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: DOMAIN_MISSING,
  },

  // ── Reputation of this service ────────────────────────────────────────────────────────────────────────
  'host on a blocklist': {
    stages: STAGES_BEFORE_CONTENT,
    phrases: BLOCKLIST_PHRASES,
    exceptPhrases: parsePhrases(`
      mailbox, user is, recipient, account is, user you are trying, message was blocked, message has been blocked
    `),
    verdict: REPUTATION_REFUSAL,
  },
  'connection refused by policy': {
    stages: STAGES_BEFORE_MAIL,
    codes: [521, 530, 550, 553, 554, 571],
    enhancedCodes: ['5.7.'],
    verdict: REPUTATION_REFUSAL,
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
  },

  // ── Temporary failures ────────────────────────────────────────────────────────────────────────────────
  greylisted: {
    form: 'any',
    phrases: parsePhrases('greylist, graylist, grey list, gray list, grey-list, gray-list, postgrey'),
    verdict: GREYLISTED,
  },
  'recipient receives too many messages': {
    phrases: parsePhrases(`
      user you are trying to contact is receiving, receiving mail too quickly, receiving mail at a rate
    `),
    verdict: THROTTLED,
  },
  'sending quota used up': {
    phrases: parsePhrases(`
      daily message quota, daily sending quota, daily quota, monthly quota, hourly quota, sending quota
      exceeded your messaging limits, sending limit, daily limit, monthly limit, hourly limit, daily message limit
      daily email limit, monthly email limit, credits exceeded, out of credits, no credits, not enough credits
      insufficient credits
    `),
    exceptPhrases: parsePhrases('mailbox, inbox, receiving'),
    verdict: ROUTE_QUOTA,
  },
  'sending rate exceeded': {
    phrases: parsePhrases(`
      maximum sending rate exceeded, throttling failure, too many connections, concurrent connections
      too many concurrent, connection rate limit, emails per second, messages per second, requests per second
    `),
    verdict: ROUTE_THROTTLED,
  },
  'throttled before the recipient is known': {
    stages: [...STAGES_BEFORE_MAIL, 'mail'],
    codes: [450, 451, 452, 454, 550, 554],
    phrases: RATE_PHRASES,
    verdict: ROUTE_THROTTLED,
  },
  'connection closed by a rate limit': {
    codes: [421],
    phrases: parsePhrases('too many, rate limit, throttl, try fewer'),
    verdict: ROUTE_THROTTLED,
  },
  'connection closed because of one recipient': {
    stages: MESSAGE_STAGES,
    codes: [421],
    phrases: parsePhrases('recipient, mailbox, this user, this message, rcpt domain'),
    verdict: RECIPIENT_UNAVAILABLE,
  },
  'connection closed by the server': { codes: [421], verdict: SERVER_UNAVAILABLE },
  throttled: {
    stages: MESSAGE_STAGES,
    codes: [450, 451, 452, 454],
    phrases: RATE_PHRASES,
    verdict: THROTTLED,
  },
  'next hop has insufficient storage': {
    codes: [450, 451, 452],
    enhancedCodes: ['4.3.1', '4.3.2'],
    verdict: SERVER_UNAVAILABLE,
  },
  'host accepts no messages': { stages: STAGES_BEFORE_MAIL, codes: [521], verdict: CONFIGURATION_FAULT },

  // ── The message ───────────────────────────────────────────────────────────────────────────────────────
  'message too large': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    phrases: SIZE_PHRASES,
    exceptPhrases: [...NO_SIZE_PHRASES, 'mailbox is full'],
    verdict: SIZE_REFUSAL,
  },
  'message too large, according to the code': {
    stages: ['mail', 'rcpt', 'data', 'content'],
    enhancedCodes: ['5.3.4', '5.2.3'],
    verdict: SIZE_REFUSAL,
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
  },
  'content refused, according to the code': {
    stages: MESSAGE_STAGES,
    enhancedCodes: ['5.6.'],
    verdict: CONTENT_REFUSAL,
  },

  // ── The mailbox ───────────────────────────────────────────────────────────────────────────────────────
  'mailbox full': {
    ...IN_ANY_TEXT,
    phrases: [...MAILBOX_FULL_PHRASES, 'quota', 'storage allocation'],
    verdict: MAILBOX_FULL,
  },
  'mailbox full, according to the code': { stages: MESSAGE_STAGES, enhancedCodes: ['5.2.2'], verdict: MAILBOX_FULL },
  'no such recipient, according to the code': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.1.351'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: MAILBOX_MISSING,
  },
  'mailbox disabled, according to the code': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.2.1'],
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: MAILBOX_DISABLED,
  },
  'lookup of the recipient’s domain failed': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.10'],
    phrases: FAILED_LOOKUP_PHRASES,
    exceptPhrases: parsePhrases('sender, mail from, from address'),
    verdict: UNKNOWN_REFUSAL,
  },
  'address refused for another reason': {
    stages: MAILBOX_STAGES,
    enhancedCodes: ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1'],
    exceptPhrases: ['sender'],
    verdict: POLICY_REFUSAL,
  },
  'no such recipient, according to the text': {
    stages: MAILBOX_STAGES,
    codes: [550, 551, 552, 553, 554],
    enhancedCodes: ['', '5.0.', '5.1.0', '5.2.', '5.3.', '5.4.', '5.5.'],
    phrases: MAILBOX_MISSING_PHRASES,
    exceptPhrases: [...OTHER_CAUSE_PHRASES, ...NO_MAILBOX_PHRASES],
    verdict: MAILBOX_MISSING,
  },
  'mailbox unavailable': {
    stages: ['rcpt'],
    codes: [550],
    enhancedCodes: ['', '5.0.0', '5.5.0'],
    phrases: MAILBOX_UNAVAILABLE_PHRASES,
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: MAILBOX_MISSING,
  },
  // It can be the account of this service at the relay, so such a reply suppresses nobody.
  'mailbox disabled, according to the text': {
    stages: MAILBOX_STAGES,
    phrases: MAILBOX_DISABLED_PHRASES,
    exceptPhrases: [...OTHER_CAUSE_PHRASES, 'your account', 'your mailbox'],
    verdict: MAILBOX_DISABLED,
  },
  'account disabled, according to the text': {
    stages: MAILBOX_STAGES,
    phrases: [...MAILBOX_DISABLED_PHRASES, ...ACCOUNT_DISABLED_PHRASES, 'no longer accept'],
    verdict: MAILBOX_REFUSAL,
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
  },
  'address without a route': {
    form: 'any',
    stages: MAILBOX_STAGES,
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.1', '5.1.2', '5.4.0', '5.4.4', '5.5.0'],
    phrases: parsePhrases('unrouteable address, unroutable address'),
    exceptPhrases: OTHER_CAUSE_PHRASES,
    verdict: MAILBOX_MISSING,
  },

  // ── Sender and policy ─────────────────────────────────────────────────────────────────────────────────
  'sender refused': {
    stages: ['mail', 'rcpt', 'content'],
    enhancedCodes: ['', '5.0.0', '5.1.0', '5.1.7', '5.1.8', '5.4.0', '5.5.0'],
    phrases: parsePhrases('sender, from address, mail from, return path, envelope from'),
    verdict: SENDER_REFUSAL,
  },
  'sender refused, according to the code': {
    stages: ['mail', 'rcpt', 'content'],
    codes: [450, 451, 501, 550, 551, 553, 554],
    enhancedCodes: ['5.1.7', '5.1.8'],
    verdict: SENDER_REFUSAL,
  },
  // Some servers answer with a code of the recipient.
  'sender does not exist': {
    stages: ['mail', 'rcpt', 'content'],
    phrases: [...SENDER_PHRASES, 'sender does not exist', 'sender unknown', 'unknown sender', 'no such sender'],
    verdict: SENDER_REFUSAL,
  },
  'policy about the sender': { stages: ['mail'], enhancedCodes: ['5.7.'], verdict: SENDER_REFUSAL },
  policy: { stages: MESSAGE_STAGES, enhancedCodes: ['5.7.'], verdict: POLICY_REFUSAL },
  'refused by policy, according to the text': {
    stages: MESSAGE_STAGES,
    phrases: [...POLICY_PHRASES, 'policy', 'rejected due to'],
    verdict: POLICY_REFUSAL,
  },
  'message refused with the invalid code 571': { codes: [571], verdict: POLICY_REFUSAL },

  // ── Protocol errors ───────────────────────────────────────────────────────────────────────────────────
  'unexpected command or syntax error': {
    stages: [...STAGES_BEFORE_CONTENT, 'data', 'content'],
    codes: [500, 501, 502, 503, 504, 555],
    verdict: PROTOCOL_FAULT,
  },

  // ── Texts without a code, and replies that match no rule above ────────────────────────────────────────
  'throttled, in prose': {
    ...IN_ANY_TEXT,
    phrases: parsePhrases(
      'too many connections, receiving mail at a rate, rate limit, ratelimit, too many messages too quickly',
    ),
    verdict: THROTTLED,
  },
  'mailbox temporarily disabled, in prose': {
    ...IN_ANY_TEXT,
    phrases: parsePhrases('temporarily disabled, temporarily suspended, temporarily inactive, temporarily locked'),
    verdict: MAILBOX_CLOSED,
  },
  'temporary failure, in prose': {
    ...IN_ANY_TEXT,
    phrases: ['found, try again', ...TEMPORARY_PHRASES],
    exceptPhrases: parsePhrases('not temporary, no temporary, non-temporary, nicht vorübergehend'),
    verdict: RECIPIENT_UNAVAILABLE,
  },
  'reputation, in prose': { ...IN_ANY_TEXT, phrases: REPUTATION_PHRASES, verdict: REPUTATION_REFUSAL },
  'authentication, in prose': { ...IN_ANY_TEXT, phrases: AUTHENTICATION_PHRASES, verdict: SENDER_FAULT },
  'content refused, in prose': {
    ...IN_ANY_TEXT,
    phrases: CONTENT_PHRASES,
    exceptPhrases: ['antispam recipient check'],
    verdict: CONTENT_REFUSAL,
  },
  'sender refused, in prose': { ...IN_ANY_TEXT, phrases: SENDER_PHRASES, verdict: SENDER_REFUSAL },
  'policy, in prose': {
    form: 'prose',
    phrases: ['blocked', 'message refused', ...POLICY_PHRASES],
    exceptPhrases: ['recipient address rejected: access denied'],
    verdict: POLICY_REFUSAL,
  },
  'message too large, in prose': {
    ...IN_ANY_TEXT,
    phrases: SIZE_PHRASES,
    exceptPhrases: NO_SIZE_PHRASES,
    verdict: SIZE_REFUSAL,
  },
  'mail loop or protocol': { ...IN_ANY_TEXT, phrases: LOOP_PHRASES, verdict: LOOP_REFUSAL },
  'recipient’s domain does not exist, in prose': {
    form: 'prose',
    phrases: [...DOMAIN_MISSING_PHRASES, ...VAGUE_DOMAIN_PHRASES, 'no smtp service'],
    exceptPhrases: parsePhrases(`
      try again, temporar, servfail, sender domain, helo, ehlo, client host, your domain, from domain
      domain of sender, sender address, reverse
    `),
    verdict: DOMAIN_MISSING,
  },
  'mailbox disabled, in prose': {
    form: 'prose',
    phrases: [...MAILBOX_DISABLED_PHRASES, ...ACCOUNT_DISABLED_PHRASES],
    exceptPhrases: NO_MAILBOX_PHRASES,
    verdict: MAILBOX_DISABLED,
  },
  'no such recipient, in prose': {
    form: 'prose',
    phrases: [...MAILBOX_MISSING_PHRASES, ...VAGUE_MAILBOX_PHRASES, ...MAILBOX_UNAVAILABLE_PHRASES],
    exceptPhrases: NO_MAILBOX_PHRASES,
    verdict: MAILBOX_MISSING,
  },
  'delivery stopped after retries': { ...IN_ANY_TEXT, phrases: EXPIRY_PHRASES, verdict: RECIPIENT_UNAVAILABLE },
  'server not reached, according to the code': {
    enhancedCodes: parsePhrases(`
      5.3.1, 5.3.2, 5.4.1, 5.4.2, 5.4.3, 5.4.5, 5.4.7, 5.4.300, 5.4.312, 5.4.316, 5.4.317, 5.4.318, 5.4.319
    `),
    verdict: RECIPIENT_UNAVAILABLE,
  },
});
