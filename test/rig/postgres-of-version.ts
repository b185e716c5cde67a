/** A fake of a server of any version (postgresql.org/docs/current/protocol-message-formats.html). */
import { startLoopbackServer } from './loopback.ts';

const TYPE_OIDS = { boolean: 16, integer: 23, text: 25 } as const;

export async function startServerOfVersion({
  version,
  isReplica = false,
}: {
  readonly version: number;
  readonly isReplica?: boolean;
}): Promise<number> {
  const readyMessage = encodeServerMessage('Z', 'I');
  const columns: readonly (readonly [name: string, type: number, value: string])[] = [
    ['version', TYPE_OIDS.integer, String(version)],
    ['read_only', TYPE_OIDS.text, 'off'],
    ['recovering', TYPE_OIDS.boolean, isReplica ? 't' : 'f'],
    ['pid', TYPE_OIDS.integer, '1'],
  ];
  const columnDescriptions = columns.map(([name, type]) =>
    Buffer.concat([
      Buffer.from(`${name}\0`),
      encodeInt32(0),
      encodeInt16(0),
      encodeInt32(type),
      encodeInt16(4),
      encodeInt32(-1),
      encodeInt16(0),
    ]),
  );
  const row = columns.map(([, , value]) => Buffer.concat([encodeInt32(value.length), Buffer.from(value)]));
  const answer = Buffer.concat([
    encodeServerMessage('T', encodeInt16(columns.length), ...columnDescriptions),
    encodeServerMessage('D', encodeInt16(columns.length), ...row),
    encodeServerMessage('C', 'SELECT 1\0'),
    readyMessage,
  ]);
  const { port } = await startLoopbackServer((socket) => {
    let isStarted = false;
    socket.on('data', (bytes) => {
      if (!isStarted) {
        isStarted = true;
        socket.write(Buffer.concat([encodeServerMessage('R', encodeInt32(0)), readyMessage]));
        return;
      }
      // The server sends one response for each of the simple queries that arrived together.
      for (let at = 0; at < bytes.length; at += bytes.readInt32BE(at + 1) + 1) socket.write(answer);
    });
  });
  return port;
}

function encodeServerMessage(type: string, ...parts: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  return Buffer.concat([Buffer.from(type), encodeInt32(body.length + 4), body]);
}

function encodeInt16(value: number): Buffer {
  return Buffer.from([(value >> 8) & 255, value & 255]);
}

function encodeInt32(value: number): Buffer {
  return Buffer.concat([encodeInt16(value >>> 16), encodeInt16(value & 65_535)]);
}
