/** An SMTP client that a test controls line by line, so that it can send data that no client library sends. */
import { once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface SmtpClient {
  command(line: string): Promise<string>;
  write(bytes: string | Uint8Array): void;
  readReply(): Promise<string>;
  startTls(): Promise<void>;
  send(from: string, to: string, message: string | Uint8Array): Promise<string>;
  close(): void;
}

export async function connectSmtp(
  port: number,
  localAddress = '127.0.0.1',
  firstBytes: string | Uint8Array = '',
): Promise<SmtpClient> {
  let socket: Socket = connectSocket({ port, host: '127.0.0.1', localAddress });
  let receivedText = '';
  let isClosed = false;
  let notifyReader: () => void = () => undefined;
  const readSocket = () => {
    socket.on('data', (chunk: Buffer) => {
      receivedText += chunk.toString('latin1');
      notifyReader();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      isClosed = true;
      notifyReader();
    });
  };
  readSocket();

  async function readReply(): Promise<string> {
    for (;;) {
      const completeReply = /^(?:\d{3}-[^\n]*\n)*\d{3} [^\n]*\n/.exec(receivedText);
      if (completeReply !== null) {
        receivedText = receivedText.slice(completeReply[0].length);
        return completeReply[0].trim().replaceAll('\r\n', '\n');
      }
      if (isClosed) return 'closed';
      await new Promise<void>((resolve) => {
        notifyReader = resolve;
      });
    }
  }

  const sendCommand = (line: string) => {
    socket.write(`${line}\r\n`);
    return readReply();
  };
  if (firstBytes.length > 0) socket.write(firstBytes);
  await readReply();
  await sendCommand('EHLO peer.example');
  return {
    command: sendCommand,
    readReply,
    write: (bytes) => void socket.write(bytes),
    async startTls() {
      const plainSocket = socket;
      plainSocket.removeAllListeners();
      socket = connectTls({ socket: plainSocket, rejectUnauthorized: false });
      await once(socket, 'secureConnect');
      readSocket();
    },
    async send(from, to, message) {
      for (const line of [`MAIL FROM:<${from}>`, `RCPT TO:<${to}>`, 'DATA']) {
        const answer = await sendCommand(line);
        if (!/^[23]/.test(answer)) return answer;
      }
      socket.write(message);
      return sendCommand('\r\n.');
    },
    close: () => void socket.destroy(),
  };
}
