/**
 * The contexts of operations. Adapters create the contexts and open the resources in them; an operation opens no
 * resource.
 */
import type { Clock, MonotonicClock } from '../clock.ts';
import type { DescribedSetting } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import type { Installation } from '../doctor/installation.ts';
import type { ListenerClient } from '../http/listener-client.ts';
import type { Scope } from '../model/access.ts';
import type { PublishOf } from '../model/events.ts';
import type { Inbox } from '../model/inbox.ts';
import type { RuntimeStatus } from '../model/node.ts';
import type { OperatorStore } from '../store/contract.ts';
import type { ReadEntity } from './inbox/captured-message.ts';
import type { ImportScheduler } from './suppressions/import-scheduler.ts';

export interface OperationContext {
  /** The actor in the audit log: `cli:NAME`, `page` or `token:NAME`. */
  readonly actor: string;
  /** The scope of the actor. It determines which members of a result are left out. */
  readonly scope: Scope;
  readonly clock: Clock;
  /** The store, which writes an audit log entry with each change. */
  readonly store: OperatorStore;
  readonly settings: Settings;
  /** Returns cryptographically secure random bytes, for keys and tokens. */
  readonly random: (bytes: number) => Buffer;
  /** The runtime status of this process. Null for a command. */
  readonly status: (() => RuntimeStatus) | null;
  /** Publishes an event after the commit. In a command, no subscriber receives the event. */
  readonly publish: PublishOf<'message.accepted' | 'message.suppressed' | 'message.cancelled' | 'message.retried'>;
  /** Adds a warning to the result. `code` is stable; `message` is one sentence. */
  warn(code: string, message: string): void;
}

/** The context of an import. */
export interface ImportContext extends OperationContext {
  /** Schedules the imports of this process. */
  readonly imports: ImportScheduler;
}

/** The context of `doctor`. The installation may be faulty, so no resource is opened in advance. */
export interface DoctorContext {
  /** The clock of this machine. Nodes of a shared database use the time of the database. */
  readonly machineClock: MonotonicClock;
  readonly settings: Settings;
  readonly installation: Installation;
  /** The runtime status of this process. Null for a command. */
  readonly status: (() => RuntimeStatus) | null;
  /** Shows the progress of a long operation in one line, which replaces the previous line. */
  showProgress(line: string): void;
}

/** The context of `showConfig`. */
export interface ConfigContext {
  /** Returns the effective settings with secrets masked. @throws SettingsError */
  describeSettings(): readonly DescribedSetting[];
}

/** The context of the operations of the inbox. */
export interface InboxContext {
  /** The inbox. Null unless the transport is `capture:`. */
  readonly inbox: Inbox | null;
  readonly readEntity: ReadEntity;
}

/** The context of the operation that sends a test message. */
export interface PublicListenerContext {
  /** Sends requests to the public listener of this process. */
  readonly publicListener: ListenerClient;
}

/** The context of every operation of the operator API. */
export type ServiceContext = Omit<ImportContext, 'warn'> &
  DoctorContext &
  ConfigContext &
  InboxContext &
  PublicListenerContext;
