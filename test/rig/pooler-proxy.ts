/** A proxy (without TLS) that handles startup parameters and SET as connection poolers do. */
import { connect } from 'node:net';
import { startLoopbackServer } from './loopback.ts';

/** `refuse`: the default behavior of PgBouncer. `drop`: its behavior with `ignore_startup_parameters = options`. */
export type StartupOptions = 'refuse' | 'drop';

export interface PoolerProxy {
  readonly port: number;
  readonly parameters: Set<string>;
}

const SSL_REQUEST = 80_877_103;

export async function startPoolerProxy(
  port: number,
  { options, ignoresSet = false }: { readonly options: StartupOptions; readonly ignoresSet?: boolean },
): Promise<PoolerProxy> {
  const parameters = new Set<string>();
  const server = await startLoopbackServer((clientSocket, track) => {
    const serverSocket = track(connect(port, '127.0.0.1'));
    let bufferedBytes = Buffer.alloc(0);
    let isStarted = false;
    for (const [socket, otherSocket] of [
      [clientSocket, serverSocket],
      [serverSocket, clientSocket],
    ] as const) {
      socket.on('error', () => otherSocket.destroy());
      socket.on('close', () => otherSocket.destroy());
    }
    serverSocket.on('data', (bytes: Buffer) => clientSocket.write(bytes));
    clientSocket.on('data', (bytes: Buffer) => {
      if (isStarted) {
        serverSocket.write(ignoresSet ? removeSetQueries(bytes) : bytes);
        return;
      }
      bufferedBytes = Buffer.concat([bufferedBytes, bytes]);
      if (bufferedBytes.length < 8 || bufferedBytes.length < bufferedBytes.readInt32BE(0)) return;
      if (bufferedBytes.readInt32BE(4) === SSL_REQUEST) {
        bufferedBytes = bufferedBytes.subarray(8);
        clientSocket.write('N');
        return;
      }
      isStarted = true;
      const startupParameters = readParameters(bufferedBytes);
      for (const name of startupParameters.keys()) parameters.add(name);
      if (startupParameters.has('options') && options === 'refuse') {
        clientSocket.end(encodeFatalError('08P01', 'unsupported startup parameter: options'));
        return;
      }
      startupParameters.delete('options');
      serverSocket.write(encodeStartup(startupParameters));
    });
  });
  return { port: server.port, parameters };
}

export function readParameters(message: Buffer): Map<string, string> {
  const parts = message.subarray(8, message.readInt32BE(0)).toString().split('\0');
  const parameters = new Map<string, string>();
  for (let at = 0; (parts[at] ?? '') !== ''; at += 2) parameters.set(parts[at] ?? '', parts[at + 1] ?? '');
  return parameters;
}

function encodeStartup(parameters: ReadonlyMap<string, string>): Buffer {
  const parts = [...parameters].map(([name, value]) => `${name}\0${value}\0`).join('');
  const body = Buffer.from(`\0\x03\0\0${parts}\0`, 'latin1');
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}

export function encodeFatalError(code: string, text: string): Buffer {
  const body = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from('E'), length, body]);
}

function removeSetQueries(bytes: Buffer): Buffer {
  const changedBytes = Buffer.from(bytes);
  for (let at = 0; at + 5 <= changedBytes.length; at += changedBytes.readInt32BE(at + 1) + 1) {
    const end = at + changedBytes.readInt32BE(at + 1);
    if (changedBytes[at] === 0x51 && /^(?:SET |SELECT set_config)/.test(changedBytes.toString('latin1', at + 5, end)))
      changedBytes.fill(' ', at + 5, end);
  }
  return changedBytes;
}
