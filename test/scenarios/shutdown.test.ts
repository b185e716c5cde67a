import { request } from 'node:http';
import { expect, test } from 'vitest';
import { runJsonCommand } from '../rig/service.ts';
import { createScenario, readMessageId } from './running-service.ts';

const rig = createScenario();
const SENDER_COUNT = 40;

interface RequestOutcome {
  /** `refused`: no byte of a response arrived; `truncated`: only a part of the response arrived. */
  readonly kind: 'answered' | 'refused' | 'truncated';
  readonly status: number;
  readonly text: string;
}

/** Sends one request over a new connection, because the service may close an idle connection. */
function sendRequest(url: string, key: string): Promise<RequestOutcome> {
  return new Promise((resolve) => {
    const headers = { Authorization: key, 'Content-Type': 'application/json' };
    const outgoingRequest = request(
      `${url}/api/v1/send-mail`,
      { method: 'POST', agent: false, headers },
      (incoming) => {
        let text = '';
        const status = incoming.statusCode ?? 0;
        incoming.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        incoming.on('close', () => resolve({ kind: incoming.complete ? 'answered' : 'truncated', status, text }));
      },
    );
    outgoingRequest.on('error', () => resolve({ kind: 'refused', status: 0, text: '' }));
    outgoingRequest.end(
      JSON.stringify({ to: 'rita@example.com', from: 'shop@example.org', subject: 's', message: 'm' }),
    );
  });
}

test('requests in progress at a stop get a complete response, and every message with a 201 response is stored', async () => {
  const folder = rig.createFolder();
  const service = await rig.serve(folder);
  const outcomes: RequestOutcome[] = [];
  let isStopped = false;
  const submitRepeatedly = async () => {
    while (!isStopped) {
      const outcome = await sendRequest(service.publicUrl, service.key);
      outcomes.push(outcome);
      if (outcome.kind === 'refused') return;
    }
  };
  const senders = Array.from({ length: SENDER_COUNT }, submitRepeatedly);
  await expect.poll(() => outcomes.length, { interval: 5 }).toBeGreaterThan(200);
  const stopPromise = service.stop();
  await Promise.all(senders);
  isStopped = true;
  await stopPromise;

  expect(outcomes.filter(({ kind }) => kind === 'truncated')).toEqual([]);
  const answeredOutcomes = outcomes.filter(({ kind }) => kind === 'answered');
  expect(answeredOutcomes.filter(({ status }) => ![201, 429, 500, 503].includes(status))).toEqual([]);
  const ids = answeredOutcomes.filter(({ status }) => status === 201).map(({ text }) => readMessageId(text));
  expect(new Set(ids).size).toBe(ids.length);
  const storedMessages = await runJsonCommand<{ id: string; state: string }[]>(folder, [
    'message',
    'list',
    '--limit',
    '100000',
  ]);
  const storedIds = new Set(storedMessages.map((message) => message.id));
  expect(ids.filter((id) => !storedIds.has(id))).toEqual([]);
  expect(storedMessages.filter(({ state }) => state === 'sending')).toEqual([]);
});
