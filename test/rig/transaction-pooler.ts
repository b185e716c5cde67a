/**
 * A fake of a pooler in transaction mode (without TLS) that changes the server connection with each transaction if it
 * can, and refuses what transaction mode does not support. `unsupportedRequest: 'forward'` and `prepared: 'track'` make
 * it behave like PgBouncer and like PgBouncer 1.21.
 */
import { connect, type Socket } from 'node:net';
import { startLoopbackServer } from './loopback.ts';
import { encodeFatalError, readParameters } from './pooler-proxy.ts';
import { type ClientStatements, createStatementTracking, type TrackedServer } from './statement-tracking.ts';

export interface TransactionPooler {
  readonly port: number;
  readonly refusedRequests: readonly string[];
  getSwitchCount(): number;
}

const SSL_REQUEST = 80_877_103;
const ACCEPTED_PARAMETERS = [
  'user',
  'database',
  'client_encoding',
  'DateStyle',
  'TimeZone',
  'standard_conforming_strings',
  'application_name',
];
const SESSION_STATEMENT =
  /(?:^|;)\s*(?:SET\s+(?!LOCAL\b|TRANSACTION\b)|LISTEN\b|CREATE\s+TEMP|SELECT\s+pg_advisory_lock)/i;

interface Upstream {
  readonly socket: Socket;
  client: Client | null;
  readonly statements: TrackedServer;
}

interface Client {
  readonly socket: Socket;
  upstream: Upstream | null;
  lastUpstream: Upstream | null;
  /** Messages that wait for a server connection. */
  readonly queuedMessages: Buffer[];
  /** The number of ReadyForQuery messages that the server has not sent yet. */
  pendingReadyCount: number;
  readonly statements: ClientStatements;
}

export async function startTransactionPooler(
  port: number,
  {
    unsupportedRequest = 'refuse',
    prepared = 'unsupported',
  }: { readonly unsupportedRequest?: 'refuse' | 'forward'; readonly prepared?: 'unsupported' | 'track' } = {},
): Promise<TransactionPooler> {
  const refusedRequests: string[] = [];
  const idleByDatabase = new Map<string, Upstream[]>();
  const waitingByDatabase = new Map<string, Client[]>();
  let switchCount = 0;
  const statementTracking = prepared === 'track' ? createStatementTracking() : null;

  function sendToServer(client: Client, upstream: Upstream, message: Buffer): void {
    const messages = statementTracking?.translateForServer(upstream.statements, client.statements, message) ?? [
      message,
    ];
    for (const translatedMessage of messages) upstream.socket.write(translatedMessage);
  }

  const getList = <T>(lists: Map<string, T[]>, key: string): T[] => {
    const list = lists.get(key) ?? [];
    lists.set(key, list);
    return list;
  };

  function assignUpstream(key: string, client: Client): void {
    const idleUpstreams = getList(idleByDatabase, key);
    const otherIndex = idleUpstreams.findIndex((candidate) => candidate !== client.lastUpstream);
    const [upstream] = idleUpstreams.splice(Math.max(0, otherIndex), 1);
    if (upstream === undefined) {
      const waitingClients = getList(waitingByDatabase, key);
      if (!waitingClients.includes(client)) waitingClients.push(client);
      return;
    }
    if (client.lastUpstream !== null && client.lastUpstream !== upstream) switchCount += 1;
    client.upstream = upstream;
    client.lastUpstream = upstream;
    upstream.client = client;
    for (const message of client.queuedMessages.splice(0)) sendToServer(client, upstream, message);
  }

  function releaseUpstream(key: string, upstream: Upstream): void {
    if (upstream.client !== null) upstream.client.upstream = null;
    upstream.client = null;
    getList(idleByDatabase, key).push(upstream);
    const nextClient = getList(waitingByDatabase, key).shift();
    if (nextClient !== undefined) assignUpstream(key, nextClient);
  }

  function refuseRequest({ socket }: Client, reason: string): void {
    refusedRequests.push(reason);
    socket.end(encodeFatalError('08P01', `the pooler does not support: ${reason}`));
  }

  function poolUpstream(key: string, client: Client, upstream: Upstream): void {
    let bufferedBytes: Buffer = Buffer.alloc(0);
    upstream.socket.removeAllListeners('data');
    upstream.socket.on('data', (bytes: Buffer) => {
      bufferedBytes = Buffer.concat([bufferedBytes, bytes]);
      for (const [type, message] of takeMessages()) {
        const { client: owner } = upstream;
        if (statementTracking?.isDelivered(upstream.statements, type) ?? true) owner?.socket.write(message);
        if (type !== 'Z' || owner === null) continue;
        owner.pendingReadyCount -= 1;
        if (message.toString('latin1', 5, 6) === 'I' && owner.pendingReadyCount === 0) releaseUpstream(key, upstream);
      }
    });
    function* takeMessages(): Generator<readonly [string, Buffer]> {
      while (bufferedBytes.length >= 5 && bufferedBytes.length > bufferedBytes.readInt32BE(1)) {
        const message = bufferedBytes.subarray(0, bufferedBytes.readInt32BE(1) + 1);
        bufferedBytes = bufferedBytes.subarray(message.length);
        yield [message.toString('latin1', 0, 1), message];
      }
    }
    upstream.socket.on('close', () => {
      const idleUpstreams = getList(idleByDatabase, key);
      if (idleUpstreams.includes(upstream)) idleUpstreams.splice(idleUpstreams.indexOf(upstream), 1);
      upstream.client?.socket.destroy();
    });
    client.socket.on('close', () => {
      // The pooler ends the server connection of a client that disconnects within a transaction.
      client.upstream?.socket.destroy();
      const waitingList = getList(waitingByDatabase, key);
      if (waitingList.includes(client)) waitingList.splice(waitingList.indexOf(client), 1);
    });
    releaseUpstream(key, upstream);
  }

  function handleMessage(key: string, client: Client, message: Buffer): void {
    const type = message.toString('latin1', 0, 1);
    if (type === 'X') {
      client.socket.end();
      return;
    }
    const text = message.toString('utf8', 5, message.length - 1);
    const reason =
      unsupportedRequest === 'refuse' ? findUnsupportedStatement(type, text, statementTracking !== null) : null;
    if (reason !== null) {
      refuseRequest(client, reason);
      return;
    }
    if (type === 'Q' || type === 'S') client.pendingReadyCount += 1;
    if (client.upstream !== null) {
      sendToServer(client, client.upstream, message);
      return;
    }
    client.queuedMessages.push(message);
    assignUpstream(key, client);
  }

  let signInCount = 0;
  const server = await startLoopbackServer((clientSocket, track) => {
    clientSocket.setNoDelay(true);
    const client: Client = {
      socket: clientSocket,
      upstream: null,
      lastUpstream: null,
      queuedMessages: [],
      pendingReadyCount: 0,
      statements: new Map(),
    };
    let bufferedBytes: Buffer = Buffer.alloc(0);
    let phase: 'startup' | 'authentication' | 'ready' = 'startup';
    let key = '';
    let signInSocket: Socket | null = null;

    function startUp(): void {
      if (bufferedBytes.length < 8 || bufferedBytes.length < bufferedBytes.readInt32BE(0)) return;
      if (bufferedBytes.readInt32BE(4) === SSL_REQUEST) {
        bufferedBytes = bufferedBytes.subarray(8);
        clientSocket.write('N');
        return;
      }
      const startupMessage = bufferedBytes.subarray(0, bufferedBytes.readInt32BE(0));
      bufferedBytes = bufferedBytes.subarray(startupMessage.length);
      const parameters = readParameters(startupMessage);
      const refusedParameters = [...parameters.keys()].filter((name) => !ACCEPTED_PARAMETERS.includes(name));
      if (refusedParameters.length > 0) {
        refuseRequest(client, `the startup parameter ${refusedParameters.join(', ')}`);
        return;
      }
      key = `${parameters.get('user')} ${parameters.get('database')}`;
      phase = 'authentication';
      const upstream: Upstream = {
        socket: track(connect(port, '127.0.0.1').setNoDelay(true)),
        client: null,
        statements: { preparedNames: new Set(), expectedAnswers: [] },
      };
      signInSocket = upstream.socket;
      upstream.socket.write(startupMessage);
      let answer: Buffer = Buffer.alloc(0);
      upstream.socket.on('data', (bytes: Buffer) => {
        answer = Buffer.concat([answer, bytes]);
        while (answer.length >= 5 && answer.length > answer.readInt32BE(1)) {
          const message = Buffer.from(answer.subarray(0, answer.readInt32BE(1) + 1));
          answer = answer.subarray(message.length);
          const type = message.toString('latin1', 0, 1);
          // The pooler replaces the cancel key of the server with its own cancel key.
          signInCount += 1;
          if (type === 'K') message.writeInt32BE(900_000_000 + signInCount, 5);
          if (type !== 'Z') {
            clientSocket.write(message);
            continue;
          }
          phase = 'ready';
          poolUpstream(key, client, upstream);
          clientSocket.write(message);
        }
      });
      upstream.socket.on('close', () => {
        if (phase === 'authentication') clientSocket.end();
      });
    }

    clientSocket.on('data', (bytes: Buffer) => {
      bufferedBytes = Buffer.concat([bufferedBytes, bytes]);
      if (phase === 'startup') startUp();
      if (phase === 'authentication') {
        signInSocket?.write(bufferedBytes);
        bufferedBytes = Buffer.alloc(0);
        return;
      }
      while (phase === 'ready' && bufferedBytes.length >= 5 && bufferedBytes.length > bufferedBytes.readInt32BE(1)) {
        const message = Buffer.from(bufferedBytes.subarray(0, bufferedBytes.readInt32BE(1) + 1));
        bufferedBytes = bufferedBytes.subarray(message.length);
        handleMessage(key, client, message);
      }
    });
  });
  return { port: server.port, refusedRequests, getSwitchCount: () => switchCount };
}

function findUnsupportedStatement(type: string, text: string, isTracking: boolean): string | null {
  if (type === 'P' && !isTracking && !text.startsWith('\0')) return `the named statement ${text.split('\0')[0]}`;
  return (type === 'Q' || type === 'P') &&
    SESSION_STATEMENT.test(type === 'P' ? text.slice(text.indexOf('\0') + 1) : text)
    ? text
    : null;
}
