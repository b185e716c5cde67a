import { expect, onTestFinished, test } from 'vitest';
import { type State, TERMINAL_STATES } from '../../src/model/message.ts';
import { MAX_UNRECORDED_LEASE_ENDS } from '../../src/queue/dispatcher.ts';
import { LIVENESS_TIMEOUT_MS } from '../../src/queue/membership.ts';
import { type CountingSink, startCountingSink } from '../rig/counting-sink.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { comparePostgresEvents, createDisabledWebhook } from '../rig/outbox.ts';
import { type PostgresServer, startPostgres } from '../rig/postgres.ts';
import { IS_LONG_RUN, selectCaseCount } from '../rig/sample.ts';
import { runJsonCommand, type ServiceProcess, startProcess, submit } from '../rig/service.ts';
import { parsePostgresUrl } from '../rig/stores.ts';
import { startTcpProxy, type TcpProxy } from '../rig/tcp-proxy.ts';

const NODE_COUNT = selectCaseCount(2, 3);
const SENDER_COUNT = 12;
const LOAD_COUNT = selectCaseCount(50, 150);
const CONNECTION_COUNT = 4;
const MAX_IN_FLIGHT_COUNT = CONNECTION_COUNT + MAX_UNRECORDED_LEASE_ENDS;
const SECRET = 'ab'.repeat(32);

interface Installation {
  readonly server: PostgresServer;
  readonly proxies: readonly TcpProxy[];
  readonly sink: CountingSink;
  readonly nodes: (ServiceProcess | null)[];
  readonly key: string;
  readonly acknowledgedIds: Set<string>;
  start(index: number): Promise<ServiceProcess>;
  /** Resolves after `count` further acknowledgements. */
  waitForAcknowledgements(count: number): Promise<void>;
  /** Ends the load, waits until every message answered with 201 has ended, and returns the number of duplicates. */
  waitUntilSettled(): Promise<number>;
}

async function startInstallation(): Promise<Installation> {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const sink = await startCountingSink();
  const proxies = await Promise.all(Array.from({ length: NODE_COUNT }, () => startTcpProxy(server.port)));
  const nodes: (ServiceProcess | null)[] = Array.from({ length: NODE_COUNT }, () => null);
  const folder = createTemporaryFolder();
  const createNodeSettings = (index: number) => {
    const nodeUrl = new URL(url);
    nodeUrl.port = String(proxies[index]?.port);
    return {
      POSTRIDER_DATABASE: nodeUrl.href,
      POSTRIDER_SECRET: SECRET,
      POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sink.port}?connections=${CONNECTION_COUNT}`,
      POSTRIDER_SENDERS: 'any',
    };
  };
  const start = async (index: number) => {
    const node = await startProcess(createTemporaryFolder(), createNodeSettings(index));
    nodes[index] = node;
    return node;
  };
  const key = (await start(0)).key ?? '';
  await createDisabledWebhook(parsePostgresUrl(url));
  for (let index = 1; index < NODE_COUNT; index += 1) await start(index);
  const acknowledgedIds = new Set<string>();
  let hasEnded = false;
  const sendRepeatedly = async (senderIndex: number) => {
    for (let requestIndex = senderIndex; !hasEnded; requestIndex += 1) {
      const node = nodes[requestIndex % NODE_COUNT];
      if (node === null || node === undefined) {
        await new Promise((resolve) => setImmediate(resolve));
        continue;
      }
      const answer = await submit(node.publicUrl, key, {}, {}, AbortSignal.timeout(2_000)).catch(() => null);
      if (answer?.status !== 201) {
        // A request that fails immediately is repeated only after a delay, to save processor time.
        await new Promise((resolve) => setTimeout(resolve, 20));
        continue;
      }
      const body = (await answer.json().catch(() => null)) as { result: { id: string } } | null;
      if (body !== null) acknowledgedIds.add(body.result.id);
    }
  };
  const senders = Array.from({ length: SENDER_COUNT }, (_, senderIndex) => sendRepeatedly(senderIndex));
  const end = async () => {
    hasEnded = true;
    await Promise.all(senders);
  };
  onTestFinished(end);
  return {
    server,
    proxies,
    sink,
    nodes,
    key,
    acknowledgedIds,
    start,
    async waitForAcknowledgements(count) {
      const targetCount = acknowledgedIds.size + count;
      await expect.poll(() => acknowledgedIds.size, { interval: 10 }).toBeGreaterThan(targetCount);
    },
    async waitUntilSettled() {
      await end();
      const directSettings = { POSTRIDER_DATABASE: url, POSTRIDER_SECRET: SECRET };
      const listStates = () =>
        runJsonCommand<{ id: string; state: State }[]>(
          folder,
          ['message', 'list', '--limit', '100000'],
          directSettings,
        );
      // One query reads all messages, because several queries could miss a message that is recovered between the
      // queries.
      const countOpenMessages = async () =>
        (await listStates()).filter(({ state }) => !TERMINAL_STATES.has(state)).length;
      await expect.poll(countOpenMessages, { timeout: 120_000, interval: 500 }).toBe(0);
      const storedStates = new Map((await listStates()).map(({ id, state }) => [id, state]));
      expect(
        [...acknowledgedIds].flatMap((id) =>
          storedStates.get(id) === 'delivered' ? [] : [[id, storedStates.get(id)]],
        ),
      ).toEqual([]);
      expect([...acknowledgedIds].filter((id) => !sink.acceptCounts.has(id))).toEqual([]);
      expect([...sink.acceptCounts.keys()].filter((id) => storedStates.get(id) !== 'delivered')).toEqual([]);
      const { entryCount, differences } = await comparePostgresEvents(url);
      expect(differences).toEqual([]);
      expect(entryCount).toBeGreaterThanOrEqual(2 * acknowledgedIds.size);
      return [...sink.acceptCounts.values()].reduce((sum, times) => sum + times - 1, 0);
    },
  };
}

test('after kills of nodes, network failures, terminated connections and a restart of the server, the nodes continue without intervention, and every message answered with 201 is delivered', async () => {
  const { server, proxies, nodes, waitForAcknowledgements, start, waitUntilSettled } = await startInstallation();
  for (let index = 0; index < NODE_COUNT; index += 1) {
    await waitForAcknowledgements(LOAD_COUNT);
    nodes[index]?.kill('SIGKILL');
    await nodes[index]?.exitPromise;
    nodes[index] = null;
    // The other nodes recover the leases of the killed node.
    await waitForAcknowledgements(LOAD_COUNT);
    if (index < NODE_COUNT - 1) await start(index);
  }
  proxies[0]?.pause();
  if (NODE_COUNT > 2) await waitForAcknowledgements(LOAD_COUNT);
  proxies[0]?.resume();
  for (let round = 0; round < 3; round += 1) {
    await server.terminateBackends();
    await waitForAcknowledgements(20);
  }
  await server.restart();
  await waitForAcknowledgements(LOAD_COUNT);
  // Each node was killed once, and the remaining nodes were disconnected.
  expect(await waitUntilSettled()).toBeLessThanOrEqual(2 * NODE_COUNT * MAX_IN_FLIGHT_COUNT);
  for (const node of nodes) expect(node?.child.exitCode ?? null).toBeNull();
}, 180_000);

// By default test/unit/queue/membership.test.ts checks that a lease is invalid without heartbeats.
if (IS_LONG_RUN)
  test('a node that was suspended for longer than the liveness timeout starts no attempt with a lease from before the suspension', async () => {
    const { nodes, key, waitForAcknowledgements, waitUntilSettled } = await startInstallation();
    await waitForAcknowledgements(LOAD_COUNT);
    const suspendedNode = nodes[1];
    if (suspendedNode === null || suspendedNode === undefined) throw new Error('no node');
    suspendedNode.kill('SIGSTOP');
    nodes[1] = null;
    onTestFinished(() => suspendedNode.kill('SIGCONT'));
    const suspendedAt = performance.now();
    await waitForAcknowledgements(LOAD_COUNT);
    // While the node is suspended, the other nodes recover and send all messages that it had leased.
    const duplicateCountBefore = await waitUntilSettled();
    expect(duplicateCountBefore).toBeLessThanOrEqual(MAX_IN_FLIGHT_COUNT);
    await expect.poll(() => performance.now() - suspendedAt).toBeGreaterThan(LIVENESS_TIMEOUT_MS);
    suspendedNode.kill('SIGCONT');
    const submitOnce = async () => (await submit(suspendedNode.publicUrl, key)).status;
    await expect.poll(submitOnce).toBe(201);
    for (let n = 0; n < 20; n += 1) await submit(suspendedNode.publicUrl, key);
    // The node completes the transmissions in progress and sends no other message that it had leased.
    expect((await waitUntilSettled()) - duplicateCountBefore).toBeLessThanOrEqual(CONNECTION_COUNT);
  }, 180_000);
