/** What a running service knows of itself and no store tells: its next hop, its alarms, whether its store commits. Pure. */

/** The reason of an alarm that is no refusal by the next hop. */
export const SIGNING = 'signing';

/** A refusal that is about this service itself, or a message that could not be signed. */
export interface Alarm {
  /** Such as `configuration`, or `signing`. */
  readonly reason: string;
  /** The next hop's own words, untrusted; for `signing` this service's. */
  readonly text: string;
  readonly lastAt: number;
}

/** An attempt that failed for a reason other than the message. */
export interface Failure {
  /** With the next hop's own words; untrusted. */
  readonly text: string;
  readonly at: number;
}

/** How the deliveries of this process fare. */
export interface DeliveryStatus {
  readonly breaker: { readonly state: 'closed' | 'half-open' | 'open'; readonly retryAt: number | null };
  /** The last of each reason, the newest first. */
  readonly alarms: readonly Alarm[];
  /** The last attempt that failed for a reason which is not a message's own. */
  readonly lastFailure: Failure | null;
}

export interface RuntimeStatus {
  readonly node: string;
  readonly version: string;
  /** Why the store cannot be written, or null. */
  readonly storeFault: string | null;
  /** What to do about it where the store says so itself, or null. */
  readonly storeRemedy?: string | null;
  /** Null where this process does not deliver. */
  readonly delivery: DeliveryStatus | null;
}
