import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type MonotonicClock, systemClock } from '../../src/clock.ts';
import { startCountingSink } from '../rig/counting-sink.ts';
import { startDns } from '../rig/dns.ts';
import { runJsonCommand, submitAccepted } from '../rig/service.ts';
import { startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario } from './running-service.ts';

const rig = createScenario();

/** The waits of a circuit breaker take a tenth. */
function createFastClock(): MonotonicClock {
  const [startedAt, startedMonotonic] = [Date.now(), performance.now()];
  const getElapsed = () => 10 * (performance.now() - startedMonotonic);
  return {
    now: () => Math.round(startedAt + getElapsed()),
    monotonic: getElapsed,
    after: (delayMs, run) => systemClock.after(delayMs / 10, run),
  };
}

test('a second setting is a failover: mail goes on over it when the default relay dies under load, and returns by itself', async () => {
  let isDown = false;
  const relay = await startCountingSink({ respond: () => (isDown ? 'drop' : null) });
  const backup = await startCountingSink();
  const folder = rig.createFolder();
  const settings = {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}`,
    POSTRIDER_ROUTE_BACKUP: `smtp://127.0.0.1:${backup.port}`,
    POSTRIDER_SENDERS: 'any',
  };
  const service = await rig.serve(folder, settings, { clock: createFastClock() });
  const store = await rig.openStore(folder);
  const acceptedIds: string[] = [];
  const send = async (count: number) => {
    const ids = await Promise.all(Array.from({ length: count }, () => submitAccepted(service.publicUrl, service.key)));
    acceptedIds.push(...ids);
    return ids;
  };
  const isRelayed = () => relay.acceptCounts.size;

  await send(30);
  await expect.poll(isRelayed).toBe(30);
  expect(backup.acceptCounts.size).toBe(0);

  isDown = true;
  const failedOver = await send(60);
  await expect.poll(() => backup.acceptCounts.size).toBe(60);
  // The fault of the route took no step of a retry schedule, and bounced nothing.
  const histories = await Promise.all(failedOver.map((id) => store.findMessage(id)));
  expect(histories.map((message) => message?.state)).toEqual(Array(60).fill('delivered'));
  expect(new Set(histories.map((message) => message?.attempts))).toEqual(new Set([1]));

  isDown = false;
  const before = isRelayed();
  await expect
    .poll(
      async () => {
        await send(5);
        return isRelayed() - before;
      },
      { interval: 100 },
    )
    .toBeGreaterThan(20);
  const duplicates = () =>
    acceptedIds.filter((id) => (relay.acceptCounts.get(id) ?? 0) + (backup.acceptCounts.get(id) ?? 0) !== 1);
  await expect.poll(duplicates).toEqual([]);
  await service.stop();
});

test('a changed file of a route takes effect for another provider, and a message under way ends on the former relay', async () => {
  const dns = await startDns();
  const entered = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const former = await startSmtpServer({
    onMailFrom(address, _session, callback) {
      if (!address.address.startsWith('slow')) return callback();
      entered.resolve();
      void release.promise.then(() => callback());
    },
  });
  const next = await startSmtpServer();
  onTestFinished(async () => {
    await Promise.all([dns.close(), former.close(), next.close()]);
  });
  const folder = rig.createFolder();
  const file = join(folder, 'transport');
  const useRelay = (port: number, query: string) => writeFileSync(file, `smtp://127.0.0.1:${port}?${query}\n`);
  useRelay(former.port, 'connections=2');
  const settings = {
    POSTRIDER_TRANSPORT_FILE: file,
    POSTRIDER_ROUTE_BACKUP: `smtp://127.0.0.1:${former.port}`,
    POSTRIDER_DNS: `${dns.host}:${dns.port}`,
    POSTRIDER_SENDERS: 'any',
  };
  const service = await rig.serve(folder, settings, { clock: createFastClock() });
  const added = await runJsonCommand<{ records: readonly { type: string; name: string; value: string }[] }>(
    folder,
    ['domain', 'add', 'default', 'shop.example'],
    settings,
  );
  for (const { type, name, value } of added.records) if (type === 'TXT') dns.zone[name] = { TXT: [value] };
  expect(await runJsonCommand(folder, ['domain', 'verify', 'shop.example'], settings)).toMatchObject({
    status: 'authenticated',
  });
  const send = (from: string) => submitAccepted(service.publicUrl, service.key, { from });
  const describeMails = (server: typeof former) =>
    server.receivedMessages.map(({ from, data }) => {
      const mail = data.toString();
      const signatures = mail.match(/^DKIM-Signature:/gim)?.length ?? 0;
      return `${from.split('@')[0]}: ${signatures} signatures${/^X-SES-/m.test(mail) ? ', fields of Amazon SES' : ''}`;
    });

  // A running service knows the domain within a second.
  await expect
    .poll(
      async () => {
        await send('first@shop.example');
        return describeMails(former).at(-1);
      },
      { interval: 200 },
    )
    .toBe('first: 2 signatures');
  await send('slow@shop.example');
  await entered.promise;
  useRelay(next.port, 'provider=ses');
  await expect
    .poll(
      async () => {
        await send('later@shop.example');
        return describeMails(next)[0];
      },
      { interval: 200 },
    )
    .toBe('later: 1 signatures, fields of Amazon SES');
  release.resolve();
  await expect.poll(() => describeMails(former)).toContain('slow: 2 signatures');
  expect(describeMails(former).filter((mail) => mail.includes('Amazon SES'))).toEqual([]);
  await service.stop();
});
