/**
 * Defines the events of managed email providers, in the form in which every provider's parser returns them. The parsers
 * are pure. They never throw, whatever the body of a request contains.
 */
import type { FailureClass } from '../model/failure.ts';

/** One HTTP request of a provider. */
export interface ProviderRequest {
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** Header fields. The names are in lower case. Repeated fields are joined with `, `. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** The public URL of the endpoint: POSTRIDER_FEEDBACK_URL and the path. Null if POSTRIDER_FEEDBACK_URL is not set. */
  readonly url: string | null;
}

/** The diagnosis in the event. The texts are untrusted and have not been shortened. */
export interface Diagnosis {
  /** Enhanced status code such as `5.1.1` (RFC 3463), or null. */
  readonly status: string | null;
  /** The reply of the receiving server, or the provider's description, or null. */
  readonly diagnostic: string | null;
  /** The receiving server, or null. */
  readonly host: string | null;
}

/** The reason for which an address is on the provider's suppression list, as far as the provider reports it. */
export type ProviderListReason = 'bounce' | 'complaint' | 'unsubscribe' | 'manual' | 'unknown';

export type ProviderFact =
  /**
   * The provider has given up. `by-text`: the provider reports no class, and the diagnosis determines the class. If the
   * diagnosis has no known cause, the class is `soft`.
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

/** The meaning of a documented type of event. `ignored`: the event has no meaning for Postrider. */
export type EventMeaning = FailureClass | 'by-text' | Exclude<ProviderFact['kind'], 'bounce'> | 'ignored';

/** Returns the fact of an event with this meaning, or null for `ignored`. `listReason` is used for `provider-suppressed`. */
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

export interface ProviderEvent {
  /** The type as the provider writes it, for example `Bounce/HardBounce`. It is untrusted text. */
  readonly type: string;
  /**
   * Identifies the event. Two copies of one event have the same key, in another batch and in another order too. It is the
   * provider's id of the event, or a digest of the event (`digestOf`).
   */
  readonly key: string;
  /** The id of the message: from its metadata, or from the Message-ID of Postrider. Null if the event contains neither. */
  readonly messageId: string | null;
  /** The provider's id of the message, or null. It is used if `messageId` is null. */
  readonly reference: string | null;
  /** The recipient as written. Null if the event names no recipient. */
  readonly recipient: string | null;
  /** The time of the event in milliseconds since the epoch, or null. */
  readonly at: number | null;
  readonly fact: ProviderFact;
}

export type ReadResult =
  /**
   * `ignored` is the number of events that concern no message of Postrider or have a type without a meaning for
   * Postrider (opens, clicks, tests). `broken` is the number of members that are not events.
   */
  | {
      readonly kind: 'events';
      readonly events: readonly ProviderEvent[];
      readonly ignored: number;
      readonly broken: number;
      /**
       * Keys of an authenticated request that contains no event. They are recorded, so that a replay of the authentication
       * with another body has no effect. If absent, there are none.
       */
      readonly recordedKeys?: readonly string[];
    }
  /** The body is not in the provider's format. `reason` is one line, for example `the body is not JSON`. */
  | { readonly kind: 'broken'; readonly reason: string };

export type AuthenticationResult =
  | { readonly kind: 'authenticated' }
  /** The response is 401. `reason` is one line without secrets, for example `the signature is invalid`. */
  | { readonly kind: 'refused'; readonly reason: string };

/** A request that reports the result of a test of the endpoint has an empty list of events. */
export const NO_EVENTS: Extract<ReadResult, { kind: 'events' }> = { kind: 'events', events: [], ignored: 0, broken: 0 };
