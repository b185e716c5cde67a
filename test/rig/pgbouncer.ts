/** Debian's PgBouncer in transaction mode, in front of a server, as a user without rights. */
import { spawn } from 'node:child_process';
import { accessSync, chownSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './folder.ts';

const PROGRAM = '/usr/sbin/pgbouncer';
const NOBODY_ID = 65_534;

/** Starts PgBouncer for the server on `port` and stops it at the end of the test. Resolves to its port. */
export async function startPgBouncer(port: number): Promise<number> {
  try {
    accessSync(PROGRAM);
  } catch {
    throw new Error(`${PROGRAM} is missing: install it with \`apt-get install pgbouncer\``);
  }
  const folder = temporaryFolder();
  const listenPort = await freePort();
  const configuration = join(folder, 'pgbouncer.ini');
  writeFileSync(
    configuration,
    `[databases]
* = host=127.0.0.1 port=${port} user=postrider password=postrider
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
`,
  );
  const identity = process.getuid?.() === 0 ? { uid: NOBODY_ID, gid: NOBODY_ID } : {};
  if (identity.uid !== undefined) for (const path of [folder, configuration]) chownSync(path, NOBODY_ID, NOBODY_ID);
  const child = spawn(PROGRAM, ['-q', configuration], { ...identity, cwd: folder, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  for (let attempt = 0; !(await answers(listenPort)); attempt += 1) {
    if (attempt > 300 || child.exitCode !== null) throw new Error('PgBouncer does not start');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return listenPort;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
