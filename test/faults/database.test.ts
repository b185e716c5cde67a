import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { expectOneLineErrors, findMissingIds, openStoreAt, startAccepting } from '../rig/accept-load.ts';
import { createMessage, NO_LIMITS } from '../rig/messages.ts';
import { startPostgres } from '../rig/postgres.ts';
import { selectCaseCount } from '../rig/sample.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

test('no acknowledged message is lost when the server crashes repeatedly, and the store continues after each crash', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const store = await openStoreAt(url);
  const acceptLoad = startAccepting(store.accept);
  for (let round = 0; round < selectCaseCount(1, 3); round += 1) {
    await acceptLoad.waitForAcknowledgements(60);
    await server.restart();
  }
  await acceptLoad.waitForAcknowledgements(60);
  await acceptLoad.end();
  expect(await findMissingIds(acceptLoad, url)).toEqual([]);
  expectOneLineErrors(acceptLoad.errors);
}, 300_000);

test('messages and suppressions are acknowledged only if the server requires a synchronous standby and the wait for it was not cancelled', async () => {
  const server = await startPostgres({ settings: { fsync: 'off' } });
  const url = await server.createDatabase();
  const warnings: string[] = [];
  const store = await openStore(parsePostgresUrl(url), {
    ...{ exclusive: true, requireSyncStandby: true, warn: (line: string) => void warnings.push(line) },
  });
  onTestFinished(() => store.close());
  expect(warnings).toEqual([expect.stringMatching(/^PostgreSQL .* runs with fsync=off: .* Set fsync=on/)]);
  await store.createAccount('default', NO_LIMITS, 1);
  const missingStandby = /the server does not require a synchronous standby\. Set synchronous_standby_names/;
  await expect(store.accept([createMessage()])).rejects.toThrow(missingStandby);
  // PostgreSQL reports a commit as successful if an administrator cancels its wait for the standby.
  await server.run("ALTER SYSTEM SET synchronous_standby_names = 'away'");
  await server.run('SELECT pg_reload_conf()');
  /** Cancels every wait for the standby until the call has ended. */
  const runDuringCancels = async (call: Promise<unknown>) => {
    let [hasEnded, cancelledCount] = [false, 0];
    const result = call.then(
      () => 'acknowledged',
      (error: unknown) => String(error),
    );
    void result.finally(() => {
      hasEnded = true;
    });
    while (!hasEnded) {
      const cancelledWaits = await server.run(
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
      );
      cancelledCount += cancelledWaits.rows.length;
    }
    return { result: await result, cancelledCount };
  };
  // The checkpointer of the server applies the reloaded setting, and only then do commits wait.
  const commitOnServer = () => runDuringCancels(server.run("SELECT pg_logical_emit_message(true, 'test', 'commit')"));
  await expect.poll(async () => (await commitOnServer()).cancelledCount).toBeGreaterThan(0);
  const entry = { address: 'gone@example.com', reason: 'manual', source: null, at: 1 } as const;
  // The last call finds the row of the call before it.
  for (const call of [
    () => store.accept([createMessage()]),
    () => store.addSuppressions('default', [entry]),
    () => store.addSuppressions('default', [entry]),
  ])
    expect((await runDuringCancels(call())).result).not.toBe('acknowledged');
});
