import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { loadSettings } from '../../src/config/load.ts';
import { startService } from '../../src/main.ts';
import { openStore } from '../../src/store/open.ts';
import type { OutgoingMessage } from '../../src/transports/transport.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createAttempt } from '../rig/messages.ts';
import { createTemporaryDatabase, runStatement } from '../rig/postgres.ts';
import { submitAccepted } from '../rig/service.ts';

const DAY_MS = 86_400_000;
const MESSAGE_COUNT = 20;

interface AdjustableClock {
  readonly database: string;
  readonly now: () => number;
  setAhead(ms: number): Promise<void>;
}

async function openMachineClock(): Promise<AdjustableClock> {
  let aheadMs = 0;
  return {
    database: `sqlite:${join(createTemporaryFolder(), 'postrider.db')}`,
    now: () => Date.now() + aheadMs,
    async setAhead(ms) {
      aheadMs += ms;
    },
  };
}

async function openServerClock(): Promise<AdjustableClock> {
  const database = await createTemporaryDatabase();
  const name = new URL(database).pathname.slice(1);
  await runStatement(
    database,
    `CREATE SCHEMA held; CREATE TABLE held.step (ms bigint NOT NULL); INSERT INTO held.step VALUES (0);
     CREATE SCHEMA stepped;
     CREATE FUNCTION stepped.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
       AS $$ SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM held.step) * interval '1 ms' $$;
     ALTER DATABASE ${name} SET search_path = stepped, pg_catalog, public`,
  );
  return {
    database,
    now: Date.now,
    setAhead: (ms) => runStatement(database, `UPDATE held.step SET ms = ms + ${ms}`),
  };
}

const CLOCKS = [
  { name: 'the clock of the machine', open: openMachineClock },
  { name: 'the clock of the PostgreSQL server', open: openServerClock },
];

describe.each(CLOCKS)('$name', ({ open }) => {
  test('can be set days ahead while the service runs, and every message is still retried and delivered', async () => {
    const adjustableClock = await open();
    const settings = loadSettings(
      {
        POSTRIDER_DATABASE: adjustableClock.database,
        POSTRIDER_SECRET: '1'.repeat(64),
        POSTRIDER_SENDERS: 'any',
        POSTRIDER_LISTEN: '127.0.0.1:0',
        POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
        POSTRIDER_LOG: 'silent',
      },
      null,
    );
    const attempts = new Map<string, number>();
    let isRefusing = true;
    const attempt = async ({ id }: OutgoingMessage) => {
      attempts.set(id, (attempts.get(id) ?? 0) + 1);
      if (!isRefusing) return createAttempt();
      const reply = { stage: 'rcpt', code: 451, enhanced: '4.7.1', text: 'greylisted' } as const;
      return createAttempt({ kind: 'deferred', reply, reason: 'unknown', scope: 'message' });
    };
    const service = await startService(settings, {
      clock: { ...systemClock, now: adjustableClock.now },
      drainMs: 1_000,
      wrapTransport: (transport) => ({ ...transport, attempt }),
    });
    onTestFinished(() => service.stop());
    const observer = await openStore(settings.database, { exclusive: false });
    onTestFinished(() => observer.close());
    const readStates = async () => {
      const listedMessages = await observer.listMessages({
        accountId: null,
        state: null,
        to: null,
        since: null,
        limit: 99,
      });
      return [...new Set(listedMessages.map(({ state }) => state))].sort();
    };
    const ids: string[] = [];
    for (let n = 0; n < MESSAGE_COUNT; n += 1) {
      ids.push(await submitAccepted(service.publicUrl ?? '', service.firstKey ?? '', { to: `r${n}@example.com` }));
    }
    const hasAttempts = (attemptCount: number) => ids.every((id) => (attempts.get(id) ?? 0) >= attemptCount);
    await expect.poll(() => hasAttempts(1)).toBe(true);
    for (const expectedCount of [2, 3]) {
      // The messages are due immediately at the new time. They are refused again and deferred.
      await adjustableClock.setAhead(2 * DAY_MS);
      await expect.poll(() => hasAttempts(expectedCount)).toBe(true);
      await expect.poll(readStates).toEqual(['queued']);
    }
    isRefusing = false;
    await adjustableClock.setAhead(2 * DAY_MS);
    await expect.poll(readStates).toEqual(['delivered']);
  });
});
