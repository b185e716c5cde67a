/**
 * The states of a mail request and the one table of transitions between them. Every change of state,
 * whoever causes it, is looked up here; docs/states.md is held equal to this file by a test.
 */

export const STATES = [
  'queued',
  'sending',
  'delivered',
  'bounced',
  'complained',
  'suppressed',
  'expired',
  'cancelled',
  'uncertain',
] as const;

export type State = (typeof STATES)[number];

/** One true sentence per state, as docs/states.md prints it, and the operator’s views where nothing closer is known. */
export const STATE_MEANING: Readonly<Record<State, string>> = {
  queued: 'accepted and due at a known time',
  sending: 'leased by one node until a known time; a dead node’s lease runs out and another takes over',
  delivered: 'the next hop (provider, relay or mail server) took responsibility for it',
  bounced: 'permanently refused, at once or by a later bounce message',
  complained: 'delivered, and the recipient reported it as spam',
  suppressed: 'never handed over: the recipient is on the suppression list',
  expired: 'still temporarily refused at its maximum age',
  cancelled: 'withdrawn by an operator while queued',
  uncertain: 'handed over, and the connection or the node was lost before the answer; the operator has chosen hold',
};

/** Who may cause a transition: the accepting request, the queue, an operator, or a later notice. */
export type Cause = 'accept' | 'queue' | 'operator' | 'feedback';

/** The only transitions there are. `from: null` is a mail request that does not exist yet. */
export const TRANSITIONS: readonly { readonly from: State | null; readonly to: State; readonly by: Cause }[] = [
  { from: null, to: 'queued', by: 'accept' },
  { from: null, to: 'sending', by: 'accept' },
  { from: null, to: 'suppressed', by: 'accept' },
  { from: 'queued', to: 'sending', by: 'queue' },
  { from: 'queued', to: 'suppressed', by: 'queue' },
  { from: 'queued', to: 'expired', by: 'queue' },
  { from: 'queued', to: 'cancelled', by: 'operator' },
  { from: 'sending', to: 'delivered', by: 'queue' },
  { from: 'sending', to: 'bounced', by: 'queue' },
  { from: 'sending', to: 'queued', by: 'queue' },
  { from: 'sending', to: 'expired', by: 'queue' },
  { from: 'sending', to: 'uncertain', by: 'queue' },
  { from: 'uncertain', to: 'queued', by: 'operator' },
  { from: 'uncertain', to: 'cancelled', by: 'operator' },
  { from: 'uncertain', to: 'bounced', by: 'feedback' },
  { from: 'uncertain', to: 'complained', by: 'feedback' },
  { from: 'delivered', to: 'bounced', by: 'feedback' },
  { from: 'delivered', to: 'complained', by: 'feedback' },
];

const ALLOWED: ReadonlySet<string> = new Set(TRANSITIONS.map((t) => `${t.from}>${t.to}:${t.by}`));

/** True when the table has the transition. */
export function allowed(from: State | null, to: State, by: Cause): boolean {
  return ALLOWED.has(`${from}>${to}:${by}`);
}

/** States from which the queue never takes a mail request again; a body may be erased after one of them. */
export const TERMINAL: ReadonlySet<State> = new Set([
  'delivered',
  'bounced',
  'complained',
  'suppressed',
  'expired',
  'cancelled',
]);
