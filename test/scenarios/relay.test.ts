/** Tests deliveries to a real SMTP server as the relay. The replies of this server determine the states of messages. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { listenOnFreePort } from '../rig/free-port.ts';
import { runJsonCommand, submitAccepted } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, type RunningService } from './running-service.ts';

const rig = createScenario();

interface ShownMessage {
  readonly state: string;
  readonly due: string | null;
  readonly attempts: { outcome: string; code: number | null; enhancedCode: string | null; transcript: string[] }[];
}

let folder = '';
let service: RunningService;
let server: RealSmtpServer;
let store: Store;
/** Between the service and the relay. While `isDown` is true, the proxy closes every connection immediately. */
const proxy = { isDown: false, connectionCount: 0, sockets: new Set<Socket>() };
let proxyServer: Server;
/** The local parts of recipients that the relay defers. */
const deferredLocalParts = new Set<string>();

beforeAll(async () => {
  server = await startSmtpServer({
    onRcptTo({ address }, _session, callback) {
      const [localPart = ''] = address.split('@');
      if (localPart === 'gone') callback(Object.assign(new Error('5.1.1 no such user here'), { responseCode: 550 }));
      else if (deferredLocalParts.has(localPart))
        callback(Object.assign(new Error('4.3.2 come back later'), { responseCode: 451 }));
      else callback();
    },
  });
  proxyServer = createServer((socket) => {
    proxy.connectionCount += 1;
    socket.on('error', () => undefined);
    if (proxy.isDown) return void socket.destroy();
    proxy.sockets.add(socket);
    const relaySocket = connect(server.port, '127.0.0.1');
    relaySocket.on('error', () => socket.destroy());
    socket.on('close', () => relaySocket.destroy());
    socket.pipe(relaySocket).pipe(socket);
  });
  const proxyPort = await listenOnFreePort(proxyServer);
  folder = rig.createFolder();
  service = await rig.serve(folder, {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${proxyPort}?connections=3`,
    POSTRIDER_SENDERS: 'any',
  });
  store = await rig.openStore(folder);
});
afterAll(async () => {
  // The service stops first, because the servers wait until the service has closed its pooled connections.
  await service.stop();
  await Promise.all([server.close(), new Promise((resolve) => proxyServer.close(resolve))]);
});

const submitTo = (to: string) => submitAccepted(service.publicUrl, service.key, { to });
const showMessage = (id: string) => runJsonCommand<ShownMessage>(folder, ['message', 'show', id]);
const waitForState = (id: string, state: string) =>
  expect.poll(async () => (await store.findMessage(id))?.state).toBe(state);
const explainMessage = async (id: string) =>
  (await runJsonCommand<{ explanation: string[] }>(folder, ['message', 'explain', id])).explanation.join(' ');

test('a hard bounce suppresses the bounced recipient and no other recipient', async () => {
  const bouncedId = await submitTo('gone@example.com');
  await waitForState(bouncedId, 'bounced');
  const { attempts } = await showMessage(bouncedId);
  expect(attempts).toMatchObject([{ outcome: 'bounced', code: 550, enhancedCode: '5.1.1' }]);
  expect(attempts[0]?.transcript.join('\n')).toContain('RCPT TO:<gone@example.com>');
  const [repeatedId, otherId] = [await submitTo('Gone@EXAMPLE.com'), await submitTo('here@example.com')];
  expect((await showMessage(repeatedId)).state).toBe('suppressed');
  await waitForState(otherId, 'delivered');
  expect(server.receivedMessages.map(({ to }) => to)).toEqual([['here@example.com']]);
  expect(await explainMessage(repeatedId)).toContain('suppression list');
});

test('a deferred message is due after about a minute; `message retry` sends it immediately, and `message cancel` ends it without a delivery', async () => {
  deferredLocalParts.add('later').add('never');
  const [deferredId, cancelledId] = await Promise.all([submitTo('later@example.com'), submitTo('never@example.com')]);
  for (const id of [deferredId, cancelledId])
    await expect.poll(async () => await store.findMessage(id)).toMatchObject({ state: 'queued', attempts: 1 });
  const deferredMessage = await showMessage(deferredId);
  const lastEventAt = (await store.findMessage(deferredId))?.events.at(-1)?.at ?? 0;
  const waitMs = Date.parse(deferredMessage.due ?? '') - lastEventAt;
  expect(waitMs).toBeGreaterThan(40_000);
  expect(waitMs).toBeLessThan(70_000);
  expect(deferredMessage.attempts).toMatchObject([{ outcome: 'deferred', code: 451, enhancedCode: '4.3.2' }]);
  expect(await explainMessage(deferredId)).toContain('451 4.3.2');
  deferredLocalParts.clear();
  await runJsonCommand(folder, ['message', 'retry', deferredId]);
  await waitForState(deferredId, 'delivered');
  expect(await runJsonCommand(folder, ['message', 'cancel', cancelledId])).toMatchObject({ state: 'cancelled' });
  await expect(runJsonCommand(folder, ['message', 'retry', cancelledId])).rejects.toThrow('is cancelled');
  await expect(runJsonCommand(folder, ['message', 'cancel', deferredId])).rejects.toThrow('is delivered');
  expect(server.receivedMessages.flatMap(({ to }) => to)).not.toContain('never@example.com');
});

test('while a relay is down, it receives few connections and waiting messages state the reason; when it is up again, it receives every message', async () => {
  const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']);
  const get = async <T>(path: string) => {
    const headers = { Authorization: `Bearer ${token}` };
    return (await (await fetch(`${service.operatorUrl}/api/v1${path}`, { headers })).json()) as T;
  };
  proxy.isDown = true;
  for (const socket of proxy.sockets) socket.destroy();
  const countBefore = proxy.connectionCount;
  const recipients = Array.from({ length: 30 }, (_, n) => `waiting${n}@example.com`);
  const ids = await Promise.all(recipients.map(submitTo));
  const readTransportHealth = async () =>
    (await get<{ health: { part: string; text: string }[] }>('/overview')).health.find(
      ({ part }) => part === 'transport',
    )?.text;
  await expect.poll(readTransportHealth).toMatch(/circuit breaker is (open|half-open)/);
  const readProblem = async () =>
    (await runJsonCommand<{ attention: { code: string; text: string }[] }>(folder, ['overview'])).attention[0];
  await expect.poll(readProblem, { timeout: 60_000 }).toMatchObject({
    code: 'circuit-breaker-open',
    text: expect.stringMatching(/last failure .* ago: connection: .*127\.0\.0\.1:\d+/),
  });
  const waitingId = await submitTo('late@example.com');
  const { explanation } = await get<{ explanation: readonly string[] }>(`/messages/${waitingId}/explain`);
  expect(explanation.join(' ')).toMatch(
    /the circuit breaker is open after several failures in a row.*The last failure, at .*: connect/,
  );
  expect(proxy.connectionCount - countBefore).toBeGreaterThan(0);
  expect(proxy.connectionCount - countBefore).toBeLessThanOrEqual(12);
  proxy.isDown = false;
  await waitForState(waitingId, 'delivered');
  // Messages with a failed attempt are due in a minute. All other messages are sent as soon as a probe succeeds.
  for (const id of ids) await store.retryMessage(id, Date.now());
  for (const id of ids) await waitForState(id, 'delivered');
  const receivedRecipients = server.receivedMessages.flatMap(({ to }) => to);
  expect(receivedRecipients.filter((to) => to.startsWith('waiting')).sort()).toEqual(recipients.sort());
});
