/** Defines the functions by which the checks access the database, the relay and the provider. The caller injects the functions. */
import type { Standby } from '../model/node.ts';
import type { AcceptStore, OperatorStore } from '../store/contract.ts';
import type { SesAccount } from '../transports/ses/client.ts';
import type { RelayProbe } from '../transports/smtp/probe.ts';
import type { DatabaseParts } from './database.ts';

/** The part of the store that the checks read and the loop test writes. */
export type DoctorStore = Pick<
  OperatorStore,
  'probe' | 'listMessages' | 'findMessage' | 'listDomains' | 'listAccounts'
> &
  Pick<AcceptStore, 'accept' | 'newestId'>;

export interface Installation {
  /** Runs `work` with an open store. In a service this is the store of the service. */
  withStore<T>(work: (store: DoctorStore) => Promise<T>): Promise<T>;
  /**
   * Returns the reason why the database file is missing. Returns null when the file exists or the database is a server. Creates
   * no file.
   */
  missingDatabase(): Promise<DatabaseParts['opened'] | null>;
  /**
   * Returns the settings of the database server that can lose messages, one line each, and what is known of its standby. Returns no
   * lines when the server is unavailable.
   */
  databaseWarnings(): Promise<{ readonly lines: readonly string[]; readonly standby: Standby | null }>;
  /** Opens a session with the relay without sending a message. Ends after `timeoutMs`. Null when the transport is not a relay. */
  probeRelay(timeoutMs: number): Promise<RelayProbe> | null;
  /**
   * Reads the provider's account. Ends after `timeoutMs`. Rejects with the provider's error, or when the transport is not
   * Amazon SES.
   */
  readSesAccount(timeoutMs: number): Promise<SesAccount>;
  /** Resolves after `ms` and keeps the process alive until then. */
  wait(ms: number): Promise<void>;
}
