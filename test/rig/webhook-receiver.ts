import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

export interface ReceiverResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/**
 * `reset-after-status` and `stall-after-status`: within the body of a 200 response. `endless`: a body of 10 MB.
 * `garbage`: bytes that are not HTTP. `informational`: an endless sequence of 103 responses. `upgrade`: a 101 response.
 */
export type ReceiverBehavior =
  | ReceiverResponse
  | 'stall'
  | 'reset'
  | 'reset-after-status'
  | 'stall-after-status'
  | 'endless'
  | 'garbage'
  | 'endless-headers'
  | 'informational'
  | 'upgrade';

export interface ReceivedWebhook {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly at: number;
}

export interface WebhookReceiver {
  readonly url: string;
  readonly port: number;
  readonly receivedWebhooks: readonly ReceivedWebhook[];
  readonly connectionCount: number;
  readonly abortedResponseCount: number;
  /** Returns the behavior for a webhook. The default is a 200 response without a body. */
  chooseBehavior: (webhook: ReceivedWebhook, count: number) => ReceiverBehavior;
  close(): Promise<void>;
}

const ENDLESS_BODY_BYTES = 10 * 1_048_576;

export async function startWebhookReceiver(
  options: {
    readonly host?: string;
    readonly port?: number;
    readonly certificate?: { readonly key: string; readonly cert: string };
  } = {},
): Promise<WebhookReceiver> {
  const { host = '127.0.0.1', port = 0, certificate } = options;
  const receivedWebhooks: ReceivedWebhook[] = [];
  const sockets = new Set<Socket>();
  let connectionCount = 0;
  let abortedResponseCount = 0;

  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const webhook = { path: request.url ?? '', headers, body: Buffer.concat(chunks).toString(), at: Date.now() };
    receivedWebhooks.push(webhook);
    response.on('close', () => {
      if (!response.writableFinished) abortedResponseCount += 1;
    });
    respond(receiver.chooseBehavior(webhook, receivedWebhooks.length), request.socket, response);
  };
  const handleRequest = (request: IncomingMessage, response: ServerResponse) =>
    // A client may close the connection at any time.
    void onRequest(request, response).catch(() => response.destroy());
  const server =
    certificate === undefined ? createHttpServer(handleRequest) : createHttpsServer({ ...certificate }, handleRequest);
  server.on('connection', (socket: Socket) => {
    connectionCount += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(port, host);
  await once(server, 'listening');
  const { port: boundPort } = server.address() as AddressInfo;
  const receiver: WebhookReceiver = {
    url: `${certificate === undefined ? 'http' : 'https'}://${host}:${boundPort}`,
    port: boundPort,
    receivedWebhooks,
    get connectionCount() {
      return connectionCount;
    },
    get abortedResponseCount() {
      return abortedResponseCount;
    },
    chooseBehavior: () => ({ status: 200 }),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}

function respond(behavior: ReceiverBehavior, socket: Socket, response: ServerResponse): void {
  switch (behavior) {
    case 'stall':
      return;
    case 'reset':
      socket.resetAndDestroy();
      return;
    case 'reset-after-status':
      response.writeHead(200, { 'Content-Length': '1000' });
      // A reset discards data that the client has not read. After two turns, a client in this process has read it.
      response.write('beginning', () => setImmediate(() => setImmediate(() => socket.resetAndDestroy())));
      return;
    case 'stall-after-status':
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('beginning');
      return;
    case 'endless':
      response.writeHead(200);
      response.end(Buffer.alloc(ENDLESS_BODY_BYTES, 'x'));
      return;
    case 'garbage':
      socket.end('this is not HTTP\r\n\r\n');
      return;
    case 'endless-headers':
      writeRepeatedly(socket, 'HTTP/1.1 200 OK\r\n', `X-Filler: ${'x'.repeat(1_000)}\r\n`);
      return;
    case 'informational':
      writeRepeatedly(socket, '', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(10));
      return;
    case 'upgrade':
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n');
      return;
    default:
      response.writeHead(behavior.status, behavior.headers);
      response.end(behavior.body);
  }
}

/** Writes `first`, and then writes `text` repeatedly until the connection is closed. */
function writeRepeatedly(socket: Socket, first: string, text: string): void {
  socket.write(first);
  const write = () => {
    if (!socket.destroyed) socket.write(text, () => setImmediate(write));
  };
  write();
}
