/** The effective settings of one process, frozen. `config/load.ts` makes it from the environment and `.env`. */

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export type DatabaseSetting =
  | { readonly kind: 'sqlite'; readonly path: string }
  | {
      readonly kind: 'postgres';
      /** In order; the first that takes writes is used. A host that begins with a slash is a folder with a socket. */
      readonly hosts: readonly HostPort[];
      readonly user: string;
      readonly password: string | null;
      readonly database: string;
      /** `sslmode`: `preferred` takes TLS where the server has it; `verified` checks the certificate too. */
      readonly tls: 'never' | 'preferred' | 'required' | 'verified';
      /** `options` as libpq takes them, or null. */
      readonly options: string | null;
    };

export type TransportSetting =
  | { readonly kind: 'capture' }
  | {
      readonly kind: 'ses';
      /** Such as `eu-west-1`. */
      readonly region: string;
      /** Another address of the API, `?endpoint=`; null for the region's own. */
      readonly endpoint: string | null;
      /** `?configuration-set=`, or null. */
      readonly configurationSet: string | null;
    }
  | {
      readonly kind: 'smtp';
      readonly host: string;
      readonly port: number;
      /** `implicit` is smtps; `required` refuses to send without STARTTLS; `offered` takes it when offered; `never` is `?tls=never`. */
      readonly tls: 'implicit' | 'required' | 'offered' | 'never';
      readonly auth: { readonly user: string; readonly pass: string } | null;
      /** `?connections=`, 20 unless set. */
      readonly connections: number;
      /** `?verify=no` turns off certificate checks under `required` and `implicit`; `offered` never checks (opportunistic). */
      readonly verifyCertificate: boolean;
      /** EHLO name, `?name=`; the machine's host name unless set. */
      readonly name: string;
    };

export interface Settings {
  readonly database: DatabaseSetting;
  readonly transport: TransportSetting;
  readonly listen: HostPort;
  readonly operatorListen: HostPort;
  readonly operatorPassword: string | null;
  /** Addresses and CIDR networks of reverse proxies. */
  readonly trustedProxies: readonly string[];
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  readonly senders: 'authenticated' | 'any';
  readonly maxAgeMs: number;
  readonly maxRequestBytes: number;
  readonly keepBodyMs: number;
  readonly onUncertain: 'resend' | 'hold';
  /** 64 hexadecimal digits, or null: the file `secret` beside the database holds it. */
  readonly secret: string | null;
  /** Null for the system's resolver. */
  readonly dns: HostPort | null;
  /** Lower-case A-labels, or null. */
  readonly returnPathDomain: string | null;
  /** The SMTP listener for bounces and complaints, or null. Needs the return path's domain. */
  readonly feedbackListen: HostPort | null;
  /** The HTTP listener for the provider's notices (SNS), or null. Needs topics. */
  readonly feedbackHttpListen: HostPort | null;
  /** ARNs of the SNS topics that are believed; empty where none is. */
  readonly sesTopics: readonly string[];
  /** URL of the SQS queue that holds the provider's notices, or null. */
  readonly sesQueue: string | null;
  readonly roles: ReadonlySet<Role>;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

export type Role = 'api' | 'deliver' | 'feedback' | 'operator';

/** A setting that a person must correct; the message is one line that names it, the bad value and a good one. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}
