/**
 * Tests two nodes behind PgBouncer in transaction mode, on the oldest supported PostgreSQL, with synchronous_commit=off
 * by default. The environment variable PGBOUNCER selects the PgBouncer executable. A version that
 * tracks prepared statements is also tested with `prepared=yes`.
 */
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { startPgBouncer } from '../rig/pgbouncer.ts';
import { startPostgres } from '../rig/postgres.ts';
import { startProcess, submit } from '../rig/service.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const MESSAGE_COUNT = 400;

test('no accepted message is lost behind PgBouncer if a node is killed and the server is restarted', async () => {
  const server = await startPostgres({
    version: 'oldest',
    settings: { synchronous_commit: 'off', wal_writer_delay: '10s' },
  });
  const url = new URL(await server.createDatabase());
  const pgBouncer = await startPgBouncer({ serverPort: server.port });
  url.port = String(pgBouncer.port);
  const urlWithoutPooler = url.href;
  await expect(openStore(parsePostgresUrl(urlWithoutPooler), { exclusive: true })).rejects.toThrow(
    /a connection pooler in transaction mode is in front of the server\. Add pooler=transaction/,
  );
  url.searchParams.set('pooler', 'transaction');
  if (pgBouncer.tracksStatements) url.searchParams.set('prepared', 'yes');
  const settings = { POSTRIDER_DATABASE: url.href, POSTRIDER_SECRET: 'ab'.repeat(32), POSTRIDER_SENDERS: 'any' };
  const folder = createTemporaryFolder();
  const firstService = await startProcess(folder, settings);
  const key = firstService.key ?? '';
  const secondService = await startProcess(folder, settings);
  const acceptedIds: string[] = [];
  const submitMessage = async (publicUrl: string) => {
    const response = await submit(publicUrl, key).catch(() => null);
    const body = (await response?.json().catch(() => null)) as { result?: { id: string } } | null;
    if (response?.status === 201 && body?.result) acceptedIds.push(body.result.id);
  };
  for (let count = 0; count < MESSAGE_COUNT; count += 20) {
    if (count === MESSAGE_COUNT / 4) firstService.kill('SIGKILL');
    if (count === MESSAGE_COUNT / 2) await server.restart();
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        submitMessage(index % 2 === 0 ? firstService.publicUrl : secondService.publicUrl),
      ),
    );
  }
  expect(acceptedIds.length).toBeGreaterThan(MESSAGE_COUNT / 4);
  const store = await openStore(parsePostgresUrl(url.href), { exclusive: false });
  try {
    const readStates = async () => {
      const messages = await Promise.all(acceptedIds.map((id) => store.findMessage(id)));
      return [...new Set(messages.map((message) => message?.state ?? 'lost'))];
    };
    await expect.poll(readStates, { timeout: 120_000, interval: 1_000 }).toEqual(['delivered']);
  } finally {
    await store.close();
  }
}, 300_000);

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
