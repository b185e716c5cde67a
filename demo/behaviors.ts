/**
 * Defines the behaviors of simulated recipients as data: the failure of each attempt, and the report after the
 * delivery. The replies have the wording of real servers (test/corpus/replies), and `classify` classifies them like any
 * other reply.
 */
import type { Stage } from '../src/model/outcome.ts';

export type Behavior =
  | 'accepting'
  | 'slow'
  | 'greylisted'
  | 'server-busy'
  | 'mailbox-full'
  | 'mailbox-full-for-hours'
  | 'unreachable'
  | 'broken-tls'
  | 'cut-off'
  | 'mailbox-unknown'
  | 'mailbox-disabled'
  | 'policy'
  | 'spam'
  | 'too-large'
  | 'bounces-later'
  | 'mailbox-full-later'
  | 'complains'
  | 'out-of-office'
  | 'not-understood-report';

/** The failure of one attempt. */
export type AttemptFailure =
  | {
      readonly kind: 'reply';
      readonly stage: Extract<Stage, 'greeting' | 'mail' | 'rcpt' | 'content'>;
      readonly lines: readonly string[];
    }
  /**
   * A failure without a reply: the connection fails, TLS fails, or the connection ends before the reply to the complete
   * message.
   */
  | {
      readonly kind: 'lost';
      readonly stage: Extract<Stage, 'connect' | 'starttls' | 'content'>;
      readonly text: string;
    };

export interface BehaviorScript {
  /**
   * The failures of the first attempts, in order. If `repeatsLast` is true, every later attempt fails with the last
   * failure; otherwise the next attempt succeeds.
   */
  readonly failures: readonly AttemptFailure[];
  readonly repeatsLast: boolean;
  /** The minimum and the maximum duration of an attempt in ms. */
  readonly tookMs: readonly [number, number];
  /** The report about a delivered message, and its delay in minutes. */
  readonly report: {
    readonly kind: 'bounce' | 'mailbox-full' | 'complaint' | 'out-of-office' | 'not-understood';
    readonly afterMinutes: readonly [number, number];
  } | null;
}

const DEFAULT_DURATION_MS = [90, 900] as const;

function createScript(changes: Partial<BehaviorScript> = {}): BehaviorScript {
  return { failures: [], repeatsLast: false, tookMs: DEFAULT_DURATION_MS, report: null, ...changes };
}

/** Creates a reply. In the lines, `{to}` is the recipient and `{host}` is the name of the server with its port. */
const createReplyFailure = (
  stage: 'greeting' | 'mail' | 'rcpt' | 'content',
  ...lines: readonly string[]
): AttemptFailure => ({
  kind: 'reply',
  stage,
  lines,
});
const createConnectionLoss = (stage: 'connect' | 'starttls' | 'content', text: string): AttemptFailure => ({
  kind: 'lost',
  stage,
  text,
});

const MAILBOX_FULL = createReplyFailure(
  'rcpt',
  '452 4.2.2 <{to}>: The mailbox is full and takes no further mail; please try again later',
);
const GREYLISTED = createReplyFailure(
  'rcpt',
  '450 4.2.0 <{to}>: Recipient address rejected: Greylisted, please come again in 60 seconds',
);
const SERVER_BUSY = createReplyFailure(
  'rcpt',
  '451 4.7.500 Server busy. Please try again later from [198.51.100.7]. (S77714)',
);
const TLS_FAILED = createConnectionLoss('starttls', 'the TLS handshake with {host} failed: certificate has expired');

export const BEHAVIORS: Readonly<Record<Behavior, BehaviorScript>> = {
  accepting: createScript(),
  slow: createScript({ tookMs: [15_000, 50_000] }),
  greylisted: createScript({ failures: [GREYLISTED], tookMs: [200, 1_500] }),
  'server-busy': createScript({ failures: [SERVER_BUSY, SERVER_BUSY] }),
  'mailbox-full': createScript({ failures: [MAILBOX_FULL], repeatsLast: true }),
  'mailbox-full-for-hours': createScript({ failures: [MAILBOX_FULL, MAILBOX_FULL, MAILBOX_FULL, MAILBOX_FULL] }),
  unreachable: createScript({
    failures: [createConnectionLoss('connect', '{host} did not answer in time; waited for the connection')],
    repeatsLast: true,
    tookMs: [30_000, 30_040],
  }),
  'broken-tls': createScript({ failures: [TLS_FAILED, TLS_FAILED, TLS_FAILED] }),
  'cut-off': createScript({
    failures: [createConnectionLoss('content', '{host} closed the connection')],
    tookMs: [2_000, 9_000],
  }),
  'mailbox-unknown': createScript({
    failures: [
      createReplyFailure(
        'rcpt',
        '550-5.1.1 The email account that you tried to reach does not exist. Please try',
        "550-5.1.1 double-checking the recipient's email address for typos or",
        '550 5.1.1 unnecessary spaces.',
      ),
    ],
  }),
  'mailbox-disabled': createScript({
    failures: [createReplyFailure('rcpt', '550 5.2.1 The email account that you tried to reach is disabled.')],
  }),
  policy: createScript({
    failures: [
      createReplyFailure(
        'content',
        '554 5.7.1 [HM08] Message rejected due to local policy. Please visit the support page.',
      ),
    ],
  }),
  spam: createScript({
    failures: [
      createReplyFailure(
        'content',
        '550-5.7.1 [198.51.100.7] Our system has detected that this message is',
        '550-5.7.1 likely unsolicited mail. To reduce the amount of spam sent,',
        '550 5.7.1 this message has been blocked.',
      ),
    ],
  }),
  'too-large': createScript({
    failures: [createReplyFailure('mail', '552 5.3.4 Message size exceeds fixed maximum message size')],
  }),
  'bounces-later': createScript({ report: { kind: 'bounce', afterMinutes: [1, 30] } }),
  'mailbox-full-later': createScript({ report: { kind: 'mailbox-full', afterMinutes: [2, 40] } }),
  complains: createScript({ report: { kind: 'complaint', afterMinutes: [20, 300] } }),
  'out-of-office': createScript({ report: { kind: 'out-of-office', afterMinutes: [0, 1] } }),
  'not-understood-report': createScript({ report: { kind: 'not-understood', afterMinutes: [5, 90] } }),
};

/** Returns the failure of an attempt, or null if the attempt succeeds. The first attempt has the number 1. */
export function findAttemptFailure(
  { failures, repeatsLast }: BehaviorScript,
  attemptNumber: number,
): AttemptFailure | null {
  return failures[attemptNumber - 1] ?? (repeatsLast ? (failures.at(-1) ?? null) : null);
}
