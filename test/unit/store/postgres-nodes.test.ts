/** Tests several nodes on one PostgreSQL server. Counts are exact over all nodes, and nodes do not block each other. */
import { createHash } from 'node:crypto';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AccountLimits } from '../../../src/model/account.ts';
import type { FeedbackReport } from '../../../src/model/feedback.ts';
import type { AcceptResult, NewMessage } from '../../../src/model/message.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openStore } from '../../../src/store/open.ts';
import { NO_LIMITS, newIdAt, newMessage, newSettlement } from '../../rig/messages.ts';
import { createTemporaryDatabase } from '../../rig/postgres.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';

const NODES = 3;
const CLAIM_LIMITS = { messages: 100, bytes: 1_000_000 };

interface Installation {
  readonly url: string;
  readonly nodes: readonly Store[];
  readonly first: Store;
}

/** Starts an installation of several nodes that has accounts with these limits. */
async function startInstallation(...accounts: readonly AccountLimits[]): Promise<Installation> {
  const url = await createTemporaryDatabase();
  const nodes = await Promise.all(
    Array.from({ length: NODES }, () => openStore(parsePostgresUrl(url), { exclusive: true })),
  );
  onTestFinished(async () => {
    await Promise.all(nodes.map((node) => node.close()));
  });
  const [first] = nodes;
  if (first === undefined) throw new Error('no node');
  for (const [n, limits] of accounts.entries()) await first.createAccount(`account-${n + 1}`, limits, Date.now());
  return { url, nodes, first };
}

/** Submits batches concurrently to all nodes in turn. Resolves to the results in order. */
async function acceptEverywhere(
  { nodes }: Installation,
  batches: readonly (readonly NewMessage[])[],
): Promise<readonly AcceptResult[]> {
  const answers = await Promise.all(batches.map((batch, n) => nodes[n % NODES]?.accept(batch) ?? []));
  return answers.flat();
}

const kinds = (answers: readonly AcceptResult[], kind: AcceptResult['kind']) =>
  answers.filter((answer) => answer.kind === kind).length;
const leaseOf = (owner: string) => ({ owner, until: Date.now() + 600_000 });

/** Opens a connection that holds the locks of the statement until the test ends. */
async function lockRows(url: string, statement: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('BEGIN');
  await client.query(statement);
  return client;
}

describe('acceptance on several nodes at once', () => {
  test('counts the volume exactly over all nodes, without refused messages', async () => {
    const shared = await startInstallation({ ...NO_LIMITS, volume: 100 }, { ...NO_LIMITS, volume: 37 });
    const batches = Array.from({ length: 24 }, (_, n) =>
      Array.from({ length: 11 }, (_, m) => newMessage({ accountId: 1 + ((n + m) % 2) })),
    );
    const answers = await acceptEverywhere(shared, batches);
    expect(kinds(answers, 'accepted')).toBe(137);
    expect(kinds(answers, 'refused')).toBe(24 * 11 - 137);
    const accounts = await shared.first.listAccounts();
    expect(accounts.map(({ volumeUsed }) => volumeUsed)).toEqual([100, 37]);
    expect(await shared.first.readQueueStatistics()).toMatchObject({ queued: 137 });
  });

  test('accepts exactly the number of messages of the rate limit over all nodes', async () => {
    const shared = await startInstallation({ ...NO_LIMITS, rate: { limit: 50, periodMs: 3_600_000 } });
    const at = Date.now();
    const batches = Array.from({ length: 30 }, (_, n) =>
      Array.from({ length: 5 }, () => newMessage({ acceptedAt: at + (n % 7) })),
    );
    expect(kinds(await acceptEverywhere(shared, batches), 'accepted')).toBe(50);
    const [later] = await shared.first.accept([newMessage({ acceptedAt: at + 3_700_000 })]);
    expect(later?.kind).toBe('accepted');
  });

  test('counts an account without limits exactly and does not lock the account', async () => {
    const shared = await startInstallation(NO_LIMITS);
    await lockRows(shared.url, 'SELECT * FROM account FOR NO KEY UPDATE');
    const batches = Array.from({ length: 12 }, () => [newMessage(), newMessage()]);
    expect(kinds(await acceptEverywhere(shared, batches), 'accepted')).toBe(24);
    expect((await shared.first.listAccounts())[0]?.volumeUsed).toBe(24);
  });

  test('applies a new limit exactly, starting with the first batch that reads the limit', async () => {
    const shared = await startInstallation(NO_LIMITS);
    const limit = shared.first.setAccount('account-1', { rate: { limit: 40, periodMs: 3_600_000 } }, Date.now());
    const batches = () => Array.from({ length: 20 }, () => Array.from({ length: 4 }, () => newMessage()));
    const before = await acceptEverywhere(shared, batches());
    await limit;
    const after = await acceptEverywhere(shared, batches());
    const acceptedAnswers = [...before, ...after].filter(
      (answer) => answer.kind === 'accepted' && answer.limits.rate !== null,
    );
    expect(acceptedAnswers).toHaveLength(40);
  });

  test('accepts one message per idempotency key, even if several nodes receive the key at the same time', async () => {
    const shared = await startInstallation(NO_LIMITS);
    const keyed = (key: string, fingerprint: string) => newMessage({ idempotency: { key, fingerprint } });
    const messages = Array.from({ length: 30 }, (_, n) => [
      // The batches contain two keys in different orders. Without ordered locks they would deadlock.
      keyed(n % 2 === 0 ? 'a' : 'b', 'same'),
      keyed(n % 2 === 0 ? 'b' : 'a', 'same'),
    ]);
    const answers = await acceptEverywhere(shared, messages);
    expect(kinds(answers, 'accepted')).toBe(2);
    expect(kinds(answers, 'replayed')).toBe(58);
    const stored = (
      await shared.first.listMessages({ accountId: null, state: null, to: null, since: null, limit: 10 })
    ).map(({ id }) => id);
    const reportedIds = answers.flatMap((answer) => (answer.kind === 'replayed' ? [answer.id] : []));
    expect(new Set(reportedIds)).toEqual(new Set(stored));
    expect((await shared.first.listAccounts())[0]?.volumeUsed).toBe(2);
    expect(await acceptEverywhere(shared, [[keyed('a', 'other')]])).toEqual([{ kind: 'idempotency-conflict' }]);
  });

  test('if one idempotency key is sent with two payloads at once, one message is accepted and the other conflicts', async () => {
    const shared = await startInstallation(NO_LIMITS);
    const batches = Array.from({ length: 12 }, (_, n) => [
      newMessage({ idempotency: { key: 'k', fingerprint: n % 2 === 0 ? 'x' : 'y' } }),
    ]);
    const answers = await acceptEverywhere(shared, batches);
    expect([kinds(answers, 'accepted'), kinds(answers, 'replayed'), kinds(answers, 'idempotency-conflict')]).toEqual([
      1, 5, 6,
    ]);
  });

  test('a batch submitted again after its answer was lost is neither stored nor counted twice', async () => {
    const { first } = await startInstallation({ ...NO_LIMITS, volume: 100 });
    const batch = [newMessage({ lease: leaseOf('n') }), newMessage(), newMessage({ suppressedBy: 'simulator' })];
    const once = await first.accept(batch);
    // After a batch was rejected, the store looks up ids before it stores messages.
    await expect(first.accept(batch)).rejects.toThrow();
    const again = await first.accept([...batch, newMessage()]);
    expect(again.map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'accepted', 'accepted']);
    expect(again.slice(0, 3)).toMatchObject(
      once.map((answer) => (answer.kind === 'accepted' ? { state: answer.state } : {})),
    );
    expect((await first.listAccounts())[0]?.volumeUsed).toBe(4);
  });
});

describe('claiming on several nodes at once', () => {
  test('every message is leased exactly once', async () => {
    const shared = await startInstallation(NO_LIMITS, NO_LIMITS, NO_LIMITS);
    const messages = Array.from({ length: 900 }, (_, n) => newMessage({ accountId: 1 + (n % 3) }));
    await shared.first.accept(messages);
    const leased: string[] = [];
    await Promise.all(
      shared.nodes.map(async (node, n) => {
        for (;;) {
          const { messages: some, hasMore: more } = await node.claim(
            CLAIM_LIMITS,
            leaseOf(`node-${n}`),
            Date.now() + 1,
          );
          leased.push(...some.map(({ id }) => id));
          if (some.length === 0 && !more) return;
        }
      }),
    );
    expect(leased).toHaveLength(900);
    expect(new Set(leased)).toEqual(new Set(messages.map(({ id }) => id)));
  });

  test('a claim skips rows that another node is leasing and does not wait for them', async () => {
    const { url, first } = await startInstallation(NO_LIMITS);
    const messages = Array.from({ length: 10 }, () => newMessage());
    await first.accept(messages);
    const lockedIds = messages.slice(0, 6).map(({ id }) => id);
    const other = await lockRows(url, `SELECT * FROM queue WHERE id IN ('${lockedIds.join("','")}') FOR UPDATE`);
    const claimed = await first.claim(CLAIM_LIMITS, leaseOf('n'), Date.now() + 1);
    expect(claimed.messages.map(({ id }) => id).sort()).toEqual(
      messages
        .slice(6)
        .map(({ id }) => id)
        .sort(),
    );
    await other.query('ROLLBACK');
    const remaining = await first.claim(CLAIM_LIMITS, leaseOf('n'), Date.now() + 1);
    expect(remaining.messages.map(({ id }) => id).sort()).toEqual(lockedIds.sort());
  });
});

describe('the end of leases on several nodes at once', () => {
  test('overlapping settlements in any order all complete, and each lease ends once', async () => {
    const shared = await startInstallation(NO_LIMITS, NO_LIMITS);
    const lease = leaseOf('n');
    const messages = Array.from({ length: 200 }, (_, n) =>
      newMessage({ accountId: 1 + (n % 2), to: `r${n}@example.com`, lease }),
    );
    await shared.first.accept(messages);
    const settlements = messages.map((message, n) =>
      newSettlement({ ...message, attempts: 1, lease }, n % 5 === 0 ? { to: 'bounced', suppress: 'bounce' } : {}),
    );
    const batches = [
      settlements,
      settlements.toReversed(),
      settlements.toSorted((a, b) => (a.id.slice(-4) < b.id.slice(-4) ? -1 : 1)),
    ];
    const answers = await Promise.all(
      [...batches, ...batches].map((order, n) => shared.nodes[n % NODES]?.settle(order) ?? []),
    );
    expect(answers.flat().filter((answer) => answer === 'settled')).toHaveLength(200);
    expect(await shared.first.readQueueStatistics()).toMatchObject({ queued: 0, sending: 0 });
    const histories = await Promise.all(messages.map(({ id }) => shared.first.findMessage(id)));
    expect(histories.filter((mail) => mail?.events.length === 2)).toHaveLength(200);
    // Every email is counted once over all nodes.
    const reportedIds = await Promise.all(
      ['account-1', 'account-2'].map((name) => shared.first.readReputation(name, Date.now())),
    );
    expect(reportedIds).toMatchObject([
      { value: { emails: 100, bounces: 20 } },
      { value: { emails: 100, bounces: 20 } },
    ]);
  });

  test('leases of a dead node are recovered once, even if several nodes try to recover them', async () => {
    const shared = await startInstallation(NO_LIMITS);
    const messages = Array.from({ length: 300 }, () => newMessage({ lease: leaseOf('dead') }));
    await shared.first.accept(messages);
    const recoveredCounts = await Promise.all(
      shared.nodes.map((node, n) =>
        node.recover({
          now: Date.now(),
          includeAllLeases: false,
          includeDeadNodes: true,
          onUncertain: 'resend',
          node: `node-${n}`,
        }),
      ),
    );
    expect(recoveredCounts.reduce((sum, n) => sum + n, 0)).toBe(300);
    const histories = await Promise.all(messages.slice(0, 50).map(({ id }) => shared.first.findMessage(id)));
    for (const mail of histories) expect(mail?.events.map(({ verb }) => verb)).toEqual(['accepted', 'recovered']);
  });

  test('exactly one of a settlement and a recovery of the same lease succeeds', async () => {
    const shared = await startInstallation(NO_LIMITS);
    const [one, two] = shared.nodes;
    const lease = leaseOf('dead');
    const messages = Array.from({ length: 100 }, () => newMessage({ lease }));
    await shared.first.accept(messages);
    const [answers, recoveredCount] = await Promise.all([
      one?.settle(messages.map((mail) => newSettlement({ ...mail, attempts: 1, lease }))) ?? [],
      two?.recover({
        now: Date.now(),
        includeAllLeases: false,
        includeDeadNodes: true,
        onUncertain: 'resend',
        node: 'judge',
      }) ?? 0,
    ]);
    const settled = answers.filter((answer) => answer === 'settled').length;
    // Each transaction skips the rows of the other transaction or waits for them, so every lease is either settled or
    // recovered.
    expect(settled + recoveredCount).toBe(100);
    expect(await shared.first.readQueueStatistics()).toMatchObject({ queued: recoveredCount, sending: 0 });
  });
});

test('a token bucket grants all nodes together no more tokens than it contains', async () => {
  const { nodes } = await startInstallation(NO_LIMITS, NO_LIMITS);
  const tokenRequest = (accountId: number) => ({ accountId, perSecond: 0.001, burst: 100, requested: 7 });
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, n) =>
      nodes[n % NODES]?.takeTokens(
        n % 2 === 0 ? [tokenRequest(1), tokenRequest(2)] : [tokenRequest(2), tokenRequest(1), tokenRequest(1)],
        Date.now(),
      ),
    ),
  );
  const byAccount = new Map([
    [1, 0],
    [2, 0],
  ]);
  for (const [n, grants] of answers.entries()) {
    const order = n % 2 === 0 ? [1, 2] : [2, 1, 1];
    for (const [index, grant] of (grants ?? []).entries()) {
      const account = order[index] ?? 0;
      byAccount.set(account, (byAccount.get(account) ?? 0) + grant.granted);
    }
  }
  expect([...byAccount.values()]).toEqual([100, 100]);
});

test('ids of the same time created on several nodes are all stored and found in order', async () => {
  const shared = await startInstallation(NO_LIMITS);
  const at = Date.now() - 60_000;
  const ids = Array.from({ length: 60 }, () => newIdAt(at));
  await acceptEverywhere(
    shared,
    ids.map((id) => [newMessage({ id, acceptedAt: at })]),
  );
  const listed = await shared.first.listMessages({ accountId: 1, state: 'queued', to: null, since: at, limit: 100 });
  expect(listed.map(({ id }) => id)).toEqual(ids.toSorted().toReversed());
});

describe('feedback on several nodes at once', () => {
  test('reports about the same recipients do not deadlock in any order on the nodes', async () => {
    const { url, nodes, first } = await startInstallation(NO_LIMITS);
    const recipients = Array.from({ length: 60 }, (_, n) => `r${String(n).padStart(2, '0')}@example.com`);
    // One node has the recipients in the order of its messages, the other in reverse order.
    const batches: FeedbackReport[][] = [];
    for (const order of [recipients, [...recipients].reverse()]) {
      const messages = order.map((to) => newMessage({ to, lease: leaseOf('node') }));
      await first.accept(messages);
      await first.settle(
        messages.map((mail) => newSettlement({ ...mail, attempts: 1, lease: leaseOf('node') }, { to: 'delivered' })),
      );
      batches.push(messages.map(({ id }, n) => complaintAbout(id, `${batches.length} ${n}`)));
    }
    const answers = await Promise.all(batches.map((batch, n) => nodes[n]?.recordFeedback(batch) ?? []));
    expect(answers.flat().map(({ kind }) => kind)).toEqual(answers.flat().map(() => 'applied'));
    const window = await first.readReputation('account-1', Date.now());
    expect(window.kind === 'done' ? window.value.complaints : null).toBe(recipients.length);
    // A server process reports its deadlock count when it ends.
    await Promise.all(nodes.map((node) => node.close()));
    const reader = new pg.Client({ connectionString: url });
    onTestFinished(() => reader.end());
    await reader.connect();
    const { rows } = await reader.query(
      'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
    );
    expect(rows).toEqual([{ deadlocks: 0 }]);
  });
});

function complaintAbout(id: string, name: string): FeedbackReport {
  const evidence = { status: null, diagnostic: null, reportingHost: null };
  return {
    messageRef: { id },
    events: [{ kind: 'complaint', feedbackType: 'abuse', recipient: null, alias: null, evidence }],
    source: 'smtp',
    digest: createHash('sha256').update(name).digest('hex'),
    at: Date.now(),
    summary: 'a complaint',
    raw: new Uint8Array([0]),
    isFinal: false,
  };
}
