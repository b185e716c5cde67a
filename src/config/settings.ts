/**
 * Defines the effective settings of one process, which are frozen. `config/load.ts` reads the settings from the environment and
 * `.env`.
 */
import type { HostPort, HttpListen } from '../model/listen-address.ts';
import type { NotificationTarget } from '../model/notification.ts';
import type { EventProviderName, ProviderName, RelayParameters } from '../providers/provider.ts';

/** A PostgreSQL database. */
export interface PostgresSetting {
  readonly kind: 'postgres';
  /**
   * The hosts in order of preference. The first host that accepts writes is used. A host that begins with a slash is a
   * folder that contains a Unix socket.
   */
  readonly hosts: readonly HostPort[];
  readonly user: string;
  readonly password: string | null;
  readonly database: string;
  /**
   * The TLS mode, from `sslmode`. `preferred` uses TLS if the server supports TLS. `verified-chain` also checks that a
   * trusted authority signed the certificate. `verified` also checks the host name.
   */
  readonly tls: 'never' | 'preferred' | 'required' | 'verified-chain' | 'verified';
  /** Paths of PEM files: the certificates of trusted authorities, and the client certificate with its key. */
  readonly tlsFiles: { readonly rootCert: string | null; readonly cert: string | null; readonly key: string | null };
  /** The schema of the tables; null for the search path of the database role. */
  readonly schema: string | null;
  /** The value of the libpq parameter `options`, or null. */
  readonly options: string | null;
  /**
   * The mode of the pooler, or null without a pooler. `transaction`: the pooler assigns a server connection to each
   * transaction.
   */
  readonly pooler: 'transaction' | null;
  /** True with `prepared=yes`: the pooler in transaction mode tracks the prepared statements of each client. */
  readonly tracksStatements: boolean;
  /** POSTRIDER_DATABASE_DIRECT: the same database without the pooler, or null. */
  readonly direct: PostgresSetting | null;
}

export type DatabaseSetting = { readonly kind: 'sqlite'; readonly path: string } | PostgresSetting;

export type TransportSetting =
  | { readonly kind: 'capture' }
  | {
      readonly kind: 'ses';
      /** The region, such as `eu-west-1`. */
      readonly region: string;
      /** URL of the API endpoint (`?endpoint=`). If null, the endpoint of the region is used. */
      readonly endpoint: string | null;
      /** The value of `?configuration-set=`, or null. */
      readonly configurationSet: string | null;
    }
  | {
      readonly kind: 'smtp';
      readonly host: string;
      readonly port: number;
      /**
       * `implicit`: the scheme is `smtps:`. `required`: no credentials and no message are sent without STARTTLS.
       * `offered`: STARTTLS is used if the server offers STARTTLS. `never`: TLS is not used (`?tls=never`).
       */
      readonly tls: 'implicit' | 'required' | 'offered' | 'never';
      readonly auth: { readonly user: string; readonly pass: string } | null;
      /** The value of `?connections=`. The default is the default of the relay's provider, or 20. */
      readonly connections: number;
      /**
       * `?verify=no` disables the certificate check of `required` and `implicit`. With `offered` (opportunistic TLS) the
       * certificate is never checked.
       */
      readonly verifyCertificate: boolean;
      /** EHLO name (`?name=`). The default is the host name of the machine. */
      readonly name: string;
      /** The provider of the relay, from `?provider=` or from the host name. Null if the relay has no known provider. */
      readonly provider: ProviderName | null;
      /** The values of the parameters that only relays of this provider accept, such as `?stream=`. */
      readonly relayParameters: RelayParameters;
    };

export interface Settings {
  readonly database: DatabaseSetting;
  /** If true, no message is accepted while the server does not require a synchronous standby. */
  readonly requireSyncStandby: boolean;
  readonly transport: TransportSetting;
  readonly listen: HttpListen;
  readonly operatorListen: HttpListen;
  /** Public URL of the operator listener without a slash at its end, or null. */
  readonly operatorUrl: string | null;
  readonly operatorPassword: string | null;
  /**
   * Addresses and CIDR networks of trusted reverse proxies. Only these proxies can report a client address other
   * than their own.
   */
  readonly trustedProxies: readonly string[];
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  readonly senders: 'authenticated' | 'any';
  readonly maxAgeMs: number;
  readonly maxRequestBytes: number;
  readonly keepBodyMs: number;
  readonly onUncertain: 'resend' | 'hold';
  /** The secret as 64 hexadecimal digits. Null if the secret is in the file that `getSecretPath` (domains/setup.ts) returns. */
  readonly secret: string | null;
  /** Address of the resolver. If null, the resolver of the system is used. */
  readonly dns: HostPort | null;
  /** The domain of return paths in lower-case A-labels, or null. */
  readonly returnPathDomain: string | null;
  /** Address of the SMTP listener for bounces and complaints, or null. The listener requires `returnPathDomain`. */
  readonly feedbackListen: HostPort | null;
  /**
   * Address of the HTTP listener for provider events, or null. The listener requires `sesTopics`, `eventSecrets`, or a
   * relay whose provider tests the URL before the secret exists.
   */
  readonly feedbackHttpListen: HttpListen | null;
  /** Public URL of `feedbackHttpListen` without a slash at its end, or null. */
  readonly feedbackUrl: string | null;
  /** The domains whose DKIM-signed complaints are authenticated, in lower-case A-labels. The list may be empty. */
  readonly feedbackLoops: readonly string[];
  /** ARNs of the accepted SNS topics. The list may be empty. */
  readonly sesTopics: readonly string[];
  /** The secrets of each setting POSTRIDER_EVENTS_<PROVIDER> that has a value. No list is empty. */
  readonly eventSecrets: Readonly<Partial<Record<EventProviderName, readonly string[]>>>;
  /** URL of the SQS queue with the provider events, or null. */
  readonly sesQueue: string | null;
  /** `public`: webhooks are sent only over HTTPS to public addresses. `any`: also over HTTP and to every address. */
  readonly webhookTargets: 'public' | 'any';
  /** The targets of notifications to operators. The list may be empty. */
  readonly notifyTargets: readonly NotificationTarget[];
  /** The sender of notifications by mail. Null only if no target is a mail address. */
  readonly notifyFrom: string | null;
  /** The secrets that sign notifications, the newest first. Empty only if no target is a URL. */
  readonly notifySecrets: readonly string[];
  readonly roles: ReadonlySet<Role>;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** The settings whose values were read from files. */
  readonly secretFiles: readonly SecretFile[];
  /** The names of variables that Kubernetes or Docker sets for a Service named `postrider`. These variables are not settings. */
  readonly ignoredVariables: readonly string[];
}

/** A setting whose value is the content of a file. */
export interface SecretFile {
  /** The name of the setting, without `_FILE`. */
  readonly name: string;
  readonly path: string;
}

export type Role = 'api' | 'deliver' | 'feedback' | 'operator';

/** An invalid setting, or an invalid line of `.env`. The message is one line that states the problem. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}
