/**
 * What the checks ask of the installation outside this process: the database, the relay, the provider. Each member is one effect,
 * passed in by the caller.
 */
import type { AcceptStore, OperatorStore } from '../store/contract.ts';
import type { SesAccount } from '../transports/ses/client.ts';
import type { RelayProbe } from '../transports/smtp/probe.ts';
import type { DatabaseParts } from './database.ts';

/** What checks read, and what the trial of the way back writes. */
export type DoctorStore = Pick<
  OperatorStore,
  'probe' | 'listMessages' | 'findMessage' | 'listDomains' | 'listAccounts'
> &
  Pick<AcceptStore, 'accept' | 'newestId'>;

export interface Installation {
  /** Opens the store for one piece of work. Inside a service it is the service's own. */
  withStore<T>(work: (store: DoctorStore) => Promise<T>): Promise<T>;
  /** Why there is no database file; null where there is one, or where the database is a server's. Makes nothing. */
  missingDatabase(): Promise<DatabaseParts['opened'] | null>;
  /** What the database server says of itself that endangers messages, one line each; nothing where it cannot be asked. */
  databaseWarnings(): Promise<readonly string[]>;
  /** A session with the relay that sends no message; over after `timeoutMs`. Null where the transport is no relay. */
  probeRelay(timeoutMs: number): Promise<RelayProbe> | null;
  /** The provider's account; over after `timeoutMs`. Rejects with the provider's error, or where the transport is another. */
  readSesAccount(timeoutMs: number): Promise<SesAccount>;
  /** Resolves after so many ms. Keeps the process alive meanwhile. */
  wait(ms: number): Promise<void>;
}
