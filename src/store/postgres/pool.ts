/**
 * The connections of this process: a few, made when needed and anew when they break, with pauses that grow and tremble.
 *
 * Promises: who asks for a connection while the database is away is told so in one clear line within two seconds. A host
 * that works is tried first the next time.
 */
import type { HostPort } from '../../config/settings.ts';
import { StoreError } from '../error.ts';
import { type Connection, connect, type PostgresSetting, whereOf } from './connection.ts';
import { explained, isMistake } from './fault.ts';

/** Two commits of accepting and two of settling under way, claims, sweeps, and questions beside them. */
const CONNECTIONS = 8;
/** How long a call waits for a connection before it fails. */
const WAIT_MS = 2_000;
/** How long a busy but working pool may keep a call waiting. */
const BUSY_MS = 10_000;
/** Pauses between tries to connect, in ms: from the first to the last, doubling, half of it chance. */
const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 3_000;
/** After so many failures in a row those who wait are told at once. */
const FAILURES = 3;

export interface PoolOptions {
  readonly setting: PostgresSetting;
  /** What the server shows this process as. */
  readonly application: string;
  /** In [0, 1). */
  readonly random: () => number;
  /** Of one statement; 15 s unless given. */
  readonly limitMs?: number;
}

export interface Connections {
  /** Hosts and database as people know them. */
  readonly where: string;
  /** One that nobody else uses, until it is given back or dropped. Rejects with a StoreError. */
  acquire(): Promise<Connection>;
  give(connection: Connection): void;
  /** Ends it. */
  drop(connection: Connection): void;
  /** All that are open now are made anew: at once, or when given back. */
  renew(): void;
  /** One outside the pool's number; `limitMs` is the time of one statement. Rejects with a StoreError. */
  connectAlone(limitMs?: number): Promise<Connection>;
  /** Waits for those in use, then closes every one. */
  close(): Promise<void>;
}

interface Waiter {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: StoreError) => void;
  timer: NodeJS.Timeout;
}

/** Opens nothing before the first call. */
export function keepConnections({ random, ...options }: PoolOptions): Connections {
  const { setting } = options;
  const where = whereOf(setting.hosts, setting.database);
  const open = new Set<Connection>();
  const old = new WeakSet<Connection>();
  const idle: Connection[] = [];
  const waiting: Waiter[] = [];
  let connecting = 0;
  let failures = 0;
  let pausedUntil = 0;
  let fault: StoreError | null = null;
  let first: HostPort | null = null;
  let retry: NodeJS.Timeout | null = null;
  let closing: PromiseWithResolvers<void> | null = null;

  const now = () => performance.now();

  function acquire(): Promise<Connection> {
    if (closing !== null) return Promise.reject(new StoreError('the store is closed.'));
    const free = idle.pop();
    if (free !== undefined) return Promise.resolve(free);
    return new Promise((resolve, reject) => {
      const since = now();
      const overdue = () => {
        // A pool at work is given longer than one that cannot connect.
        if (open.size > 0 && now() - since < BUSY_MS) {
          waiter.timer = setTimeout(overdue, WAIT_MS);
          return;
        }
        waiting.splice(waiting.indexOf(waiter), 1);
        const busy = `${where}: every connection was busy for ${BUSY_MS / 1_000} s.`;
        const silent = `${where}: no connection within ${WAIT_MS / 1_000} s. Look at the server, the network and its firewalls.`;
        reject(fault ?? new StoreError(open.size > 0 ? busy : silent));
      };
      const waiter: Waiter = { resolve, reject, timer: setTimeout(overdue, WAIT_MS) };
      waiting.push(waiter);
      grow();
    });
  }

  /** Connects where calls wait and there is room, not before a pause after failures is over. */
  function grow(): void {
    while (closing === null && waiting.length > connecting && open.size + connecting < CONNECTIONS) {
      const pause = pausedUntil - now();
      if (pause > 0) {
        retry ??= setTimeout(() => {
          retry = null;
          grow();
        }, pause);
        return;
      }
      // After a failure one tries for all.
      if (failures > 0 && connecting > 0) return;
      connecting += 1;
      connect({ ...options, first }).then(connected, failed);
    }
  }

  function connected(connection: Connection): void {
    connecting -= 1;
    failures = 0;
    fault = null;
    first = connection.host;
    open.add(connection);
    void connection.ended.then(() => forget(connection));
    give(connection);
    grow();
  }

  function failed(error: unknown): void {
    connecting -= 1;
    failures += 1;
    fault = explained(error, where);
    const longest = Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10));
    pausedUntil = now() + longest * (0.5 + random() / 2);
    // A person's mistake, or a database that has been away for a while: nobody is kept waiting for it.
    if (open.size === 0 && (failures > FAILURES || isMistake(error))) refuseAll(fault);
    grow();
    settleClose();
  }

  function refuseAll(error: StoreError): void {
    for (const { reject, timer } of waiting.splice(0)) {
      clearTimeout(timer);
      reject(error);
    }
  }

  function give(connection: Connection): void {
    if (!open.has(connection)) return;
    if (old.has(connection)) {
      drop(connection);
      return;
    }
    const next = waiting.shift();
    if (next !== undefined) {
      clearTimeout(next.timer);
      next.resolve(connection);
    } else if (closing === null) idle.push(connection);
    else void connection.close();
  }

  function drop(connection: Connection): void {
    connection.destroy();
    forget(connection);
  }

  function forget(connection: Connection): void {
    if (!open.delete(connection)) return;
    const index = idle.indexOf(connection);
    if (index >= 0) idle.splice(index, 1);
    grow();
    settleClose();
  }

  function settleClose(): void {
    if (open.size === 0 && connecting === 0) closing?.resolve();
  }

  return {
    where,
    acquire,
    give,
    drop,
    renew() {
      for (const connection of open) old.add(connection);
      for (const connection of idle.splice(0)) drop(connection);
    },
    async connectAlone(limitMs) {
      try {
        return await connect({ ...options, first, ...(limitMs === undefined ? {} : { limitMs }) });
      } catch (error) {
        throw explained(error, where);
      }
    },
    close() {
      if (closing !== null) return closing.promise;
      closing = Promise.withResolvers<void>();
      if (retry !== null) clearTimeout(retry);
      refuseAll(new StoreError('the store is closed.'));
      for (const connection of idle.splice(0)) void connection.close();
      settleClose();
      return closing.promise;
    },
  };
}
