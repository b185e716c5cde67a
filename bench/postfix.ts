/**
 * Runs Postfix as the baseline if Postfix is installed and this process runs as root. A separate instance of Postfix
 * with a temporary folder listens on the loopback interface and relays to the sink. The program smtp-source generates
 * the load. The settings of logging and file synchronization have the defaults of the Debian package.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const POSTFIX_PATH = '/usr/sbin/postfix';
const SMTP_SOURCE_PATH = '/usr/sbin/smtp-source';
const MASTER_SERVICES = `
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`;

export interface Postfix {
  /**
   * Returns the number of messages per second that Postfix acknowledges to smtp-source over `sessionCount`
   * connections.
   */
  measureAcknowledgedRate(messageCount: number, sessionCount: number, messageBytes: number): number;
  stop(): void;
}

/** Returns true if Postfix can run on this machine. */
export function isPostfixInstalled(): boolean {
  return process.getuid?.() === 0 && existsSync(POSTFIX_PATH) && existsSync(SMTP_SOURCE_PATH);
}

/** Starts an instance of Postfix that listens on `port` and relays to the sink. */
export function startPostfix(sinkPort: number, port: number): Postfix {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-postfix-'));
  chmodSync(folder, 0o755);
  for (const name of ['queue', 'data', 'etc']) mkdirSync(join(folder, name));
  const { uid } = statSync('/var/lib/postfix');
  chownSync(join(folder, 'data'), uid, 0);
  const settings = {
    compatibility_level: '3.6',
    queue_directory: join(folder, 'queue'),
    data_directory: join(folder, 'data'),
    daemon_directory: '/usr/lib/postfix/sbin',
    command_directory: '/usr/sbin',
    mail_owner: 'postfix',
    setgid_group: 'postdrop',
    maillog_file: join(folder, 'log'),
    maillog_file_prefixes: folder,
    myhostname: 'postfix.bench.test',
    mydestination: '',
    inet_interfaces: '127.0.0.1',
    inet_protocols: 'ipv4',
    mynetworks: '127.0.0.0/8',
    relayhost: `[127.0.0.1]:${sinkPort}`,
    smtpd_relay_restrictions: 'permit_mynetworks, reject',
    smtpd_client_connection_count_limit: '0',
    default_process_limit: '200',
    disable_dns_lookups: 'yes',
    alias_maps: '',
  };
  writeFileSync(
    join(folder, 'etc/main.cf'),
    Object.entries(settings)
      .map(([name, value]) => `${name} = ${value}\n`)
      .join(''),
  );
  writeFileSync(
    join(folder, 'etc/master.cf'),
    `127.0.0.1:${port} inet n - n - - smtpd\n${MASTER_SERVICES.trimStart()}`,
  );
  const run = (command: string) => spawnSync(POSTFIX_PATH, ['-c', join(folder, 'etc'), command], { encoding: 'utf8' });
  const startResult = run('start');
  if (startResult.status !== 0) throw new Error(`Postfix did not start: ${startResult.stderr}`);
  return {
    measureAcknowledgedRate(messageCount, sessionCount, messageBytes) {
      const startedAt = performance.now();
      // With the option -d, smtp-source sends all messages of a session over one connection.
      const args = [
        '-d',
        '-s',
        String(sessionCount),
        '-m',
        String(messageCount),
        '-l',
        String(messageBytes),
        '-f',
        'shop@example.org',
        '-t',
        'rita@example.com',
        `127.0.0.1:${port}`,
      ];
      const { status, stderr } = spawnSync(SMTP_SOURCE_PATH, args, { encoding: 'utf8' });
      if (status !== 0) throw new Error(`smtp-source: ${stderr}`);
      return messageCount / ((performance.now() - startedAt) / 1000);
    },
    stop() {
      run('stop');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
