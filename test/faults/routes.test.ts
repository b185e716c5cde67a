import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type StoredMessage, TERMINAL_STATES } from '../../src/model/message.ts';
import { openStore } from '../../src/store/open.ts';
import { type SinkReply, startCountingSink } from '../rig/counting-sink.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createSeededRandom } from '../rig/random.ts';
import { selectCaseCount } from '../rig/sample.ts';
import { runJsonCommand, startProcess, submit } from '../rig/service.ts';
import { CREDENTIALS, createErrorAnswer, type SesBehavior, startSesFake } from '../rig/ses-fake.ts';

const ROUND_COUNT = selectCaseCount(2, 30);
const ROUND_MS = selectCaseCount(2_500, 10_000);
const CHANGE_MS = 400;
const SENDER_COUNT = 6;

/** What a relay replies to each command; every other command as usual. */
const RELAY_MODES: Readonly<Record<string, Readonly<Record<string, SinkReply>>>> = {
  fine: {},
  refused: { '': 'drop' },
  frozen: { '': 'silence', EHLO: 'silence', MAIL: 'silence' },
  closing: { '': '421 4.3.2 going down' },
  throttled: { MAIL: '450 4.7.1 sending too fast, rate limit exceeded' },
  'message refused for now': { RCPT: '451 4.3.0 try again later' },
  'message refused': { '.': '554 5.6.0 message content rejected' },
  'sender refused': { MAIL: '553 5.7.1 the sender domain is not verified' },
  'lost after the dot': { '.': 'drop' },
};
const SES_MODES: Readonly<Record<string, SesBehavior>> = {
  fine: 'accept',
  lost: 'disconnect',
  paused: createErrorAnswer(400, 'SendingPausedException', 'Email sending is disabled.'),
  throttled: createErrorAnswer(429, 'TooManyRequestsException', 'Maximum sending rate exceeded.'),
  'sender refused': createErrorAnswer(400, 'MessageRejected', 'Email address is not verified.'),
  'message refused': createErrorAnswer(400, 'BadRequestException', 'Illegal address'),
  failing: createErrorAnswer(500, 'InternalFailure', 'try later'),
};

const isHandedOverWithoutRecord = ({ verb, attempt }: StoredMessage['events'][number]) =>
  verb === 'recovered' || attempt?.outcome.kind === 'unanswered';

test('with relays and Amazon SES that fail in every way, and kills of the node, no acknowledged message is missing, each ends, and none is handed over twice without a reason', {
  timeout: 1_800_000,
}, async () => {
  const random = createSeededRandom(4);
  const pick = <T>(values: Readonly<Record<string, T>>): T =>
    Object.values(values)[Math.floor(random() * Object.keys(values).length)] as T;
  const fine = RELAY_MODES.fine ?? {};
  let modes = [fine, fine];
  const sinks = await Promise.all(
    [0, 1].map((index) => startCountingSink({ respond: (verb) => modes[index]?.[verb] ?? null })),
  );
  const ses = await startSesFake();
  onTestFinished(() => ses.close());
  const folder = createTemporaryFolder();
  const settings = {
    ...CREDENTIALS,
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinks[0]?.port}?connections=4`,
    POSTRIDER_ROUTE_BACKUP: `smtp://127.0.0.1:${sinks[1]?.port}?connections=4`,
    POSTRIDER_ROUTE_SES: `ses://eu-west-1?endpoint=${ses.endpoint}`,
    POSTRIDER_SENDERS: 'any',
  };
  await runJsonCommand(folder, ['account', 'create', 'shop'], settings);
  const { key } = await runJsonCommand<{ key: string }>(folder, ['key', 'create', 'shop'], settings);
  await runJsonCommand(folder, ['routing', 'set', 'default:2,backup:1,ses'], settings);
  const acknowledgedIds: string[] = [];

  async function sendUntil(deadline: number, publicUrl: string): Promise<void> {
    for (let n = 0; Date.now() < deadline; n += 1) {
      const from = `shop@s${n % 40}.example`;
      const answer = await submit(publicUrl, key, { from }).catch(() => null);
      if (answer?.status !== 201) continue;
      const body = (await answer.json().catch(() => null)) as { result: { id: string } } | null;
      if (body !== null) acknowledgedIds.push(body.result.id);
    }
  }

  for (let round = 0; round < ROUND_COUNT; round += 1) {
    const service = await startProcess(folder, settings);
    const change = setInterval(() => {
      modes = [pick(RELAY_MODES), random() < 0.5 ? fine : pick(RELAY_MODES)];
      const behavior = random() < 0.4 ? 'accept' : pick(SES_MODES);
      ses.send = () => behavior;
    }, CHANGE_MS);
    const deadline = Date.now() + ROUND_MS;
    await Promise.all(Array.from({ length: SENDER_COUNT }, () => sendUntil(deadline, service.publicUrl)));
    service.kill('SIGKILL');
    clearInterval(change);
    await service.exitPromise;
  }
  modes = [fine, fine];
  ses.send = () => 'accept';
  expect(acknowledgedIds.length).toBeGreaterThan(20);

  await startProcess(folder, settings);
  const store = await openStore({ kind: 'sqlite', path: join(folder, 'data/postrider.db') }, { exclusive: false });
  onTestFinished(() => store.close());
  // What waits for its retry schedule is due now.
  await runJsonCommand(folder, ['message', 'change', 'retry', '--state', 'queued'], settings);
  const countUnended = async () => {
    const { queued, sending } = await store.readQueueStatistics();
    return queued + sending;
  };
  await expect.poll(countUnended, { interval: 200 }).toBe(0);

  const sesCounts = new Map<string, number>();
  for (const { data } of ses.receivedMessages) {
    const id = /^Message-ID: <([^@>]+)@/im.exec(data.toString('latin1'))?.[1] ?? '';
    sesCounts.set(id, (sesCounts.get(id) ?? 0) + 1);
  }
  const faults: string[] = [];
  for (const id of acknowledgedIds) {
    const message = await store.findMessage(id);
    if (message === null || !TERMINAL_STATES.has(message.state)) {
      faults.push(`${id} is ${message?.state ?? 'missing'}`);
      continue;
    }
    const counts = [...sinks.map(({ acceptCounts }) => acceptCounts.get(id) ?? 0), sesCounts.get(id) ?? 0];
    const handovers = counts.reduce((sum, count) => sum + count, 0);
    const allowed = 1 + message.events.filter(isHandedOverWithoutRecord).length;
    if (message.state === 'delivered' && handovers === 0) faults.push(`${id} is delivered, and no next hop has it`);
    if (handovers > allowed) faults.push(`${id} was handed over ${handovers} times`);
  }
  expect(faults).toEqual([]);
});
