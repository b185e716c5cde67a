/**
 * A relay whose reply depends on the recipient and on the number of the attempt. It can close the connection after the
 * final dot without a reply. It accepts several commands in one packet (PIPELINING, RFC 2920).
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** `drop`: the connection is closed after the whole message, without a reply. */
export type RelayAction = 'accept' | 'reject' | 'defer' | 'drop';

export interface TrialRelay {
  readonly port: number;
  /** The envelope sender of the last accepted message, by recipient. */
  readonly senders: ReadonlyMap<string, string>;
  close(): Promise<void>;
}

const REPLIES_BY_VERB: Readonly<Record<string, string>> = {
  EHLO: '250-relay.example.net\r\n250-PIPELINING\r\n250-ENHANCEDSTATUSCODES\r\n250 SMTPUTF8\r\n',
  MAIL: '250 2.1.0 ok\r\n',
  RSET: '250 2.0.0 ok\r\n',
  NOOP: '250 2.0.0 ok\r\n',
  QUIT: '221 2.0.0 bye\r\n',
};

/** Starts the relay. `findAction` returns the action for an attempt. The number of the first attempt is 1. */
export async function startTrialRelay(
  findAction: (recipient: string, attempt: number) => RelayAction,
): Promise<TrialRelay> {
  const attempts = new Map<string, number>();
  const senders = new Map<string, string>();
  const sockets = new Set<Socket>();

  /** Counts an attempt. Returns the action for the attempt, and the reply to its RCPT command. */
  function chooseAction(recipient: string): { readonly action: RelayAction; readonly reply: string } {
    const attemptNumber = (attempts.get(recipient) ?? 0) + 1;
    attempts.set(recipient, attemptNumber);
    const action = findAction(recipient, attemptNumber);
    switch (action) {
      case 'accept':
      case 'drop':
        return { action, reply: '250 2.1.5 ok\r\n' };
      case 'reject':
        return { action, reply: '550 5.1.1 no such user\r\n' };
      case 'defer':
        return { action, reply: '451 4.2.1 try again later\r\n' };
    }
  }

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A killed node resets its connections.
    socket.on('error', () => undefined);
    let bufferedText = '';
    let isInContent = false;
    let action: RelayAction = 'reject';
    let [sender, recipient] = ['', ''];
    socket.write('220 relay.example.net\r\n');
    const readCommand = (line: string) => {
      const verb = line.slice(0, 4).toUpperCase();
      if (verb === 'RCPT') {
        recipient = readPath(line);
        const chosenAction = chooseAction(recipient);
        action = chosenAction.action;
        socket.write(chosenAction.reply);
      } else if (verb === 'DATA') {
        isInContent = action === 'accept' || action === 'drop';
        socket.write(isInContent ? '354 go\r\n' : '503 5.5.1 no recipient\r\n');
      } else {
        if (verb === 'MAIL') sender = readPath(line);
        if (verb === 'MAIL' || verb === 'RSET') action = 'reject';
        socket.write(REPLIES_BY_VERB[verb] ?? '502 5.5.2 unknown command\r\n');
      }
    };
    socket.on('data', (chunk) => {
      bufferedText += chunk.toString('latin1');
      for (;;) {
        const end = bufferedText.indexOf(isInContent ? '\r\n.\r\n' : '\r\n');
        if (end < 0) return;
        const part = bufferedText.slice(0, end);
        bufferedText = bufferedText.slice(end + (isInContent ? 5 : 2));
        if (!isInContent) {
          readCommand(part);
          continue;
        }
        isInContent = false;
        if (action === 'drop') {
          socket.destroy();
          return;
        }
        senders.set(recipient, sender);
        socket.write('250 2.0.0 queued\r\n');
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    senders,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function readPath(line: string): string {
  return /<([^>]*)>/.exec(line)?.[1] ?? '';
}
