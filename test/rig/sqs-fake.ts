/** A fake of Amazon SQS (JSON protocol) with long polling, visibility timeouts, repetitions and no order. */
import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { listenOnFreePort } from './free-port.ts';

interface QueuedMessage {
  readonly id: number;
  readonly body: string;
  readonly sentAt: number;
  visibleAt: number;
  receiveCount: number;
}

export interface SqsFake {
  readonly queueUrl: string;
  readonly remainingCount: number;
  readonly receiveCounts: readonly number[];
  /** The visibility timeouts that the client requested, in seconds. */
  readonly visibilityTimeoutsS: readonly number[];
  readonly pendingReceiveCount: number;
  readonly emptyAnswerCount: number;
  send(body: string, sentAt?: number): void;
  readonly requestCount: number;
  failNextRequests(count: number, status?: number): void;
  disconnectNextRequests(count: number): void;
  stallNextRequests(count: number): void;
  ignoreNextDeletions(count: number): void;
  endVisibilityTimeouts(): void;
  close(): Promise<void>;
}

const VISIBILITY_TIMEOUT_MS = 30_000;

export async function startSqsFake(): Promise<SqsFake> {
  const messages = new Map<number, QueuedMessage>();
  const receiveCounts: number[] = [];
  const visibilityTimeoutsS: number[] = [];
  const pendingReceives = new Set<() => void>();
  let nextId = 0;
  let failure = { count: 0, status: 500 };
  let [remainingDrops, remainingStalls, remainingLostDeletions, requestCount] = [0, 0, 0, 0];
  let [pendingReceiveCount, emptyAnswerCount] = [0, 0];

  const endPendingReceives = () => {
    for (const end of [...pendingReceives]) end();
  };
  const server = createServer((request, response) => {
    requestCount += 1;
    if (remainingDrops > 0) {
      remainingDrops -= 1;
      request.socket.destroy();
      return;
    }
    if (remainingStalls > 0) {
      remainingStalls -= 1;
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const target = String(request.headers['x-amz-target'] ?? '').replace('AmazonSQS.', '');
      void handleRequest(
        target,
        JSON.parse(Buffer.concat(chunks).toString() || '{}') as Record<string, unknown>,
        response,
      );
    });
  });

  async function handleRequest(target: string, body: Record<string, unknown>, response: ServerResponse) {
    if (failure.count > 0) {
      failure = { ...failure, count: failure.count - 1 };
      return sendResponse(
        response,
        { __type: 'com.amazonaws.sqs#InternalError', message: 'internal error' },
        failure.status,
      );
    }
    const entries = (body.Entries ?? []) as { Id: string; ReceiptHandle: string; VisibilityTimeout?: number }[];
    switch (target) {
      case 'ReceiveMessage':
        return receiveMessages(body as { MaxNumberOfMessages: number; WaitTimeSeconds: number }, response);
      case 'DeleteMessageBatch':
        if (remainingLostDeletions > 0) remainingLostDeletions -= 1;
        else for (const { ReceiptHandle } of entries) messages.delete(Number(ReceiptHandle.split('-')[0]));
        return sendResponse(response, { Successful: entries.map(({ Id }) => ({ Id })), Failed: [] });
      case 'ChangeMessageVisibilityBatch':
        for (const { ReceiptHandle, VisibilityTimeout = 0 } of entries) {
          visibilityTimeoutsS.push(VisibilityTimeout);
          const message = messages.get(Number(ReceiptHandle.split('-')[0]));
          if (message !== undefined) message.visibleAt = Date.now() + VisibilityTimeout * 1_000;
        }
        return sendResponse(response, { Successful: entries.map(({ Id }) => ({ Id })), Failed: [] });
      default:
        return sendResponse(response, { __type: 'UnknownOperation' }, 400);
    }
  }

  async function receiveMessages(
    {
      MaxNumberOfMessages: maxMessages,
      WaitTimeSeconds: waitS,
    }: { MaxNumberOfMessages: number; WaitTimeSeconds: number },
    response: ServerResponse,
  ) {
    const deadline = Date.now() + waitS * 1_000;
    pendingReceiveCount += 1;
    for (;;) {
      // The fake returns the newest message first, because SQS guarantees no order.
      const visibleMessages = [...messages.values()]
        .filter(({ visibleAt }) => visibleAt <= Date.now())
        .reverse()
        .slice(0, maxMessages);
      if (visibleMessages.length > 0 || Date.now() >= deadline || response.destroyed) {
        for (const message of visibleMessages) {
          message.visibleAt = Date.now() + VISIBILITY_TIMEOUT_MS;
          message.receiveCount += 1;
          receiveCounts[message.id] = message.receiveCount;
        }
        pendingReceiveCount -= 1;
        if (visibleMessages.length === 0 && !response.destroyed) emptyAnswerCount += 1;
        return sendResponse(response, { Messages: visibleMessages.map(composeMessage) });
      }
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer);
          pendingReceives.delete(end);
          resolve();
        };
        const timer = setTimeout(end, deadline - Date.now());
        pendingReceives.add(end);
        response.once('close', end);
      });
    }
  }

  function composeMessage({ id, body, sentAt, receiveCount }: QueuedMessage) {
    return {
      MessageId: `message-${id}`,
      ReceiptHandle: `${id}-${receiveCount}`,
      Body: body,
      MD5OfBody: createHash('md5').update(body).digest('hex'),
      Attributes: { SentTimestamp: String(sentAt) },
    };
  }

  function sendResponse(response: ServerResponse, body: unknown, status = 200) {
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body));
  }

  const port = await listenOnFreePort(server);
  return {
    queueUrl: `http://127.0.0.1:${port}/000000000000/ses-feedback`,
    get remainingCount() {
      return messages.size;
    },
    receiveCounts,
    visibilityTimeoutsS,
    get pendingReceiveCount() {
      return pendingReceiveCount;
    },
    get emptyAnswerCount() {
      return emptyAnswerCount;
    },
    get requestCount() {
      return requestCount;
    },
    disconnectNextRequests(count) {
      remainingDrops = count;
    },
    stallNextRequests(count) {
      remainingStalls = count;
    },
    ignoreNextDeletions(count) {
      remainingLostDeletions = count;
    },
    send(body, sentAt = Date.now()) {
      messages.set(nextId, { id: nextId, body, sentAt, visibleAt: 0, receiveCount: 0 });
      nextId += 1;
      endPendingReceives();
    },
    failNextRequests(count, status = 500) {
      failure = { count, status };
    },
    endVisibilityTimeouts() {
      for (const message of messages.values()) message.visibleAt = 0;
      endPendingReceives();
    },
    close: async () => {
      endPendingReceives();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
