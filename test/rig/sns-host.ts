/**
 * A fake of the host `https://sns.eu-west-1.amazonaws.com` on loopback, behind a CONNECT proxy, with a certificate of a
 * test authority. The service is configured with `HTTPS_PROXY` and `NODE_EXTRA_CA_CERTS`, like an installation behind a
 * proxy.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Authority, CERT_URL, createAuthority, REGION } from './sns.ts';

export interface SnsHost {
  /** The signing key of SNS. */
  readonly signer: Authority;
  /** The environment of the service. */
  readonly environment: Record<string, string>;
  /** The URL paths of the confirmed subscriptions. */
  readonly confirmed: readonly string[];
  close(): Promise<void>;
}

/** Starts the host; the certificate of the authority is written to `folder`. */
export async function startSnsHost(folder: string): Promise<SnsHost> {
  const root = await createAuthority('Test Root of SNS');
  const host = `sns.${REGION}.amazonaws.com`;
  const [signer, tls] = [await root.issueCertificate(), await root.issueCertificate(host)];
  const file = join(folder, 'sns-root.pem');
  writeFileSync(file, root.cert);
  const confirmed: string[] = [];
  const pages = createTlsServer({ key: tls.key, cert: tls.cert }, (request, response) => {
    const path = request.url ?? '';
    if (path === new URL(CERT_URL).pathname) return response.end(signer.cert);
    if (path.includes('Action=ConfirmSubscription')) {
      confirmed.push(path);
      return response.end('<ok/>');
    }
    return response.writeHead(404).end();
  });
  const sockets = new Set<Socket>();
  const proxy = createServer();
  proxy.on('connect', (request, socket) => {
    if (request.url !== `${host}:443`) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const upstream = connect(portOf(pages), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    for (const socketOrUpstream of [upstream, socket as Socket]) {
      sockets.add(socketOrUpstream);
      socketOrUpstream.on('error', () => undefined);
      socketOrUpstream.on('close', () => {
        sockets.delete(socketOrUpstream);
        upstream.destroy();
        socket.destroy();
      });
    }
    return undefined;
  });
  for (const server of [pages, proxy]) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  return {
    signer,
    environment: {
      NODE_USE_ENV_PROXY: '1',
      HTTPS_PROXY: `http://127.0.0.1:${portOf(proxy)}`,
      NO_PROXY: '127.0.0.1,localhost',
      NODE_EXTRA_CA_CERTS: file,
    },
    confirmed,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      pages.closeAllConnections();
      proxy.closeAllConnections();
      await Promise.all([pages, proxy].map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

function portOf(server: { address(): ReturnType<ReturnType<typeof createServer>['address']> }): number {
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}
