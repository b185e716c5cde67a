import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { startPgBouncer } from '../rig/pgbouncer.ts';
import { startPostgres } from '../rig/postgres.ts';
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
