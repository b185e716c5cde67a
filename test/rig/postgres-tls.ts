/** The certificate is valid for `localhost` only. The role `certified` signs in with a client certificate. */
import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { generate } from 'selfsigned';
import { expect, vi } from 'vitest';
import { type PostgresServer, startPostgres } from './postgres.ts';
import type { ServerOptions } from './postgres-server.ts';

export interface Pem {
  readonly cert: string;
  readonly private: string;
}

export interface TlsServer {
  readonly server: PostgresServer;
  readonly authority: Pem;
  readonly certificate: Pem;
  readonly clientCertificate: Pem;
  url(parameters: Readonly<Record<string, string>>, host?: string): Promise<string>;
}

export function createAuthority(name: string): Promise<Pem> {
  return generate([{ name: 'commonName', value: name }], {
    algorithm: 'sha256',
    extensions: [{ name: 'basicConstraints', cA: true, critical: true }],
  });
}

function createCertificate(name: string, issuer: Pem): Promise<Pem> {
  return generate([{ name: 'commonName', value: name }], {
    algorithm: 'sha256',
    ca: { key: issuer.private, cert: issuer.cert },
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: name }] }],
  });
}

export async function startTlsServer(options: ServerOptions = {}): Promise<TlsServer> {
  const authority = await createAuthority('Test authority');
  const [certificate, clientCertificate, server] = await Promise.all([
    createCertificate('localhost', authority),
    createCertificate('certified', authority),
    startPostgres(options),
  ]);
  const data = join(server.folder, 'data');
  const rules = `hostssl all certified all cert\n${readFileSync(join(data, 'pg_hba.conf'), 'utf8')}`;
  const files = { 'server.crt': certificate.cert, 'server.key': certificate.private, 'ca.crt': authority.cert };
  const { uid, gid } = statSync(data);
  for (const [name, content] of Object.entries({ ...files, 'pg_hba.conf': rules })) {
    writeFileSync(join(data, name), content, { mode: 0o600 });
    chownSync(join(data, name), uid, gid);
  }
  await server.run("ALTER SYSTEM SET ssl_ca_file = 'ca.crt'");
  await server.run('ALTER SYSTEM SET ssl = on');
  await server.run('CREATE ROLE certified LOGIN SUPERUSER');
  await server.run('SELECT pg_reload_conf()');
  await vi.waitFor(async () => expect(await acceptsTls(server.port)).toBe(true), { timeout: 120_000 });
  return {
    server,
    authority,
    certificate,
    clientCertificate,
    async url(parameters, host = 'localhost') {
      const url = new URL(await server.createDatabase());
      url.hostname = host;
      url.search = new URLSearchParams(parameters).toString();
      return url.href;
    },
  };
}

async function acceptsTls(port: number): Promise<boolean> {
  const account = { database: 'postgres', user: 'postrider', password: 'postrider' };
  const client = new pg.Client({ host: '127.0.0.1', port, ...account, ssl: { rejectUnauthorized: false } });
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}
