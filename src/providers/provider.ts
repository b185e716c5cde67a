/** Defines a provider: the profile of its relay, and the format and authentication of its events. */
import type { Authenticate, ParsedSecret } from './authentication.ts';
import type { EventMeaning, ProviderRequest, ReadResult } from './event.ts';

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

/** A provider with an endpoint for events of its own. The events of Amazon SES have the endpoint `/ses`. */
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
  /** Host names of the relay, in lower case. `*` stands for one label or a part of it. Empty: only `?provider=` selects it. */
  readonly hosts: readonly string[];
  /** Parameters of the transport URL that this relay accepts, with their meaning. */
  readonly parameters: readonly RelayParameter[];
  /**
   * Returns the header fields that identify the message in the provider's events. They are added before the message is
   * signed, and only for this provider.
   */
  readonly metadata: (messageId: string, parameters: RelayParameters) => readonly HeaderField[];
  /** Header fields, in lower case, that the provider replaces or removes. They must not be signed. */
  readonly rewrittenFields: readonly string[];
  /** True if bounces return to the envelope sender of Postrider. Null: not documented. */
  readonly keepsEnvelopeSender: boolean | null;
  /** The maximum size of a message in bytes, or null if it is not documented. */
  readonly maxMessageBytes: number | null;
  /** The suggested SPF record of a sending domain, or null if the provider needs none there. */
  readonly spf: string | null;
  /** The default of `?connections=`, or null for the default of every relay. */
  readonly connections: number | null;
  /** Returns the provider's id of the message in the text of the reply to the message, or null. */
  readonly referenceOfReply: ((text: string) => string | null) | null;
  /** The pages of the provider's documentation that this profile follows. */
  readonly sources: readonly string[];
}

/** The format and the authentication of a provider's events. */
export interface EventFormat {
  /** The value of POSTRIDER_EVENTS_<PROVIDER> in words, for example `USER:PASSWORD`. */
  readonly secretForm: string;
  /** A value that `createAuthenticate` accepts. */
  readonly secretExample: string;
  /**
   * Returns the function that authenticates requests by the secrets in POSTRIDER_EVENTS_<PROVIDER>. `texts` are the
   * secrets as written, at least one.
   */
  readonly createAuthenticate: (texts: readonly string[]) => ParsedSecret<Authenticate>;
  /** True if a request can be authenticated by its header fields, before its body is received. */
  readonly authenticatesByHeader: boolean;
  /**
   * Returns true for the request by which the provider tests the URL before its secret exists. The response is 200, with and
   * without a secret in the settings, and nothing is recorded. If absent, the provider sends no such request.
   */
  readonly isEndpointTest?: (request: ProviderRequest) => boolean;
  /** True if the signature covers the key of an event and not the event. If absent, the whole event is authenticated. */
  readonly signsKeyOnly?: true;
  /** Reads the events of an authenticated request. */
  readonly read: (request: ProviderRequest) => ReadResult;
  /** The status of the response if the store fails, so that the provider sends the events again. */
  readonly storeFailureStatus: 429 | 503;
  /** The documented types of events and their meaning. A test reads a sample file for each row. */
  readonly table: readonly EventTableRow[];
  readonly sources: readonly string[];
}

/** One documented type of event. */
export interface EventTableRow {
  /** The type as the provider writes it, with the member that distinguishes it, for example `Bounce, Type HardBounce`. */
  readonly type: string;
  readonly meaning: EventMeaning;
  /** The name of the sample file in the folder `samples` of the provider. */
  readonly sample: string;
}

export interface Provider {
  readonly name: ProviderName;
  /** The name for people, for example `Postmark`. */
  readonly title: string;
  /** Null if the provider has no SMTP relay of its own. */
  readonly relay: RelayProfile | null;
  /** Null if the events have another endpoint (Amazon SES: `/ses`). */
  readonly events: EventFormat | null;
}
