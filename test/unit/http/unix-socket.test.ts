import { once } from 'node:events';
import { existsSync, linkSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { getClientAddress } from '../../../src/http/peers.ts';
import { bind } from '../../../src/http/server.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createTestServer } from './rig.ts';

function createUnixServer(): Server {
  const server = createServer();
  onTestFinished(() => void server.close());
  return server;
}

test('the user and the group of the service can connect, and closing the listener removes the socket file', async () => {
  const socketPath = join(createTemporaryFolder(), 'api.sock');
  const server = createUnixServer();
  expect(await bind(server, { socketPath }, 'POSTRIDER_LISTEN')).toEqual({ socketPath });
  expect((statSync(socketPath).mode & 0o777).toString(8)).toBe('660');
  server.close();
  await once(server, 'close');
  expect(existsSync(socketPath)).toBe(false);
});

test.each<readonly [name: string, fault: string, prepare: ((socketPath: string) => unknown) | undefined]>([
  [
    'api.sock',
    'another process listens on this socket; stop it, or choose another path',
    (socketPath) => bind(createUnixServer(), { socketPath }, 'POSTRIDER_LISTEN'),
  ],
  [
    'file',
    'the file exists and is not a socket; choose another path',
    (socketPath) => writeFileSync(socketPath, 'content'),
  ],
  [
    'missing/api.sock',
    'the socket cannot be created; create its folder, and let the user of the service write there',
    undefined,
  ],
])('the path %s is refused in one line, and its file is not removed: %s', async (name, fault, prepare) => {
  const socketPath = join(createTemporaryFolder(), name);
  await prepare?.(socketPath);
  await expect(bind(createUnixServer(), { socketPath }, 'POSTRIDER_LISTEN')).rejects.toThrow(
    `POSTRIDER_LISTEN unix:${socketPath}: ${fault}`,
  );
  expect(existsSync(socketPath)).toBe(prepare !== undefined);
});

test('the socket of a process that was killed is replaced', async () => {
  const socketPath = join(createTemporaryFolder(), 'api.sock');
  const server = createUnixServer();
  await bind(server, { socketPath }, 'POSTRIDER_LISTEN');
  // The test simulates the file that a killed process leaves: a hard link to the socket remains after `close`.
  const stalePath = `${socketPath}.stale`;
  linkSync(socketPath, stalePath);
  server.close();
  await once(server, 'close');
  await bind(createUnixServer(), { socketPath: stalePath }, 'POSTRIDER_LISTEN');
});

test('connections over a unix socket are accepted, and the client address is the address that the proxy reports', async () => {
  const socketPath = join(createTemporaryFolder(), 'api.sock');
  const server = createTestServer({
    address: { socketPath },
    handle: (incoming, outgoing) => void outgoing.end(getClientAddress(incoming, server.proxies)),
  });
  onTestFinished(() => server.drain(0));
  await server.start();
  const fetchClientAddress = async (headers: Record<string, string>): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    request({ socketPath, agent: false, headers }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => resolve(body));
    })
      .on('error', reject)
      .end();
    return promise;
  };
  expect(await fetchClientAddress({ 'X-Forwarded-For': '1.1.1.1, 203.0.113.9' })).toBe('203.0.113.9');
  expect(await fetchClientAddress({})).toBe('');
});
