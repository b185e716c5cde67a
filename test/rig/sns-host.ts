/**
 * A fake of the host `https://sns.eu-west-1.amazonaws.com` on loopback, behind a CONNECT proxy, for a service that is
 * configured with `HTTPS_PROXY` and `NODE_EXTRA_CA_CERTS`.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { listenOnFreePort } from './free-port.ts';
import { type Authority, CERT_URL, createAuthority, REGION } from './sns.ts';

export interface SnsHost {
  readonly signer: Authority;
  readonly environment: Record<string, string>;
  readonly confirmedPaths: readonly string[];
  close(): Promise<void>;
}

export async function startSnsHost(folder: string): Promise<SnsHost> {
  const root = await createAuthority('Test Root of SNS');
  const host = `sns.${REGION}.amazonaws.com`;
  const [signer, tls] = [await root.issueCertificate(), await root.issueCertificate(host)];
  const rootFile = join(folder, 'sns-root.pem');
  writeFileSync(rootFile, root.cert);
  const confirmedPaths: string[] = [];
  const tlsServer = createTlsServer({ key: tls.key, cert: tls.cert }, (request, response) => {
    const path = request.url ?? '';
    if (path === new URL(CERT_URL).pathname) return response.end(signer.cert);
    if (path.includes('Action=ConfirmSubscription')) {
      confirmedPaths.push(path);
      return response.end('<ok/>');
    }
    return response.writeHead(404).end();
  });
  const sockets = new Set<Socket>();
  const proxy = createServer();
  proxy.on('connect', (request, socket) => {
    if (request.url !== `${host}:443`) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const upstream = connect(tlsPort, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    for (const endpoint of [upstream, socket as Socket]) {
      sockets.add(endpoint);
      endpoint.on('error', () => undefined);
      endpoint.on('close', () => {
        sockets.delete(endpoint);
        upstream.destroy();
        socket.destroy();
      });
    }
    return undefined;
  });
  const tlsPort = await listenOnFreePort(tlsServer);
  const proxyPort = await listenOnFreePort(proxy);
  return {
    signer,
    environment: {
      NODE_USE_ENV_PROXY: '1',
      HTTPS_PROXY: `http://127.0.0.1:${proxyPort}`,
      NO_PROXY: '127.0.0.1,localhost',
      NODE_EXTRA_CA_CERTS: rootFile,
    },
    confirmedPaths,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      tlsServer.closeAllConnections();
      proxy.closeAllConnections();
      await Promise.all([tlsServer, proxy].map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}
