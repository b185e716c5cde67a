/**
 * Defines the events of managed email providers in the form that the parsers of all providers return. The parsers are
 * pure. The parsers never throw for any body.
 */
import type { FailureClass } from '../model/failure.ts';

/** One HTTP request of a provider. */
export interface ProviderRequest {
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** The header fields by name in lower case. The values of a repeated field are joined with `, `. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** The public URL of the endpoint: POSTRIDER_FEEDBACK_URL and the path. Null if POSTRIDER_FEEDBACK_URL is not set. */
  readonly url: string | null;
}

/** The diagnosis that an event contains. The texts are untrusted and not shortened. */
export interface Diagnosis {
  /** The enhanced status code, for example `5.1.1` (RFC 3463), or null. It is not validated. */
  readonly status: string | null;
  /** The reply of the receiving server, or the provider's description, or null. */
  readonly diagnostic: string | null;
  /** The name or the address of the receiving server, or null. */
  readonly host: string | null;
}

/**
 * The reason for the entry of an address on the provider's suppression list. `unknown`: the provider does not report
 * the reason.
 */
export type ProviderListReason = 'bounce' | 'complaint' | 'unsubscribe' | 'manual' | 'unknown';

export type ProviderFact =
  /**
   * The provider makes no further attempt to deliver the message. `by-text`: the provider reports no class, and the
   * diagnosis determines the class. If the diagnosis has no known cause, the class is `soft`.
   */
  | { readonly kind: 'bounce'; readonly failureClass: FailureClass | 'by-text'; readonly diagnosis: Diagnosis }
  /** The recipient reported the message as spam. */
  | { readonly kind: 'complaint'; readonly diagnosis: Diagnosis }
  /** The provider did not send the message, because the recipient is on the provider's suppression list. */
  | { readonly kind: 'provider-suppressed'; readonly reason: ProviderListReason; readonly diagnosis: Diagnosis }
  | { readonly kind: 'unsubscribed'; readonly diagnosis: Diagnosis }
  /** The address was removed from the provider's suppression list. */
  | { readonly kind: 'reactivated'; readonly diagnosis: Diagnosis }
  /** The provider still tries to deliver the message. */
  | { readonly kind: 'deferred'; readonly diagnosis: Diagnosis }
  /** The recipient's mail server accepted the message. */
  | { readonly kind: 'delivered'; readonly diagnosis: Diagnosis };

/** The meaning of a documented type of event. `ignored`: Postrider ignores the event. */
export type EventMeaning = FailureClass | 'by-text' | Exclude<ProviderFact['kind'], 'bounce'> | 'ignored';

/**
 * Returns the fact of an event with this meaning, or null for `ignored`. `listReason` applies only to
 * `provider-suppressed`.
 */
export function createFact(
  meaning: EventMeaning,
  diagnosis: Diagnosis,
  listReason: ProviderListReason = 'unknown',
): ProviderFact | null {
  switch (meaning) {
    case 'hard':
    case 'soft':
    case 'block':
    case 'by-text':
      return { kind: 'bounce', failureClass: meaning, diagnosis };
    case 'provider-suppressed':
      return { kind: meaning, reason: listReason, diagnosis };
    case 'complaint':
    case 'unsubscribed':
    case 'reactivated':
    case 'deferred':
    case 'delivered':
      return { kind: meaning, diagnosis };
    case 'ignored':
      return null;
  }
}

/** The recipient of an event whose recipient cannot be read. No message has this recipient. */
export const UNREADABLE_RECIPIENT = '?';

export interface ProviderEvent {
  /** The type as the provider writes it, for example `Bounce/HardBounce`. It is untrusted text. */
  readonly type: string;
  /**
   * Identifies the event. Two copies of one event have the same key, even in different batches or at different
   * positions of a batch. The key is the provider's id of the event, or a digest of the event (`computeDigest`).
   */
  readonly key: string;
  /** The id of the message from the message's metadata or from its Message-ID. Null if the event contains neither. */
  readonly messageId: string | null;
  /** The provider's id of the message, or null. Postrider uses it only if `messageId` is null. */
  readonly reference: string | null;
  /**
   * The recipient as the provider writes it, or null if the event names no recipient. `UNREADABLE_RECIPIENT` if the
   * value of the recipient is not a single text.
   */
  readonly recipient: string | null;
  /** The time of the event in milliseconds since the epoch, or null. */
  readonly at: number | null;
  readonly fact: ProviderFact;
}

export type ReadResult =
  /**
   * `ignored` is the number of events that concern no message of Postrider, and of events of a type that Postrider
   * ignores (opens, clicks, tests). `broken` is the number of members that are not events.
   */
  | {
      readonly kind: 'events';
      readonly events: readonly ProviderEvent[];
      readonly ignored: number;
      readonly broken: number;
      /**
       * The keys of an authenticated request without events. Postrider records the keys, so that a later request with
       * the same signature and a different body has no effect. Absent if there are none.
       */
      readonly recordedKeys?: readonly string[];
    }
  /** The body is not in the provider's format. `reason` is one line, for example `the body is not a JSON object`. */
  | { readonly kind: 'broken'; readonly reason: string };

export type AuthenticationResult =
  | { readonly kind: 'authenticated' }
  /** The response has status 401. `reason` is one line without secrets, for example `the signature is invalid`. */
  | { readonly kind: 'refused'; readonly reason: string };

/** The result of a request without events. */
export const NO_EVENTS: Extract<ReadResult, { kind: 'events' }> = { kind: 'events', events: [], ignored: 0, broken: 0 };
