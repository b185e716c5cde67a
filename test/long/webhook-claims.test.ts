import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DatabaseSetting } from '../../src/config/settings.ts';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { NO_LIMITS } from '../rig/messages.ts';
import { createTemporaryDatabase, runStatement } from '../rig/postgres.ts';
import { parsePostgresUrl } from '../rig/stores.ts';

const CLAIM_LIMITS = { maxDeliveries: 10, freeSlots: [], defaultFreeSlots: 10 };
/** More endpoints than three claims examine. */
const ENDPOINT_COUNT = 3_500;

interface Installation {
  readonly setting: DatabaseSetting;
  readonly run: (sql: string) => Promise<unknown>;
}

function installSqlite(): Installation {
  const path = join(createTemporaryFolder(), 'postrider.db');
  return {
    setting: { kind: 'sqlite', path },
    async run(sql) {
      const database = new DatabaseSync(path);
      try {
        database.exec(sql);
      } finally {
        database.close();
      }
    },
  };
}

async function installPostgres(): Promise<Installation> {
  const url = await createTemporaryDatabase();
  return {
    setting: parsePostgresUrl(url),
    run: (sql) => runStatement(url, sql),
  };
}

describe.each([
  ['sqlite', installSqlite],
  ['postgres', installPostgres],
] as const)('the %s store', (kind, install) => {
  async function createStore() {
    const { setting, run } = await install();
    const store = await openStore(setting, { exclusive: true });
    onTestFinished(() => store.close());
    await store.createAccount('default', NO_LIMITS, Date.now());
    return { store, run };
  }

  test('ends a pass over thousands of endpoints without due deliveries, and leases the due delivery of the last endpoint', async () => {
    const { store, run } = await createStore();
    const now = Date.now();
    const columns = 'webhook_id, id, type, at, data, status, due_at, created_at';
    const id =
      kind === 'sqlite'
        ? "printf('01900000-0000-7000-8000-%012d', n)"
        : "('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid";
    const numbersQuery = `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${ENDPOINT_COUNT})`;
    const url = "'https://hooks.example.com/'";
    await run(
      `${numbersQuery} INSERT INTO webhook (url, sealed_url, events, sealed, created_at) SELECT ${url}, '', 1, 'unused', 1 FROM s`,
    );
    await run(
      `${numbersQuery} INSERT INTO webhook_delivery (${columns})
       SELECT n, ${id}, 'webhook.test', 1, '{}', 'pending', CASE n WHEN ${ENDPOINT_COUNT} THEN 0 ELSE ${now + 3_600_000} END, 1 FROM s`,
    );
    const steps: { readonly leased: readonly number[]; readonly next: number | null }[] = [];
    for (let cursor: number | null = 0; cursor !== null; ) {
      const claimResult = await store.claimDeliveries({ ...CLAIM_LIMITS, after: cursor }, 'node', now + 1_000, now);
      cursor = claimResult.next;
      steps.push({ leased: claimResult.deliveries.map(({ webhookId }) => webhookId), next: cursor });
    }
    expect(steps).toEqual([
      { leased: [], next: 1_000 },
      { leased: [], next: 2_000 },
      { leased: [], next: 3_000 },
      { leased: [ENDPOINT_COUNT], next: null },
    ]);
  });
});
