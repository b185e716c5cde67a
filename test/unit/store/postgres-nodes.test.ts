import { describe, expect, onTestFinished, test } from 'vitest';
import type { AccountLimits } from '../../../src/model/account.ts';
import type { AcceptResult, NewMessage } from '../../../src/model/message.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openStore } from '../../../src/store/open.ts';
import { createMessage, createSettlement, NO_LIMITS } from '../../rig/messages.ts';
import { createTemporaryDatabase } from '../../rig/postgres.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';

const NODE_COUNT = 3;
const CLAIM_LIMITS = { maxMessages: 100, maxBytes: 1_000_000 };

interface Installation {
  readonly url: string;
  readonly nodes: readonly Store[];
  readonly firstNode: Store;
}

async function startInstallation(...accounts: readonly AccountLimits[]): Promise<Installation> {
  const url = await createTemporaryDatabase();
  const nodes = await Promise.all(
    Array.from({ length: NODE_COUNT }, () => openStore(parsePostgresUrl(url), { exclusive: true })),
  );
  onTestFinished(async () => {
    await Promise.all(nodes.map((node) => node.close()));
  });
  const [firstNode] = nodes;
  if (firstNode === undefined) throw new Error('no node');
  for (const [n, limits] of accounts.entries()) await firstNode.createAccount(`account-${n + 1}`, limits, Date.now());
  return { url, nodes, firstNode };
}

/** Assigns the batches to the nodes in turn and submits them concurrently. Resolves to the results in order. */
async function acceptEverywhere(
  { nodes }: Installation,
  batches: readonly (readonly NewMessage[])[],
): Promise<readonly AcceptResult[]> {
  const answers = await Promise.all(batches.map((batch, results) => nodes[results % NODE_COUNT]?.accept(batch) ?? []));
  return answers.flat();
}

const countKind = (results: readonly AcceptResult[], kind: AcceptResult['kind']) =>
  results.filter((answer) => answer.kind === kind).length;
const createLease = (owner: string) => ({ owner, until: Date.now() + 600_000 });

describe('acceptance on several nodes at once', () => {
  test('counts the exact volume across all nodes, excluding refused messages', async () => {
    const installation = await startInstallation({ ...NO_LIMITS, volume: 100 }, { ...NO_LIMITS, volume: 37 });
    const batches = Array.from({ length: 24 }, (_, index) =>
      Array.from({ length: 11 }, (_, m) => createMessage({ accountId: 1 + ((index + m) % 2) })),
    );
    const results = await acceptEverywhere(installation, batches);
    expect(countKind(results, 'accepted')).toBe(137);
    expect(countKind(results, 'refused')).toBe(24 * 11 - 137);
    const accounts = await installation.firstNode.listAccounts();
    expect(accounts.map(({ volumeUsed }) => volumeUsed)).toEqual([100, 37]);
    expect(await installation.firstNode.readQueueStatistics()).toMatchObject({ queued: 137 });
  });

  test('accepts one message per idempotency key, even if several nodes receive the key at the same time', async () => {
    const installation = await startInstallation(NO_LIMITS);
    const createKeyedMessage = (key: string, fingerprint: string) =>
      createMessage({ idempotency: { key, fingerprint } });
    const messages = Array.from({ length: 30 }, (_, index) => [
      // The batches contain two keys in different orders. Without ordered locks, their transactions would deadlock.
      createKeyedMessage(index % 2 === 0 ? 'a' : 'b', 'same'),
      createKeyedMessage(index % 2 === 0 ? 'b' : 'a', 'same'),
    ]);
    const answers = await acceptEverywhere(installation, messages);
    expect(countKind(answers, 'accepted')).toBe(2);
    expect(countKind(answers, 'replayed')).toBe(58);
    const storedIds = (
      await installation.firstNode.listMessages({ accountId: null, state: null, to: null, since: null, limit: 10 })
    ).map(({ id }) => id);
    const reportedIds = answers.flatMap((answer) => (answer.kind === 'replayed' ? [answer.id] : []));
    expect(new Set(reportedIds)).toEqual(new Set(storedIds));
    expect((await installation.firstNode.listAccounts())[0]?.volumeUsed).toBe(2);
    expect(await acceptEverywhere(installation, [[createKeyedMessage('a', 'other')]])).toEqual([
      { kind: 'idempotency-conflict' },
    ]);
  });

  test('a batch submitted again after its answer was lost is neither stored nor counted twice', async () => {
    const { firstNode } = await startInstallation({ ...NO_LIMITS, volume: 100 });
    const batch = [
      createMessage({ lease: createLease('n') }),
      createMessage(),
      createMessage({ suppressedBy: 'simulator' }),
    ];
    const firstResults = await firstNode.accept(batch);
    // After a batch was rejected, the store looks up ids before it stores messages.
    await expect(firstNode.accept(batch)).rejects.toThrow();
    const repeatedResults = await firstNode.accept([...batch, createMessage()]);
    expect(repeatedResults.map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'accepted', 'accepted']);
    expect(repeatedResults.slice(0, 3)).toMatchObject(
      firstResults.map((answer) => (answer.kind === 'accepted' ? { state: answer.state } : {})),
    );
    expect((await firstNode.listAccounts())[0]?.volumeUsed).toBe(4);
  });
});

describe('claiming on several nodes at once', () => {
  test('every message is leased exactly once', async () => {
    const installation = await startInstallation(NO_LIMITS, NO_LIMITS, NO_LIMITS);
    const messages = Array.from({ length: 900 }, (_, index) => createMessage({ accountId: 1 + (index % 3) }));
    await installation.firstNode.accept(messages);
    const leasedIds: string[] = [];
    await Promise.all(
      installation.nodes.map(async (node, n) => {
        for (;;) {
          const { messages: claimedMessages, hasMore: more } = await node.claim(
            CLAIM_LIMITS,
            createLease(`node-${n}`),
            Date.now() + 1,
          );
          leasedIds.push(...claimedMessages.map(({ id }) => id));
          if (claimedMessages.length === 0 && !more) return;
        }
      }),
    );
    expect(leasedIds).toHaveLength(900);
    expect(new Set(leasedIds)).toEqual(new Set(messages.map(({ id }) => id)));
  });
});

describe('the end of leases on several nodes at once', () => {
  test('overlapping settlements in different orders all complete, and exactly one of them ends each lease', async () => {
    const installation = await startInstallation(NO_LIMITS, NO_LIMITS);
    const lease = createLease('n');
    const messages = Array.from({ length: 200 }, (_, index) =>
      createMessage({ accountId: 1 + (index % 2), to: `r${index}@example.com`, lease }),
    );
    await installation.firstNode.accept(messages);
    const settlements = messages.map((message, n) =>
      createSettlement({ ...message, attempts: 1, lease }, n % 5 === 0 ? { to: 'bounced', suppress: 'bounce' } : {}),
    );
    const batches = [
      settlements,
      settlements.toReversed(),
      settlements.toSorted((a, b) => (a.id.slice(-4) < b.id.slice(-4) ? -1 : 1)),
    ];
    const answers = await Promise.all(
      [...batches, ...batches].map((batch, n) => installation.nodes[n % NODE_COUNT]?.settle(batch) ?? []),
    );
    expect(answers.flat().filter((answer) => answer === 'settled')).toHaveLength(200);
    expect(await installation.firstNode.readQueueStatistics()).toMatchObject({ queued: 0, sending: 0 });
    const histories = await Promise.all(messages.map(({ id }) => installation.firstNode.findMessage(id)));
    expect(histories.filter((history) => history?.events.length === 2)).toHaveLength(200);
    // Every message is counted once across all nodes.
    const reputations = await Promise.all(
      ['account-1', 'account-2'].map((name) => installation.firstNode.readReputation(name, Date.now())),
    );
    expect(reputations).toMatchObject([
      { value: { emails: 100, bounces: 20 } },
      { value: { emails: 100, bounces: 20 } },
    ]);
  });

  test('exactly one of a settlement and a recovery of the same lease succeeds', async () => {
    const installation = await startInstallation(NO_LIMITS);
    const [firstNode, secondNode] = installation.nodes;
    const lease = createLease('dead');
    const messages = Array.from({ length: 100 }, () => createMessage({ lease }));
    await installation.firstNode.accept(messages);
    const [answers, recoveredCount] = await Promise.all([
      firstNode?.settle(messages.map((message) => createSettlement({ ...message, attempts: 1, lease }))) ?? [],
      secondNode?.recover({
        now: Date.now(),
        includeAllLeases: false,
        includeDeadNodes: true,
        onUncertain: 'resend',
        node: 'judge',
      }) ?? 0,
    ]);
    const settledCount = answers.filter((answer) => answer === 'settled').length;
    // Each transaction skips the rows of the other transaction or waits for them, so every lease is either settled or
    // recovered.
    expect(settledCount + recoveredCount).toBe(100);
    expect(await installation.firstNode.readQueueStatistics()).toMatchObject({ queued: recoveredCount, sending: 0 });
  });
});

test('a token bucket grants all nodes together no more tokens than it contains', async () => {
  const { nodes } = await startInstallation(NO_LIMITS, NO_LIMITS);
  const createTokenRequest = (accountId: number) => ({ accountId, perSecond: 0.001, burst: 100, requested: 7 });
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      nodes[index % NODE_COUNT]?.takeTokens(
        index % 2 === 0
          ? [createTokenRequest(1), createTokenRequest(2)]
          : [createTokenRequest(2), createTokenRequest(1), createTokenRequest(1)],
        Date.now(),
      ),
    ),
  );
  const grantedByAccount = new Map([
    [1, 0],
    [2, 0],
  ]);
  for (const [n, grants] of answers.entries()) {
    const order = n % 2 === 0 ? [1, 2] : [2, 1, 1];
    for (const [index, grant] of (grants ?? []).entries()) {
      const account = order[index] ?? 0;
      grantedByAccount.set(account, (grantedByAccount.get(account) ?? 0) + grant.granted);
    }
  }
  expect([...grantedByAccount.values()]).toEqual([100, 100]);
});
