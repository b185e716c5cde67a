/** Defines a provider: the profile of its relay, and the format and authentication of its events. */

import type { FailureRule } from '../model/failure-rule.ts';
import type { Authenticate, ParsedSecret } from './authentication.ts';
import type { ProviderRequest, ReadResult } from './event-reader.ts';

export type ProviderName =
  | 'postmark'
  | 'sendgrid'
  | 'mailgun'
  | 'resend'
  | 'brevo'
  | 'mailjet'
  | 'sparkpost'
  | 'mandrill'
  | 'mailersend'
  | 'mailtrap'
  | 'ses'
  | 'postal';

/** A provider whose events have an endpoint `/events/PROVIDER`. The events of Amazon SES have the endpoint `/ses`. */
export type EventProviderName = Exclude<ProviderName, 'ses'>;

/** A header field of a message, in ASCII. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

/** A parameter of the transport URL that only some relays accept. */
export type RelayParameter = 'stream' | 'configuration-set';

/** The values of the parameters of a relay. */
export type RelayParameters = Readonly<Partial<Record<RelayParameter, string>>>;

/** The properties of a provider's SMTP relay. */
export interface RelayProfile {
  /**
   * Patterns of the host names of the relay, in lower case. `*` matches one or more characters of one label. If the
   * list is empty, only `?provider=` selects the relay.
   */
  readonly hosts: readonly string[];
  /** The parameters in `RelayParameter` that this relay accepts. */
  readonly parameters: readonly RelayParameter[];
  /**
   * Returns the header fields that identify the message in the provider's events. Postrider adds the fields before it
   * signs the message, and only to messages that it sends through this relay.
   */
  readonly metadata: (messageId: string, parameters: RelayParameters) => readonly HeaderField[];
  /** The header fields, in lower case, that the provider replaces or removes. Postrider does not sign these fields. */
  readonly rewrittenFields: readonly string[];
  /** True if the relay refuses a message with more than one DKIM-Signature field. One RSA key then signs. */
  readonly acceptsOneSignature?: true;
  /**
   * True if the provider keeps the envelope sender, so that bounces return to Postrider. Null if this is not
   * documented.
   */
  readonly keepsEnvelopeSender: boolean | null;
  /** The maximum size of a message in bytes, or null if it is not documented. */
  readonly maxMessageBytes: number | null;
  /** The suggested SPF record of a sending domain, or null if the provider needs no SPF record at that domain. */
  readonly spf: string | null;
  /**
   * The documented maximum number of connections: the default of `?connections=`. Null if no number is documented, or
   * if it exceeds the default for all relays. That default then applies.
   */
  readonly connections: number | null;
  /**
   * The documented maximum number of messages per connection. Null if no number is documented, or if it exceeds the
   * limit for all relays. That limit then applies.
   */
  readonly messagesPerConnection: number | null;
  /**
   * The documented replies of the relay. These rules are applied before the rules for all servers. Empty if no reply is
   * documented.
   */
  readonly replies: readonly FailureRule[];
  /**
   * A function that finds the provider's id of the message in `text`, the reply to the message, and returns null if
   * `text` contains no id. Null instead of a function if the replies of the relay contain no id.
   */
  readonly findReference: ((text: string) => string | null) | null;
}

/** The profile of a relay about which the provider documents nothing. */
export const RELAY_DEFAULTS: Omit<RelayProfile, 'hosts' | 'metadata'> = {
  parameters: [],
  rewrittenFields: [],
  keepsEnvelopeSender: null,
  maxMessageBytes: null,
  spf: null,
  connections: null,
  messagesPerConnection: null,
  replies: [],
  findReference: null,
};

/** The format and the authentication of a provider's events. */
export interface EventFormat {
  /** A description of the form of one secret in POSTRIDER_EVENTS_<PROVIDER>, for example `USER:PASSWORD`. */
  readonly secretForm: string;
  /** An example of a valid secret. */
  readonly secretExample: string;
  /**
   * Returns the function that authenticates requests by the secrets in POSTRIDER_EVENTS_<PROVIDER>. `texts` contains at
   * least one secret in the form `secretForm`.
   */
  readonly createAuthenticator: (texts: readonly string[]) => ParsedSecret<Authenticate>;
  /** True if a request can be authenticated by its header fields, before its body is received. */
  readonly authenticatesByHeader?: true;
  /**
   * Returns true for the request with which the provider tests the URL before the secret of the webhook exists. The
   * response is 200, whether or not a secret is set, and nothing is recorded. Absent if the provider sends no such
   * request.
   */
  readonly isEndpointTest?: (request: ProviderRequest) => boolean;
  /**
   * True if the body is parsed before it is authenticated, because it contains the signature or the signature covers
   * its parsed members. A large body is then parsed and authenticated on a separate thread. Absent if the body is
   * authenticated before it is parsed.
   */
  readonly parsesBodyToAuthenticate?: true;
  /**
   * True if the signature covers only the key of an event and not the rest of the event. Absent if the signature covers
   * the whole event or if the request contains no signature.
   */
  readonly signsKeyOnly?: true;
  /** Reads the events of an authenticated request. */
  readonly read: (request: ProviderRequest) => ReadResult;
  /**
   * The HTTP status after which the provider sends the events again: of the response if the store fails or the body is
   * not received in time. The default is 503.
   */
  readonly storeFailureStatus?: 429;
}

export interface Provider {
  readonly name: ProviderName;
  /** The display name, for example `Postmark`. */
  readonly title: string;
  /** Null if the provider has no SMTP relay of its own. */
  readonly relay: RelayProfile | null;
  /** Null if the endpoint of the events is not `/events/PROVIDER` (Amazon SES: `/ses`). */
  readonly events: EventFormat | null;
}
