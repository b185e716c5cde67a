/**
 * The types of the events that Postrider sends as webhooks. A later version of Postrider may add event types, members
 * and values. A receiver must ignore unknown event types, members and values. A test compares the types of this file
 * with the schemas of the service.
 */

/** The states of a message. */
export type MessageState =
  | 'queued'
  | 'sending'
  | 'delivered'
  | 'bounced'
  | 'complained'
  | 'suppressed'
  | 'expired'
  | 'cancelled'
  | 'uncertain';

/** The members of `data` in every event about a message. */
export interface MessageData {
  /** The id that `send` returned. */
  readonly id: string;
  /** The name of the account. */
  readonly account: string;
  /** The recipient. */
  readonly to: string;
  /** The sender. */
  readonly from: string;
  readonly subject: string;
  /** The state after the event. */
  readonly state: MessageState;
  /** The position of the event in the history of the message, from 0. Events may arrive out of order. */
  readonly sequence: number;
}

/** The reply of the server that received or refused a message. */
export interface ReplyData {
  /** The route of the attempt, such as `default`; null if no attempt caused the event. */
  readonly route: string | null;
  /** The enhanced status code, such as `5.1.1` (RFC 3463). */
  readonly status: string | null;
  /** The reply or the report, in one line. Untrusted: another server wrote it. */
  readonly diagnostic: string | null;
}

/**
 * The class of a failure. `hard`: the mailbox cannot receive messages. `soft`: a later message may be delivered.
 * `block`: the receiving server or the provider refused this message or this sender.
 */
export type FailureClass = 'hard' | 'soft' | 'block';

/** The cause of a failure. */
export type FailureCategory =
  | 'mailbox-unknown'
  | 'mailbox-disabled'
  | 'mailbox-full'
  | 'domain'
  | 'policy'
  | 'reputation'
  | 'content'
  | 'size'
  | 'auth'
  | 'network'
  | 'throttled'
  | 'quota'
  | 'greylisted'
  | 'unknown';

/** A message that was delivered: the next hop accepted it. */
export interface DeliveredMessageData extends MessageData, ReplyData {}

/** A message that was deferred or that expired. */
export interface FailedMessageData extends MessageData, ReplyData {
  readonly class: FailureClass | null;
  readonly category: FailureCategory | null;
}

/** A message that bounced. */
export interface BouncedMessageData extends FailedMessageData {
  /** True if the recipient is on the suppression list of the account because of this event or an earlier event. */
  readonly suppressed: boolean;
}

/** A message that was confirmed or suppressed, with the reason. */
export interface DetailedMessageData extends MessageData {
  /** The reason, in one line. */
  readonly detail: string | null;
}

/** A message that became uncertain. */
export interface UncertainMessageData extends DetailedMessageData {
  /** The route of the attempt, such as `default`; null if its node recorded no outcome. */
  readonly route: string | null;
}

/** A message that its recipient reported as spam. */
export interface ComplainedMessageData extends DetailedMessageData {
  /** True if the recipient is on the suppression list of the account because of this event or an earlier event. */
  readonly suppressed: boolean;
}

/** A sending domain whose status changed. */
export interface DomainData {
  readonly domain: string;
  /** The name of the account. */
  readonly account: string;
  readonly status: 'authenticated' | 'failing';
  /** The DNS records of the last check. */
  readonly records: readonly {
    /** `dkim`, `spf`, `dmarc`, `return-path` or `provider`. */
    readonly purpose: string;
    /** The type of the record, such as `TXT`. */
    readonly type: string;
    readonly name: string;
    readonly found: 'found' | 'missing' | 'wrong' | 'unknown';
    /** The found value, the expected value and the remedy, in one line. */
    readonly detail: string;
  }[];
}

/** An account that came close to a threshold, was locked, or was unlocked. */
export interface AccountData {
  /** The name of the account. */
  readonly account: string;
  /** The reason for the warning or the lock. Null after an unlock. */
  readonly reason: string | null;
  /** The figures of the last 7 days. After an unlock within this time: the figures since the unlock. */
  readonly figures: { readonly messages: number; readonly bounces: number; readonly complaints: number };
  /** The thresholds of the account, as fractions. */
  readonly limit: { readonly bounceRate: number; readonly complaintRate: number };
}

/** An entry of a suppression list. */
export interface SuppressionData {
  /** The name of the account, or `*` for the list of the whole service. */
  readonly account: string;
  /** The canonical address. */
  readonly address: string;
  readonly reason: 'bounce' | 'complaint' | 'manual' | 'unsubscribed' | 'provider';
  /** The id of the message that caused the entry. Null if no message caused it. */
  readonly source: string | null;
}

/** An endpoint that was disabled. */
export interface WebhookDisabledData {
  /** The id of the endpoint. */
  readonly id: string;
  readonly url: string;
  readonly name: string | null;
  /** The name of the account. Null for an endpoint that receives the events of every account. */
  readonly account: string | null;
  readonly reason: 'operator' | 'gone' | 'failing';
}

/** The data of the event that `postrider webhook test` sends. */
export interface TestData {
  /** The id of the endpoint. */
  readonly id: string;
}

/** The type of `data` for each event type. */
export interface WebhookDataByType {
  readonly 'message.accepted': MessageData;
  readonly 'message.delivered': DeliveredMessageData;
  /** The provider reported that it delivered the message. */
  readonly 'message.confirmed': DetailedMessageData;
  readonly 'message.deferred': FailedMessageData;
  readonly 'message.bounced': BouncedMessageData;
  readonly 'message.complained': ComplainedMessageData;
  readonly 'message.suppressed': DetailedMessageData;
  readonly 'message.expired': FailedMessageData;
  readonly 'message.cancelled': MessageData;
  readonly 'message.uncertain': UncertainMessageData;
  readonly 'domain.authenticated': DomainData;
  readonly 'domain.failing': DomainData;
  readonly 'account.warned': AccountData;
  readonly 'account.locked': AccountData;
  readonly 'account.unlocked': AccountData;
  readonly 'suppression.added': SuppressionData;
  readonly 'suppression.removed': SuppressionData;
  readonly 'webhook.disabled': WebhookDisabledData;
  readonly 'webhook.test': TestData;
}

/** The event types. */
export type WebhookEventType = keyof WebhookDataByType;

/** A verified event of one event type. */
export interface WebhookEventOf<Type extends WebhookEventType> {
  /**
   * The header `webhook-id`. Every attempt to deliver this event has the same id, so that a receiver can ignore
   * repetitions.
   */
  readonly id: string;
  readonly type: Type;
  /** The time of the event, ISO 8601 in UTC. */
  readonly timestamp: string;
  readonly data: WebhookDataByType[Type];
}

/** A verified event. `type` selects the type of `data`. */
export type WebhookEvent = { [Type in WebhookEventType]: WebhookEventOf<Type> }[WebhookEventType];
