/** Tests deliveries to a real SMTP server as the relay. The replies of this server determine the states of messages. */
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { startCountingSink } from '../rig/counting-sink.ts';
import { runJsonCommand, submitAccepted } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario, type RunningService } from './running-service.ts';

const rig = createScenario();

interface ShownMessage {
  readonly state: string;
  readonly due: string | null;
  readonly attemptCount: number;
  readonly attempts: { outcome: string; code: number | null; enhancedCode: string | null; transcript: string[] }[];
  readonly events: { type: string; detail: string | null }[];
}

let folder = '';
let service: RunningService;
let server: RealSmtpServer;
let store: Store;
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
  folder = rig.createFolder();
  service = await rig.serve(folder, {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${server.port}?connections=3`,
    POSTRIDER_SENDERS: 'any',
  });
  store = await rig.openStore(folder);
});
afterAll(async () => {
  // The service stops first, because the server waits until the service has closed its pooled connections.
  await service.stop();
  await server.close();
});

const submitTo = (to: string) => submitAccepted(service.publicUrl, service.key, { to });
const showMessage = (id: string) => runJsonCommand<ShownMessage>(folder, ['message', 'show', id]);
const waitForState = (id: string, state: string) =>
  expect.poll(async () => (await store.findMessage(id))?.state).toBe(state);

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
  const { explanation } = await runJsonCommand<{ explanation: string[] }>(folder, ['message', 'explain', repeatedId]);
  expect(explanation.join(' ')).toContain('suppression list');
});

test('a deferred message is due after about a minute, as `message explain` states; `message retry` sends it immediately, and `message cancel` ends it without a delivery', async () => {
  deferredLocalParts.add('later').add('never');
  const [deferredId, cancelledId] = await Promise.all([submitTo('later@example.com'), submitTo('never@example.com')]);
  for (const id of [deferredId, cancelledId]) {
    await expect.poll(async () => (await store.findMessage(id))?.attempts).toBe(1);
    await waitForState(id, 'queued');
  }
  const deferredMessage = await showMessage(deferredId);
  const waitMs = Date.parse(deferredMessage.due ?? '') - Date.now();
  expect(waitMs).toBeGreaterThan(40_000);
  expect(waitMs).toBeLessThan(70_000);
  expect(deferredMessage.attempts).toMatchObject([{ outcome: 'deferred', code: 451, enhancedCode: '4.3.2' }]);
  const { explanation } = await runJsonCommand<{ explanation: string[] }>(folder, ['message', 'explain', deferredId]);
  const explanationText = explanation.join(' ');
  expect(explanationText).toContain('451 4.3.2');
  expect(explanationText).toMatch(
    /One delivery attempt was made; the next attempt is at \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ, in (1 min|[3-6]\d s)/,
  );
  deferredLocalParts.clear();
  await runJsonCommand(folder, ['message', 'retry', deferredId]);
  await waitForState(deferredId, 'delivered');
  expect(await runJsonCommand(folder, ['message', 'cancel', cancelledId])).toEqual({
    id: cancelledId,
    state: 'cancelled',
  });
  expect((await showMessage(cancelledId)).state).toBe('cancelled');
  await expect(runJsonCommand(folder, ['message', 'retry', cancelledId])).rejects.toThrow('is cancelled');
  await expect(runJsonCommand(folder, ['message', 'cancel', deferredId])).rejects.toThrow('is delivered');
  expect(server.receivedMessages.flatMap(({ to }) => to)).not.toContain('never@example.com');
});

/** Starts a proxy for `relayPort`. While `down` is true, the proxy closes every connection immediately. */
async function startSwitchableProxy(relayPort: number) {
  const sockets = new Set<Socket>();
  const proxy = { port: 0, down: true, connections: 0 };
  const proxyServer = createServer((socket) => {
    proxy.connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    if (proxy.down) {
      socket.destroy();
      return;
    }
    const relaySocket = connect(relayPort, '127.0.0.1');
    sockets.add(relaySocket);
    relaySocket.on('error', () => socket.destroy());
    socket.pipe(relaySocket).pipe(socket);
  });
  await new Promise<void>((resolve) => proxyServer.listen(0, '127.0.0.1', resolve));
  const address = proxyServer.address();
  proxy.port = typeof address === 'object' && address !== null ? address.port : 0;
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => proxyServer.close(resolve));
  });
  return proxy;
}

test('while a relay is down, it receives at most 12 connections; when it is up again, it receives every message', async () => {
  const sink = await startCountingSink();
  const proxy = await startSwitchableProxy(sink.port);
  const separateFolder = rig.createFolder();
  const senderService = await rig.serve(separateFolder, {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${proxy.port}?connections=4`,
    POSTRIDER_SENDERS: 'any',
  });
  const ids = await Promise.all(
    Array.from({ length: 60 }, () => submitAccepted(senderService.publicUrl, senderService.key)),
  );
  const startedAt = Date.now();
  await expect.poll(() => Date.now() - startedAt).toBeGreaterThan(5_000);
  expect(proxy.connections).toBeGreaterThan(0);
  expect(proxy.connections).toBeLessThanOrEqual(12);
  proxy.down = false;
  const senderStore = await rig.openStore(separateFolder);
  // Messages with a failed attempt are due in a minute. All other messages are sent as soon as a probe succeeds.
  await expect.poll(() => sink.acceptCounts.size).toBeGreaterThanOrEqual(ids.length - proxy.connections);
  for (const id of ids) await senderStore.retryMessage(id, Date.now());
  await expect.poll(() => ids.filter((id) => sink.acceptCounts.get(id) !== 1)).toEqual([]);
});
