/**
 * Defines the functions through which the checks access the database, the relay and the provider. The caller injects
 * the functions.
 */
import type { SesSuppressionList } from '../domains/ses-suppression-list.ts';
import type { Standby } from '../model/node.ts';
import type { AcceptStore, FeedbackStore, NodeStore, OperatorStore } from '../store/contract.ts';
import type { SesAccount } from '../transports/ses/client.ts';
import type { RelayProbe } from '../transports/smtp/probe.ts';
import type { DatabaseParts } from './database.ts';

/** The store methods that the checks and the loop test use. */
export type DoctorStore = Pick<
  OperatorStore,
  | 'probe'
  | 'listMessages'
  | 'findMessage'
  | 'listNotifications'
  | 'findSuppression'
  | 'listDomains'
  | 'listAccounts'
  | 'listSuppressions'
  | 'findSuppressed'
> &
  Pick<AcceptStore, 'accept' | 'findNewestId'> &
  Pick<FeedbackStore, 'listLastFeedback'> &
  Pick<NodeStore, 'listNodes'>;

export interface Installation {
  /** Runs `work` with an open store. In a service, `work` receives the store of the service. */
  withStore<T>(work: (store: DoctorStore) => Promise<T>): Promise<T>;
  /**
   * If the database file is missing, resolves to the open result that describes the cause, and creates no file.
   * Resolves to null if the file exists or if the database is on a server.
   */
  findMissingDatabase(): Promise<DatabaseParts['openResult'] | null>;
  /**
   * Returns one line for each setting with which the database server can lose messages, and the state of the standby of
   * this server. Returns no lines when the server is unavailable.
   */
  readDatabaseWarnings(): Promise<{ readonly lines: readonly string[]; readonly standby: Standby | null }>;
  /**
   * Opens an SMTP session with the relay and sends no message. Ends after at most `timeoutMs`. Returns null when the
   * transport is not a relay.
   */
  probeRelay(timeoutMs: number): Promise<RelayProbe> | null;
  /**
   * Reads the account at Amazon SES. Ends after at most `timeoutMs`. Rejects with the error of the provider. Also
   * rejects if the transport is not Amazon SES.
   */
  readSesAccount(timeoutMs: number): Promise<SesAccount>;
  /**
   * Creates a client of the account-level suppression list of Amazon SES. Resolves to null when the transport does not
   * send through Amazon SES.
   */
  openSesSuppressionList(): Promise<SesSuppressionList | null>;
  /** Resolves after `ms` and keeps the process alive until then. */
  wait(ms: number): Promise<void>;
}
