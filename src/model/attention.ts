/** The problems that need an operator. Codes are stable, because receivers of notifications depend on them. Pure. */
import type { Account, ApiKey } from './account.ts';
import type { RecordCheck } from './domain.ts';
import type { Webhook } from './webhook.ts';

/**
 * `https`: not by mail, because without this item no mail is sent, or because a mail could cause the next item. `none`:
 * the item concerns the notifications themselves, or another item has the same cause.
 */
export type AttentionChannel = 'all' | 'https' | 'none';

interface AttentionKind {
  /** Stages of the same problem: if one replaces another, only the start of the new stage is announced. */
  readonly family?: string;
  readonly channel?: AttentionChannel;
  /** By default `postrider doctor`. `SUBJECT` stands for the subject. */
  readonly command?: string;
  readonly consequence: string;
}

export const ATTENTION_CODES = {
  'database-unavailable': {
    channel: 'https',
    consequence: 'No message is accepted. Requests fail with status 500, and clients retry.',
  },
  'route-failed': {
    consequence: 'Messages take the next route of their policy. Without one they are accepted and wait in the queue.',
  },
  'route-unusable-for-domain': {
    command: 'postrider route list',
    consequence: 'Messages from the domain take another route, or wait if no other is usable.',
  },
  'routes-paused': { command: 'postrider route list', consequence: 'Messages of the policy wait in the queue.' },
  'route-file-invalid': { consequence: 'The route goes on with the former content of the file.' },
  'route-unproven': {
    command: 'postrider route list',
    consequence: 'The provider of the route may refuse these senders when the route is needed.',
  },
  'next-hop-refusal': {
    consequence: 'Messages wait in the queue or bounce until the next hop accepts this service again.',
  },
  'signing-failed': {
    channel: 'https',
    consequence: 'Messages that cannot be signed wait in the queue and expire at their maximum age.',
  },
  // Operators receive a notification about the cause as `next-hop-refusal` or `signing-failed`.
  'attempts-refused': { channel: 'none', consequence: 'Messages may wait in the queue or bounce.' },
  'node-lost': { command: 'postrider overview', consequence: 'The other nodes take over the work of the lost node.' },
  'no-delivering-node': {
    channel: 'https',
    command: 'postrider overview',
    consequence: 'Messages are accepted and not sent.',
  },
  'no-sending-domain': { command: 'postrider domain list', consequence: 'Every message is refused with status 403.' },
  'messages-uncertain': {
    command: 'postrider message list --state uncertain',
    consequence: 'Uncertain messages stay in the state uncertain and are not sent again until an operator decides.',
  },
  'queue-delayed': {
    command: 'postrider message list --state queued',
    consequence: 'Messages arrive late. A message that reaches its maximum age expires.',
  },
  'purge-late': {
    consequence: 'Data of recipients is kept longer than POSTRIDER_KEEP_HISTORY allows.',
  },
  'hold-without-end': {
    command: 'postrider hold list',
    consequence: 'The messages that the hold stops are not sent until its release.',
  },
  'domain-pending': {
    family: 'domain',
    command: 'postrider domain verify SUBJECT',
    consequence: 'Messages from the domain are not authenticated; they are refused unless POSTRIDER_SENDERS is `any`.',
  },
  'domain-failing': {
    family: 'domain',
    command: 'postrider domain verify SUBJECT',
    consequence: 'Receivers may reject the messages of the domain. After the grace period its messages are refused.',
  },
  'domain-refused': {
    family: 'domain',
    command: 'postrider domain verify SUBJECT',
    consequence: 'Messages from the domain are refused with status 403.',
  },
  'domain-records': {
    family: 'domain',
    command: 'postrider domain records SUBJECT',
    consequence: 'Receivers may treat the messages of the domain as spam.',
  },
  'account-locked': {
    family: 'account',
    command: 'postrider account show SUBJECT',
    consequence: 'The keys of the account are refused, and its queued messages wait.',
  },
  'account-warned': {
    family: 'account',
    command: 'postrider account show SUBJECT',
    consequence: 'The account is locked if its bounces or complaints reach the threshold.',
  },
  'volume-low': {
    family: 'volume',
    command: 'postrider account show SUBJECT',
    consequence: 'Messages of the account are refused with status 403 when its volume is used up.',
  },
  'volume-exhausted': {
    family: 'volume',
    command: 'postrider account show SUBJECT',
    consequence: 'Messages of the account are refused with status 403.',
  },
  'volume-expiring': {
    family: 'volume-expiry',
    command: 'postrider account show SUBJECT',
    consequence: 'Messages of the account are refused with status 403 after its volume has expired.',
  },
  'volume-expired': {
    family: 'volume-expiry',
    command: 'postrider account show SUBJECT',
    consequence: 'Messages of the account are refused with status 403.',
  },
  'key-expiring': {
    command: 'postrider key rotate SUBJECT',
    consequence: 'Requests with the key are refused with status 401 after the key has expired.',
  },
  'reports-not-understood': {
    channel: 'https',
    command: 'postrider feedback list',
    consequence: 'The bounces or complaints in reports that are not understood suppress no address.',
  },
  'webhook-disabled': {
    command: 'postrider webhook show SUBJECT',
    consequence: 'The events of the endpoint are kept for 30 days and not sent.',
  },
  'notifications-failing': { channel: 'none', consequence: 'Operators are not notified by mail.' },
} as const satisfies Readonly<Record<string, AttentionKind>>;

export type AttentionCode = keyof typeof ATTENTION_CODES;

function getKind(code: AttentionCode): AttentionKind {
  return ATTENTION_CODES[code];
}

export function getAttentionChannel(code: AttentionCode): AttentionChannel {
  return getKind(code).channel ?? 'all';
}

// `Object.keys` returns `string[]`; the keys are exactly those of the type.
export const ATTENTION_CODE_NAMES = Object.keys(ATTENTION_CODES) as AttentionCode[];

/** `subject`: the name of the object, such as a domain. */
export interface AttentionRef {
  readonly code: AttentionCode;
  readonly subject: string | null;
}

export interface AttentionItem extends AttentionRef {
  readonly level: 'warning' | 'failure';
  /** One sentence, which may contain untrusted text of a next hop. */
  readonly text: string;
  readonly remedy: string;
  /** The page of the dashboard, such as `/accounts/shop`, or null. */
  readonly page: string | null;
}

export function getAttentionKey({ code, subject }: AttentionRef): string {
  return subject === null ? code : `${code}:${subject}`;
}

export function getAttentionFamily({ code, subject }: AttentionRef): string {
  const family = getKind(code).family ?? code;
  return subject === null ? family : `${family}:${subject}`;
}

export function getAttentionCommand({ code, subject }: AttentionRef): string {
  return (getKind(code).command ?? 'postrider doctor').replace('SUBJECT', () => subject ?? '');
}

// What the overview shows to operators. The time to find it does not depend on the amount of data.

/** Volumes and keys that expire within this time are shown, and an expired volume for as long. */
export const EXPIRY_WARNING_MS = 7 * 24 * 3_600_000;
/** How long a key counts as in use, and a report that was not understood is shown. */
export const RECENT_USE_MS = 24 * 3_600_000;
export const VOLUME_WARNING_FRACTION = 0.9;
export const MAX_OVERVIEW_ITEMS = 100;
/** To find the time when the next message is due. */
export const MAX_SCANNED_ACCOUNTS = 2_000;

export interface QueueStatistics {
  readonly queued: number;
  readonly sending: number;
  readonly uncertain: number;
  /** The part of `queued` that holds stop. */
  readonly held: number;
  /** Queued or being sent, without notifications and held messages. `acceptedAt` is later by the held time. */
  readonly oldest: { readonly id: string; readonly acceptedAt: number } | null;
}

/** RFC 8463 section 4. This record is not necessary to authenticate a domain. */
const ED25519_TAG = 'k=ed25519';

/** The domain cannot send, will soon be blocked, or has missing or wrong records. */
export interface DomainProblem {
  readonly name: string;
  readonly status: 'pending' | 'authenticated' | 'failing';
  readonly checkedAt: number | null;
  readonly failingSince: number | null;
  /** Missing or wrong at the last check, without the optional record of an Ed25519 key. */
  readonly failedRecords: readonly Pick<RecordCheck, 'purpose' | 'name'>[];
}

export interface OverviewData {
  readonly everAccepted: boolean;
  /** Of the unlocked accounts. */
  readonly nextDueAt: number | null;
  /** Locked or warned, or with a volume that is nearly used, expires soon or expired recently. */
  readonly accounts: readonly Account[];
  /**
   * Valid keys that expire soon, if they are in use or if all keys of the account do. `successor`: the newer key of a
   * rotation. A key with a successor is listed only if it was used after the rotation.
   */
  readonly keys: readonly (ApiKey & { readonly account: string; readonly successor: number | null })[];
  readonly domains: {
    readonly authenticated: number;
    readonly all: number;
    readonly problems: readonly DomainProblem[];
  };
  /** The running age of the oldest end among the oldest messages. Null without an ended message. */
  readonly oldestEndAgeMs: number | null;
  /** Recent ones, up to `MAX_OVERVIEW_ITEMS`. */
  readonly notUnderstoodCount: number;
  /** Disabled by the service, ordered by id, at most `MAX_OVERVIEW_ITEMS`. */
  readonly disabledWebhooks: readonly Webhook[];
}

/** Each member changes with one kind of data. It is compared only with its own earlier value. */
export interface ChangeFeedPosition {
  readonly newestId: string | null;
  readonly newestAuditId: number;
  readonly recentCounts: number;
  readonly suppressingCounts: number;
}

/** `checks`: the JSON of the stored results. */
export function parseFailedRecords(checks: string): DomainProblem['failedRecords'] {
  return (JSON.parse(checks) as readonly RecordCheck[])
    .filter(({ found, purpose, value }) => {
      const isOptional = purpose === 'dkim' && value.includes(ED25519_TAG);
      return (found === 'missing' || found === 'wrong') && !isOptional;
    })
    .map(({ purpose, name }) => ({ purpose, name }));
}
