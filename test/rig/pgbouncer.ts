import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, chownSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createTemporaryFolder } from './folder.ts';
import { findFreePort } from './free-port.ts';
import type { Pem } from './postgres-tls.ts';

/** The path of the PgBouncer executable. The environment variable PGBOUNCER overrides the default. */
const PGBOUNCER_PATH = process.env.PGBOUNCER ?? '/usr/sbin/pgbouncer';
const FIRST_TRACKING_MINOR_VERSION = 21;
/** PgBouncer refuses to run as root. */
const UNPRIVILEGED_ID = 65_534;

export interface PgBouncer {
  readonly port: number;
  readonly version: string;
  readonly tracksStatements: boolean;
  /** Kills PgBouncer, which ends every connection, and starts PgBouncer again on the same port. */
  restart(): Promise<void>;
}

export interface PgBouncerOptions {
  readonly serverPort: number;
  /** The role that clients use to sign in to PgBouncer, and that PgBouncer uses to sign in to the server. */
  readonly role?: { readonly name: string; readonly password: string };
  /** If `tls` is given, PgBouncer requires TLS, and verifies the certificate and the host name of the server. */
  readonly tls?: { readonly authority: Pem; readonly certificate: Pem };
}

const SUPERUSER = { name: 'postrider', password: 'postrider' };

export async function startPgBouncer(options: PgBouncerOptions): Promise<PgBouncer> {
  const pgBouncer = await launchPgBouncer(options, createTemporaryFolder());
  onTestFinished(pgBouncer.stop);
  return pgBouncer;
}

export function isPgBouncerInstalled(): boolean {
  try {
    accessSync(PGBOUNCER_PATH);
    return true;
  } catch {
    return false;
  }
}

/** `folder` must be empty; it receives the files of PgBouncer. The caller stops PgBouncer. */
export async function launchPgBouncer(
  { serverPort, role = SUPERUSER, tls }: PgBouncerOptions,
  folder: string,
): Promise<PgBouncer & { readonly stop: () => Promise<void> }> {
  if (!isPgBouncerInstalled())
    throw new Error(`${PGBOUNCER_PATH} is missing: install it with \`apt-get install pgbouncer\``);
  const version = execFileSync(PGBOUNCER_PATH, ['--version'], { encoding: 'utf8' }).split('\n')[0] ?? '';
  const tracksStatements = Number(/ 1\.(\d+)/.exec(version)?.[1] ?? 0) >= FIRST_TRACKING_MINOR_VERSION;
  const isRoot = process.getuid?.() === 0;
  const identity = isRoot ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : {};
  const port = await findFreePort();
  const writeConfigurationFile = (name: string, content: string) => {
    const path = join(folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    if (isRoot) chownSync(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
    return path;
  };
  if (isRoot) chownSync(folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  const tlsLines =
    tls === undefined
      ? ''
      : `client_tls_sslmode = require
client_tls_cert_file = ${writeConfigurationFile('bouncer.crt', tls.certificate.cert)}
client_tls_key_file = ${writeConfigurationFile('bouncer.key', tls.certificate.private)}
server_tls_sslmode = verify-full
server_tls_ca_file = ${writeConfigurationFile('ca.crt', tls.authority.cert)}
`;
  const configuration = writeConfigurationFile(
    'pgbouncer.ini',
    `[databases]
* = host=${tls === undefined ? '127.0.0.1' : 'localhost'} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${writeConfigurationFile('users.txt', `"${role.name}" "${role.password}"\n`)}
pool_mode = transaction
${tracksStatements ? 'max_prepared_statements = 200\n' : ''}${tlsLines}`,
  );
  let child: ChildProcess | null = null;
  const start = async () => {
    const startedChild = spawn(PGBOUNCER_PATH, ['-q', configuration], { ...identity, cwd: folder, stdio: 'ignore' });
    child = startedChild;
    for (let attempt = 0; !(await acceptsConnections(port)); attempt += 1) {
      if (attempt > 300 || startedChild.exitCode !== null) throw new Error('PgBouncer did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const stop = async () => {
    const runningChild = child;
    if (runningChild === null || runningChild.exitCode !== null || runningChild.signalCode !== null) return;
    const exitPromise = new Promise((resolve) => runningChild.once('exit', resolve));
    runningChild.kill('SIGKILL');
    await exitPromise;
  };
  await start();
  return {
    port,
    version,
    tracksStatements,
    stop,
    async restart() {
      await stop();
      await start();
    },
  };
}

function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
