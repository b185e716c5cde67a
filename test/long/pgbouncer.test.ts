import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { expectOneLineErrors, findMissingIds, openStoreAt, startAccepting } from '../rig/accept-load.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { startPgBouncer } from '../rig/pgbouncer.ts';
import { startPostgres } from '../rig/postgres.ts';
import { startTlsServer } from '../rig/postgres-tls.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

test('a connection that PgBouncer refuses is reported in one line with the remedy', async () => {
  const server = await startPostgres({ version: 'oldest' });
  const { port, tracksStatements } = await startPgBouncer({ serverPort: server.port });
  const baseUrl = new URL(await server.createDatabase());
  baseUrl.port = String(port);
  const readOpenError = async (change: (url: URL) => void) => {
    const url = new URL(baseUrl);
    url.searchParams.set('pooler', 'transaction');
    change(url);
    return openStore(parsePostgresUrl(url.href), { exclusive: true }).then(
      (store) => store.close().then(() => 'the store is open'),
      (error: unknown) => String(error),
    );
  };
  const signInError =
    /: the server or its pooler refuses the connection \(.+\)\. Correct user, password and database in /;
  expect(
    await readOpenError((url) => {
      url.password = 'wrong';
    }),
  ).toMatch(signInError);
  expect(
    await readOpenError((url) => {
      url.username = 'unknown';
    }),
  ).toMatch(signInError);
  expect(
    await readOpenError((url) => {
      url.pathname = '/no_such_database';
    }),
  ).toMatch(tracksStatements ? /: the database does not exist\. Create it with / : signInError);
  const optionsError = await readOpenError((url) => {
    url.searchParams.delete('pooler');
    url.searchParams.set('options', '-c ignore_system_indexes=on');
  });
  expect(optionsError).toMatch(/: the pooler refuses options= in POSTRIDER_DATABASE \(.+\)\. Remove it\.$/);
  const preparedResult = await readOpenError((url) => url.searchParams.set('prepared', 'yes'));
  expect(preparedResult).toMatch(
    tracksStatements
      ? /^the store is open$/
      : /: the pooler does not track prepared statements\. Set max_prepared_statements in /,
  );
  await server.crash();
  const connectionError = await readOpenError(() => undefined);
  expect(connectionError).toMatch(/: no connection within 2 s\. Check the server, the network and its firewalls\.$/);
});

test('with verified TLS and a role whose commits are asynchronous by default, restarts of PgBouncer and of the server lose no accepted message', async () => {
  const role = { name: 'mailer', password: 'mailer-password' };
  // The server listens on every address of `localhost`, which is the name in its certificate.
  const { server, authority, certificate, url } = await startTlsServer({
    version: 'oldest',
    settings: { wal_writer_delay: '10s', listen_addresses: 'localhost' },
  });
  const rootCertificate = join(createTemporaryFolder(), 'ca.pem');
  writeFileSync(rootCertificate, authority.cert);
  const pooledUrl = new URL(await url({ sslmode: 'verify-full', sslrootcert: rootCertificate }));
  await server.run(`CREATE ROLE ${role.name} LOGIN PASSWORD '${role.password}'`);
  await server.run(`ALTER ROLE ${role.name} SET synchronous_commit = off`);
  await server.run(`ALTER DATABASE ${pooledUrl.pathname.slice(1)} OWNER TO ${role.name}`);
  const pgBouncer = await startPgBouncer({ serverPort: server.port, role, tls: { authority, certificate } });
  pooledUrl.username = role.name;
  pooledUrl.password = role.password;
  pooledUrl.port = String(pgBouncer.port);
  pooledUrl.searchParams.set('pooler', 'transaction');

  const store = await openStoreAt(pooledUrl.href);
  const acceptLoad = startAccepting(store.accept);
  for (const restart of [pgBouncer.restart, server.restart]) {
    await acceptLoad.waitForAcknowledgements(60);
    await restart();
  }
  await acceptLoad.waitForAcknowledgements(60);
  const { rows } = await server.run(
    `SELECT bool_and(s.ssl) AS encrypted FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
     WHERE a.usename = '${role.name}'`,
  );
  expect(rows).toEqual([{ encrypted: true }]);
  await acceptLoad.end();
  expect(await findMissingIds(acceptLoad, pooledUrl.href)).toEqual([]);
  expectOneLineErrors(acceptLoad.errors);
});
