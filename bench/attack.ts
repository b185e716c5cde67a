/**
 * Simulates hostile clients in a separate process, for measurements of a service under attack. Each kind of attack has
 * a fixed intensity, so that runs are comparable. The process ends after the time in `seconds`.
 *
 *   node bench/attack.ts '{"publicPort":8080,"operatorPort":8081,"smtpPort":2525,"reportTo":"abuse@example.org","seconds":20,"seed":1}'
 *
 * Prints one JSON line: the number of connections of each kind, and the number of connections that the service closed.
 */
import { connect, type Socket } from 'node:net';

interface AttackParameters {
  readonly publicPort: number;
  readonly operatorPort: number;
  readonly smtpPort: number;
  /** A recipient that the SMTP listener accepts from every peer. */
  readonly reportTo: string;
  readonly seconds: number;
  readonly seed: number;
}

const attack = JSON.parse(process.argv[2] ?? '{}') as AttackParameters;
const counts = {
  resetCount: 0,
  pipelineCount: 0,
  idleConnectionCount: 0,
  smtpIdleConnectionCount: 0,
  recipientLoopCount: 0,
  reportCount: 0,
  closedByServiceCount: 0,
};
const RESETS_PER_SECOND = 100;
const REPORTS_PER_SECOND = 2;
const PIPELINE_COUNT = 20;
const PIPELINED_REQUEST_COUNT = 500;
const IDLE_CONNECTIONS_PER_LISTENER = 500;
const SMTP_IDLE_CONNECTION_COUNT = 150;
const RECIPIENT_LOOP_COUNT = 5;
/** The time after which a connection that the service closed is reopened. */
const REOPEN_DELAY_MS = 250;
/** The interval between two bursts of resets. */
const RESET_INTERVAL_MS = 50;

let generatorState = attack.seed >>> 0 || 1;
/**
 * Returns the next integer of an xorshift generator, from 0 up to and excluding `limit`. The same seed results in the
 * same sequence.
 */
function randomInteger(limit: number): number {
  generatorState ^= generatorState << 13;
  generatorState ^= generatorState >>> 17;
  generatorState ^= generatorState << 5;
  return (generatorState >>> 0) % limit;
}

const BODY = JSON.stringify({ to: 'a@example.com', from: 'b@example.org', subject: 's', message: 'm'.repeat(200) });
const REQUESTS = [
  'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  `POST /api/v1/send-mail HTTP/1.1\r\nHost: x\r\nAuthorization: none\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  `POST /api/v1/send-mail HTTP/1.1\r\nHost: x\r\nAuthorization: none\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nff\r\n${BODY}`,
  'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20),
] as const;

const sockets = new Set<Socket>();
let isEnded = false;

function openSocket(port: number, onConnected: (socket: Socket) => void, reopen: (() => void) | null): void {
  if (isEnded) return;
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  sockets.add(socket);
  socket.on('connect', () => onConnected(socket));
  socket.on('error', () => undefined);
  socket.on('close', () => {
    sockets.delete(socket);
    if (isEnded || reopen === null) return;
    counts.closedByServiceCount += 1;
    setTimeout(reopen, REOPEN_DELAY_MS).unref();
  });
}

function resetConnection(): void {
  counts.resetCount += 1;
  const request = REQUESTS[randomInteger(REQUESTS.length)] ?? '';
  const bytes = request.slice(0, 1 + randomInteger(request.length));
  const port = randomInteger(2) === 0 ? attack.publicPort : attack.operatorPort;
  openSocket(port, (socket) => socket.write(bytes, 'latin1', () => socket.resetAndDestroy()), null);
}

/** Sends requests without a key and reads no response. */
function openPipeline(): void {
  counts.pipelineCount += 1;
  const port = counts.pipelineCount % 2 === 0 ? attack.publicPort : attack.operatorPort;
  const request = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(PIPELINED_REQUEST_COUNT);
  openSocket(
    port,
    (socket) => {
      socket.pause();
      const writeRequests = () => {
        while (!isEnded && socket.writable && socket.write(request, 'latin1'));
      };
      socket.on('drain', writeRequests);
      writeRequests();
    },
    openPipeline,
  );
}

function openIdleConnection(port: number): void {
  counts.idleConnectionCount += 1;
  openSocket(
    port,
    (socket) => socket.resume(),
    () => openIdleConnection(port),
  );
}

function openIdleSmtpConnection(): void {
  counts.smtpIdleConnectionCount += 1;
  openSocket(attack.smtpPort, (socket) => socket.resume(), openIdleSmtpConnection);
}

/** Opens a connection and sends a `RCPT TO` command with the same recipient after each reply of the service. */
function openRecipientLoop(): void {
  counts.recipientLoopCount += 1;
  openSocket(
    attack.smtpPort,
    (socket) => {
      socket.write('EHLO attacker.example\r\nMAIL FROM:<>\r\n');
      socket.on('data', () => {
        if (socket.writable) socket.write(`RCPT TO:<${attack.reportTo}>\r\n`);
      });
    },
    openRecipientLoop,
  );
}

/**
 * Builds a bounce report of 8 KB with many recipients and many groups of status fields. A naive parser needs quadratic
 * time for this report.
 */
function buildHostileReport(): string {
  const recipients = Array.from({ length: 100 }, (_, index) => `u${index}.${randomInteger(1_000_000)}@example.com`);
  const groups = Array.from({ length: 40 }, () => 'Action: failed\r\n\r\n');
  return [
    'From: MAILER-DAEMON@example.net',
    `To: ${attack.reportTo}`,
    'Subject: Undelivered Mail Returned to Sender',
    `X-Failed-Recipients: ${recipients.join(', ')}`,
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain',
    '',
    '@'.repeat(900),
    '--b',
    'Content-Type: message/delivery-status',
    '',
    groups.join(''),
    '--b--',
    '.',
    '',
  ].join('\r\n');
}

function sendReport(): void {
  counts.reportCount += 1;
  openSocket(
    attack.smtpPort,
    (socket) => {
      const commands = [
        'EHLO attacker.example\r\n',
        'MAIL FROM:<>\r\n',
        `RCPT TO:<${attack.reportTo}>\r\n`,
        'DATA\r\n',
        buildHostileReport(),
        'QUIT\r\n',
      ];
      socket.on('data', () => {
        const nextCommand = commands.shift();
        if (nextCommand === undefined) socket.end();
        else if (socket.writable) socket.write(nextCommand, 'latin1');
      });
    },
    null,
  );
}

for (let index = 0; index < PIPELINE_COUNT; index += 1) openPipeline();
for (let index = 0; index < IDLE_CONNECTIONS_PER_LISTENER; index += 1)
  for (const port of [attack.publicPort, attack.operatorPort]) openIdleConnection(port);
for (let index = 0; index < SMTP_IDLE_CONNECTION_COUNT; index += 1) openIdleSmtpConnection();
for (let index = 0; index < RECIPIENT_LOOP_COUNT; index += 1) openRecipientLoop();
const timers = [
  setInterval(() => {
    for (let index = 0; index < (RESETS_PER_SECOND * RESET_INTERVAL_MS) / 1000; index += 1) resetConnection();
  }, RESET_INTERVAL_MS),
  setInterval(sendReport, 1000 / REPORTS_PER_SECOND),
];
setTimeout(() => {
  isEnded = true;
  for (const timer of timers) clearInterval(timer);
  for (const socket of sockets) socket.destroy();
  console.log(JSON.stringify(counts));
}, attack.seconds * 1000);
