/**
 * The connections of a process in a pool of `pg`. While no connection can be opened, all calls share one attempt at a
 * time, with growing delays, and fail within two seconds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import pg from 'pg';
import type { PostgresSetting } from '../../config/settings.ts';
import type { HostPort } from '../../model/listen-address.ts';
import { StoreError } from '../error.ts';
import { type Connection, describeServer, prepareConnection } from './connection.ts';
import * as fault from './fault.ts';
import { parseOptions } from './server-settings.ts';
import { readTlsOptions } from './tls.ts';

/** Time limit for connecting to one host, and for verifying that it accepts writes. */
const CONNECT_TIMEOUT_MS = 5_000;
const MULTI_HOST_CONNECT_TIMEOUT_MS = 2_000;
/** How long a call waits if no connection can be opened. */
const MAX_CONNECT_WAIT_MS = 2_000;
/** The first and the maximum delay between attempts. Half of each delay is random. */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 3_000;
/** Time limit of one statement. The statement timeout of the server is one second shorter. */
const STATEMENT_TIMEOUT_MS = 15_000;
const KEEPALIVE_DELAY_MS = 10_000;
/** A graceful close does not complete if the network path is broken. */
const CLOSE_TIMEOUT_MS = 1_000;
const INT8_OID = 20;

export interface ConnectionsOptions {
  readonly setting: PostgresSetting;
  /** The application name that the server shows for this process. */
  readonly application: string;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  readonly statementTimeoutMs?: number;
}

export type Connections = ReturnType<typeof createConnections>;

/** Opens no connection before the first call, and at most `max`. */
export function createConnections(
  { setting, application, random, statementTimeoutMs = STATEMENT_TIMEOUT_MS }: ConnectionsOptions,
  max: number,
) {
  const { user, password, database } = setting;
  const server = describeServer(setting.hosts, database);
  const { settings, startupOptions } = parseOptions(setting.options ?? '');
  const connectTimeoutMs = setting.hosts.length > 1 ? MULTI_HOST_CONNECT_TIMEOUT_MS : CONNECT_TIMEOUT_MS;
  const open = new Map<pg.Client, Connection>();
  /** The host that accepted writes last is the first. */
  let hosts = setting.hosts;
  let target: HostPort & { readonly ssl: TlsOptions | false };
  let hasHost = false;
  let search: Promise<StoreError | null> | null = null;
  let failureCount = 0;
  let retryAt = 0;
  let lastFault: StoreError | null = null;
  let generation = 0;
  let closing: Promise<void> | null = null;

  class Client extends pg.Client {
    constructor() {
      super({
        ...{ ...target, user, database, ...(password === null ? {} : { password }), application_name: application },
        ...{ keepAlive: true, keepAliveInitialDelayMillis: KEEPALIVE_DELAY_MS, pipeline: true },
        connectionTimeoutMillis: connectTimeoutMs,
        query_timeout: statementTimeoutMs,
        types: {
          getTypeParser: ((oid: number, format: 'text') =>
            oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format)) as never,
        },
      });
      // Otherwise the driver would use the environment variable PGOPTIONS.
      Object.assign(Reflect.get<object, string>(this, 'connectionParameters'), { options: startupOptions });
      this.on('error', () => undefined);
    }
  }
  const pool = new pg.Pool({
    Client,
    max,
    // The limit of the pool also applies to a call that waits for a busy connection.
    connectionTimeoutMillis: fault.MAX_BUSY_WAIT_MS,
    idleTimeoutMillis: 0,
    onConnect: (client) => prepare(client as pg.Client),
  });
  pool.on('error', () => undefined);

  async function prepare(client: pg.Client): Promise<void> {
    const timeout = new Error(fault.CONNECT_TIMEOUT);
    const timer = setTimeout(() => client.connection.stream.destroy(timeout), connectTimeoutMs);
    try {
      const connection = await prepareConnection(client, { setting, settings, statementTimeoutMs, generation });
      // Two open connections use the same server connection only behind a pooler in transaction mode.
      const isSame = ({ pid, history, server: host }: Connection) =>
        pid === connection.pid && history === connection.history && host === connection.server;
      if (setting.pooler === null && [...open.values()].some(isSame))
        throw new fault.ConfigurationFault(`${server}: ${fault.UNDECLARED_POOLER}`);
      open.set(client, connection);
      client.once('end', () => open.delete(client));
    } finally {
      clearTimeout(timer);
    }
  }

  async function waitForHost(): Promise<void> {
    const deadline = performance.now() + MAX_CONNECT_WAIT_MS;
    while (!hasHost) {
      search ??= findHost().finally(() => {
        search = null;
      });
      const waitMs = Math.max(0, deadline - performance.now());
      const result = await Promise.race([search, sleep(waitMs, 'none' as const, { ref: false })]);
      if (result instanceof fault.ConfigurationFault) throw result;
      if (result !== 'none') continue;
      const text = `no connection within ${MAX_CONNECT_WAIT_MS / 1_000} s. Check the server, the network and its firewalls.`;
      throw lastFault ?? new StoreError(`${server}: ${text}`);
    }
  }

  /** Tries each host once, after a delay if the last attempt failed. Resolves to null if a host accepts writes. */
  async function findHost(): Promise<StoreError | null> {
    await sleep(Math.max(0, retryAt - performance.now()));
    const faults: StoreError[] = [];
    for (const host of hosts) {
      const hostFault = await tryHost(host, setting.tls === 'preferred' ? 'required' : setting.tls);
      if (hostFault === null) {
        hosts = [host, ...hosts.filter((other) => other !== host)];
        [hasHost, failureCount, lastFault] = [true, 0, null];
        return null;
      }
      faults.push(hostFault);
    }
    const maxDelayMs = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** failureCount);
    failureCount += 1;
    retryAt = performance.now() + maxDelayMs * (0.5 + random() / 2);
    const isPermanent = faults.every((hostFault) => hostFault instanceof fault.ConfigurationFault);
    lastFault = new (isPermanent ? fault.ConfigurationFault : StoreError)(
      faults.map(({ message }) => message).join(' '),
    );
    return lastFault;
  }

  /** Resolves to the error, or to null if the host accepts writes. */
  async function tryHost(host: HostPort, tls: PostgresSetting['tls']): Promise<StoreError | null> {
    try {
      // The files are read again for each attempt, so a renewed certificate needs no restart.
      target = { ...host, ssl: tls === 'never' ? false : readTlsOptions(tls, setting.tlsFiles) };
      (await pool.connect()).release();
      return null;
    } catch (error) {
      // Any other error would occur again without TLS.
      if (setting.tls === 'preferred' && tls !== 'never' && fault.isWithoutTls(error)) return tryHost(host, 'never');
      const name = describeServer([host], database);
      // With this code PgBouncer refuses a startup parameter; the server reports an invalid option with another.
      if (startupOptions !== '' && fault.getErrorCode(error) === '08P01') {
        const text = `the pooler refuses options= in POSTRIDER_DATABASE (${fault.getDetail(error)}). Remove it.`;
        return new fault.ConfigurationFault(`${name}: ${text}`);
      }
      return fault.toStoreError(error, name);
    }
  }

  async function close(): Promise<void> {
    // Calls that wait for a connection still get one; the pool would forget them.
    while (pool.waitingCount > 0) await sleep(10);
    await pool.end();
    setTimeout(() => {
      for (const client of open.keys()) client.connection.stream.destroy();
    }, CLOSE_TIMEOUT_MS).unref();
  }

  return {
    server,
    /** Resolves to a connection for exclusive use until it is released. Rejects with a StoreError. */
    async acquire(): Promise<Connection> {
      for (;;) {
        if (closing !== null) throw new StoreError('the store is closed.');
        if (!hasHost) await waitForHost();
        try {
          const client = await pool.connect();
          const connection = open.get(client);
          if (connection?.generation === generation) return connection;
          client.connection.stream.destroy();
          client.release(true);
        } catch (error) {
          if (fault.isBusyTimeout(error)) throw fault.toStoreError(error, server);
          hasHost = open.size > 0;
          if (!hasHost) continue;
          // For a while, the calls share the connections that are open, because the server may accept no further one.
          pool.options.max = open.size;
          setTimeout(() => Object.assign(pool.options, { max }), MAX_BACKOFF_MS).unref();
        }
      }
    },
    release(connection: Connection): void {
      connection.release(connection.generation === generation);
    },
    /** Ends every connection of the generation of `connection` when it is released or would be used next. */
    renew(connection: Connection): void {
      if (connection.generation === generation) generation += 1;
    },
    /** Waits until no connection is in use, and then closes all connections. */
    close(): Promise<void> {
      closing ??= close();
      return closing;
    },
  };
}
