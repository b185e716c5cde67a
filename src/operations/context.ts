/** What every operation is given. Nothing is opened here: adapters hand in what they have. */
import type { Clock, MonotonicClock } from '../clock.ts';
import type { DescribedSetting } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import type { Installation } from '../doctor/installation.ts';
import type { PublishOf } from '../model/events.ts';
import type { Inbox } from '../model/inbox.ts';
import type { RuntimeStatus } from '../model/node.ts';
import type { OperatorStore } from '../store/contract.ts';
import type { ReadEntity } from './inbox/captured-message.ts';
import type { ImportScheduler } from './suppressions/import-scheduler.ts';

export interface OperationContext {
  /** Who asks, as the audit log names them: `cli:NAME`, `page` or `token:NAME`. */
  readonly actor: string;
  readonly clock: Clock;
  /** Writes an audit log entry with every change. */
  readonly store: OperatorStore;
  readonly settings: Settings;
  /** A cryptographic source of so many bytes, for keys and tokens. */
  readonly random: (bytes: number) => Buffer;
  /** What the service knows of itself; null for a command beside it. */
  readonly status: (() => RuntimeStatus) | null;
  /** After the commit. A command has no subscribers. */
  readonly publish: PublishOf<'message.cancelled' | 'message.retried'>;
  /** Adds a warning to the result. `code` is stable, `message` one sentence. */
  warn(code: string, message: string): void;
}

/** What an import is given. */
export interface ImportContext extends OperationContext {
  /** The imports of this process, which take turns. */
  readonly imports: ImportScheduler;
}

/** What the operations of `doctor` are given: they look at an installation that may be broken, so nothing is opened beforehand. */
export interface DoctorContext {
  /** The clock of this machine, where nodes of a shared database go by another one. */
  readonly machineClock: MonotonicClock;
  readonly settings: Settings;
  readonly installation: Installation;
  /** Shows in one line what a long operation does now; each line replaces the one before. */
  progress(line: string): void;
}

/** What `showConfig` is given. */
export interface ConfigContext {
  /** The effective settings, secrets masked. @throws SettingsError */
  describeSettings(): readonly DescribedSetting[];
}

/** What the operations of the inbox are given. */
export interface InboxContext {
  /** Null where the transport captures nothing. */
  readonly inbox: Inbox | null;
  readonly readEntity: ReadEntity;
}

/** What a running service gives every operation of its API. */
export type ServiceContext = Omit<ImportContext, 'warn'> & DoctorContext & ConfigContext & InboxContext;
