/** The effective settings of one process, which are frozen. */
import type { HostPort, HttpListen } from '../model/listen-address.ts';
import type { NotificationTarget } from '../model/notification.ts';
import type { EventProviderName, ProviderName, RelayParameters } from '../providers/provider.ts';

export interface PostgresSetting {
  readonly kind: 'postgres';
  /** The first host that accepts writes is used. A host with a slash is the folder of a socket. */
  readonly hosts: readonly HostPort[];
  readonly user: string;
  readonly password: string | null;
  readonly database: string;
  /**
   * From `sslmode`. `preferred`: if the server supports TLS. `verified-chain` also checks that a trusted authority
   * signed the certificate, and `verified` the host name.
   */
  readonly tls: 'never' | 'preferred' | 'required' | 'verified-chain' | 'verified';
  /** PEM files. */
  readonly tlsFiles: { readonly rootCert: string | null; readonly cert: string | null; readonly key: string | null };
  /** Null: the search path of the database role. */
  readonly schema: string | null;
  readonly options: string | null;
  /** `transaction`: the pooler assigns a server connection to each transaction. */
  readonly pooler: 'transaction' | null;
  /** `prepared=yes`: the pooler tracks the prepared statements of each client. */
  readonly tracksStatements: boolean;
  /** POSTRIDER_DATABASE_DIRECT: without the pooler. */
  readonly direct: PostgresSetting | null;
}

export type DatabaseSetting = { readonly kind: 'sqlite'; readonly path: string } | PostgresSetting;

export type TransportSetting =
  | { readonly kind: 'capture' }
  | {
      readonly kind: 'ses';
      readonly region: string;
      /** Null: the endpoint of the region. */
      readonly endpoint: string | null;
      readonly configurationSet: string | null;
      readonly limits?: RouteLimits;
    }
  | {
      readonly kind: 'smtp';
      readonly host: string;
      readonly port: number;
      /** `implicit`: `smtps:`. `required`: nothing is sent without STARTTLS. `offered`: if the server offers it. */
      readonly tls: 'implicit' | 'required' | 'offered' | 'never';
      readonly auth: { readonly user: string; readonly pass: string } | null;
      /** By default that of the relay's provider, or 20. */
      readonly connections: number;
      /** False with `?verify=no`. With `offered` (opportunistic TLS) the certificate is never checked. */
      readonly verifyCertificate: boolean;
      /** EHLO name, by default the host name of the machine. */
      readonly name: string;
      /** From `?provider=` or the host name. */
      readonly provider: ProviderName | null;
      /** Parameters that only relays of this provider accept, such as `?stream=`. */
      readonly relayParameters: RelayParameters;
      readonly limits?: RouteLimits;
    };

/** Null: not limited. */
export interface RouteLimits {
  /** Messages of a day of UTC, on all nodes together. */
  readonly daily: number | null;
  /** The share of the route grows for this time after its first message. */
  readonly rampMs: number | null;
}

export const NO_ROUTE_LIMITS: RouteLimits = { daily: null, rampMs: null };

export function getRouteLimits(transport: TransportSetting): RouteLimits {
  return transport.kind === 'capture' ? NO_ROUTE_LIMITS : (transport.limits ?? NO_ROUTE_LIMITS);
}

export interface RouteSetting {
  /** In lower case. POSTRIDER_TRANSPORT is `default`. */
  readonly name: string;
  readonly transport: TransportSetting;
}

export interface Settings {
  readonly database: DatabaseSetting;
  /** No message is accepted while the server does not require a synchronous standby. */
  readonly requireSyncStandby: boolean;
  /** Of the route `default`. */
  readonly transport: TransportSetting;
  /** `default`, then the others in order of name. */
  readonly routes: readonly RouteSetting[];
  readonly listen: HttpListen;
  readonly operatorListen: HttpListen;
  /** Without a slash at its end. */
  readonly operatorUrl: string | null;
  readonly operatorPassword: string | null;
  /** Only these proxies can report another client address than their own. */
  readonly trustedProxies: readonly string[];
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  readonly senders: 'authenticated' | 'any';
  readonly maxAgeMs: number;
  readonly maxRequestBytes: number;
  readonly keepBodyMs: number;
  /** At least `keepBodyMs`. */
  readonly keepHistoryMs: number;
  readonly keepAuditMs: number;
  readonly onUncertain: 'resend' | 'hold';
  /** 64 hexadecimal digits. Null: the file of `getSecretPath` (domains/setup.ts). */
  readonly secret: string | null;
  /** Null: the resolver of the system. */
  readonly dns: HostPort | null;
  readonly returnPathDomain: string | null;
  /** SMTP, for bounces and complaints. Requires `returnPathDomain`. */
  readonly feedbackListen: HostPort | null;
  /** HTTP, for provider events. */
  readonly feedbackHttpListen: HttpListen | null;
  /** Of `feedbackHttpListen`, without a slash at its end. */
  readonly feedbackUrl: string | null;
  /** Complaints with a DKIM signature of these domains are authenticated. */
  readonly feedbackLoops: readonly string[];
  readonly sesTopics: readonly string[];
  /** Of the settings POSTRIDER_EVENTS_<PROVIDER>. No list is empty. */
  readonly eventSecrets: Readonly<Partial<Record<EventProviderName, readonly string[]>>>;
  readonly sesQueue: string | null;
  /** `public`: webhooks are sent only over HTTPS to public addresses. */
  readonly webhookTargets: 'public' | 'any';
  readonly notifyTargets: readonly NotificationTarget[];
  /** Null only if no target is a mail address. */
  readonly notifyFrom: string | null;
  /** The newest first. Empty only if no target is a URL. */
  readonly notifySecrets: readonly string[];
  readonly roles: ReadonlySet<Role>;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** How recipients appear in log lines. `masked`: the first character and the domain. */
  readonly logRecipients: 'masked' | 'full' | 'none';
  readonly secretFiles: readonly SecretFile[];
  /** Kubernetes or Docker sets these variables for a Service named `postrider`. They are not settings. */
  readonly ignoredVariables: readonly string[];
}

export interface SecretFile {
  /** Without `_FILE`. */
  readonly name: string;
  readonly path: string;
}

export type Role = 'api' | 'deliver' | 'feedback' | 'operator';

/** The message is one line. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}
