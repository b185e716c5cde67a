import { createHash } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { MESSAGE_EVENT_TYPES } from '../../src/model/webhook.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createTemporaryDatabase } from '../rig/postgres.ts';
import { createSeededRandom } from '../rig/random.ts';
import { IS_LONG_RUN, selectCaseCount } from '../rig/sample.ts';
import { runJsonCommand, type ServiceProcess, startProcess, submit } from '../rig/service.ts';
import { startWebhookReceiver } from '../rig/webhook-receiver.ts';

const MESSAGE_COUNT = selectCaseCount(100, 5_000);
const KILL_COUNT = selectCaseCount(2, 12);
const RECIPIENTS = ['success', 'bounce', 'defer', 'complaint', 'suppressed'];
const LISTED_TYPES: ReadonlySet<string> = new Set(MESSAGE_EVENT_TYPES);
const ENDED_STATES = ['delivered', 'bounced', 'complained', 'suppressed', 'expired'];

interface ShownMessage {
  readonly id: string;
  readonly state: string;
  readonly events: readonly { readonly sequence: number; readonly type: string }[];
}

interface Payload {
  readonly type: string;
  readonly data: { readonly id: string; readonly sequence: number };
}

const STORES = [{ store: 'SQLite', nodeCount: 1 }, ...(IS_LONG_RUN ? [{ store: 'PostgreSQL', nodeCount: 2 }] : [])];

test.each(STORES)(
  'each history entry is received exactly once, with $nodeCount nodes on $store that are killed',
  { timeout: 1_800_000 },
  async ({ store, nodeCount }) => {
    const random = createSeededRandom(17);
    const folder = createTemporaryFolder();
    const receiver = await startWebhookReceiver();
    onTestFinished(() => receiver.close());
    receiver.chooseBehavior = () => {
      const draw = random();
      return draw < 0.1 ? 'reset' : draw < 0.2 ? { status: 503 } : { status: 204 };
    };
    const settings: Record<string, string> = {
      POSTRIDER_WEBHOOK_TARGETS: 'any',
      POSTRIDER_MAX_AGE: '5s',
      ...(store === 'PostgreSQL'
        ? { POSTRIDER_DATABASE: await createTemporaryDatabase(), POSTRIDER_SECRET: 'ef'.repeat(32) }
        : {}),
    };
    const runJson = <T>(...args: readonly string[]) => runJsonCommand<T>(folder, args, settings);
    const nodes: ServiceProcess[] = [await startProcess(folder, settings)];
    const key = nodes[0]?.key ?? '';
    await runJson('account', 'set', 'default', '--max-bounces', '100%', '--max-complaints', '100%');
    const { secret } = await runJson<{ secret: string }>('webhook', 'create', receiver.url, '--events', 'all');
    while (nodes.length < nodeCount) nodes.push(await startProcess(folder, settings));

    const killAt = new Set(Array.from({ length: KILL_COUNT }, () => Math.floor(random() * MESSAGE_COUNT)));
    for (let index = 0; index < MESSAGE_COUNT; index += 1) {
      if (killAt.has(index)) {
        const victim = Math.floor(random() * nodeCount);
        nodes[victim]?.kill('SIGKILL');
        await nodes[victim]?.exitPromise;
        nodes[victim] = await startProcess(folder, settings);
      }
      const to = `${RECIPIENTS[index % RECIPIENTS.length]}+${index}@simulator.postrider.test`;
      const post = async () => {
        const { publicUrl } = nodes[index % nodeCount] ?? { publicUrl: '' };
        return (await submit(publicUrl, key, { to }, { 'Idempotency-Key': `message-${index}` })).status;
      };
      await expect.poll(post, { interval: 20 }).toBe(201);
    }

    const listMessages = () => runJson<{ id: string; state: string }[]>('message', 'list', '--limit', '10000');
    await expect
      .poll(async () => (await listMessages()).filter(({ state }) => ENDED_STATES.includes(state)).length)
      .toBe(MESSAGE_COUNT);
    const shownMessages: ShownMessage[] = [];
    for (const { id } of await listMessages()) shownMessages.push(await runJson<ShownMessage>('message', 'show', id));
    const expectedEvents = shownMessages.flatMap(({ id, events }) =>
      events
        .filter(({ type }) => LISTED_TYPES.has(`message.${type}`))
        .map(({ sequence, type }) => `${id} ${sequence} message.${type}`),
    );
    const listReceived = () => {
      const payloads = new Map(
        receiver.receivedWebhooks.map(({ headers, body }) => [headers['webhook-id'] ?? '', body]),
      );
      return [...payloads.values()]
        .map((body) => JSON.parse(body) as Payload)
        .filter(({ type }) => type.startsWith('message.'))
        .map(({ type, data }) => `${data.id} ${data.sequence} ${type}`);
    };
    await expect
      .poll(
        async () => {
          // A failed delivery is retried after five seconds or more; an operator replays it at once.
          await runJson('webhook', 'replay', 'wh_1', '--since', '1h');
          return expectedEvents.filter((event) => !listReceived().includes(event));
        },
        { interval: 500, timeout: 600_000 },
      )
      .toEqual([]);
    expect(listReceived().toSorted()).toEqual(expectedEvents.toSorted());

    const webhook = new Webhook(secret);
    const digests = new Map<string, string>();
    for (const { headers, body } of receiver.receivedWebhooks) {
      webhook.verify(body, { ...headers });
      const id = headers['webhook-id'] ?? '';
      const digest = createHash('sha256').update(body).digest('hex');
      expect(digests.get(id) ?? digest).toBe(digest);
      digests.set(id, digest);
    }
  },
);
