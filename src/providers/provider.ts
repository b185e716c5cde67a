import type { FailureRule } from '../model/failure.ts';
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

/** The endpoint of Amazon SES is `/ses`. */
export type EventProviderName = Exclude<ProviderName, 'ses'>;

export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

export type RelayParameter = 'stream' | 'configuration-set';

export type RelayParameters = Readonly<Partial<Record<RelayParameter, string>>>;

export interface RelayProfile {
  /** In lower case. `*`: one or more characters of a label. Without hosts, only `?provider=` selects the relay. */
  readonly hosts: readonly string[];
  readonly parameters: readonly RelayParameter[];
  /** Identify the message in events. Added before it is signed, only on the way to this relay. */
  readonly metadata: (messageId: string, parameters: RelayParameters) => readonly HeaderField[];
  /** In lower case. The provider replaces or removes them, so they are not signed. */
  readonly rewrittenFields: readonly string[];
  /** It refuses a message with more than one DKIM-Signature field. One RSA key then signs. */
  readonly acceptsOneSignature?: true;
  /** Bounces then return to Postrider. Null if it is not documented. */
  readonly keepsEnvelopeSender: boolean | null;
  /** Null if it is not documented. */
  readonly maxMessageBytes: number | null;
  readonly spf: string | null;
  /** The default of `?connections=`. Null if none is documented, or if it exceeds the default for all relays. */
  readonly connections: number | null;
  /** Null if none is documented, or if it exceeds the limit for all relays. */
  readonly messagesPerConnection: number | null;
  readonly replies: readonly FailureRule[];
  /** Finds the provider's id of the message in the reply to it. Null if the replies contain none. */
  readonly findReference: ((text: string) => string | null) | null;
}

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

export interface EventFormat {
  readonly secretForm: string;
  readonly secretExample: string;
  readonly createAuthenticator: (texts: readonly string[]) => ParsedSecret<Authenticate>;
  readonly authenticatesByHeader?: true;
  /** The test of the URL before the secret of the webhook exists: answered with 200, never recorded. */
  readonly isEndpointTest?: (request: ProviderRequest) => boolean;
  /** The body contains the signature, or parsed members are signed. A large one is authenticated on a thread. */
  readonly parsesBodyToAuthenticate?: true;
  /** The signature covers the key of an event and not the rest of it. */
  readonly signsKeyOnly?: true;
  readonly read: (request: ProviderRequest) => ReadResult;
  /** After which the provider sends the events again: if the store fails or the body is late. The default is 503. */
  readonly storeFailureStatus?: 429;
}

export interface Provider {
  readonly name: ProviderName;
  readonly title: string;
  readonly relay: RelayProfile | null;
  readonly events: EventFormat | null;
}
