import { expect, test, vi } from 'vitest';
import { createMessage } from '../../rig/messages.ts';
import { createCommandRig } from './command-rig.ts';

const HOUR_MS = 3_600_000;

async function createRigWithMessages(...recipients: readonly string[]) {
  const rig = await createCommandRig();
  const now = rig.now ?? 0;
  const messages = recipients.map((to) => createMessage({ acceptedAt: now - HOUR_MS, to }));
  await rig.store.accept(messages);
  const readFigures = async () => {
    const steps = await rig.store.readTraffic(now - HOUR_MS, now + HOUR_MS, 60_000);
    const sum = (name: 'accepted' | 'ended') => steps.reduce((total, step) => total + step[name], 0);
    return { accepted: sum('accepted'), ended: sum('ended') };
  };
  return { rig, ids: messages.map(({ id }) => id), readFigures };
}

test('each cancellation and each resend by a command is counted once, in the overview and in the figures of the mailbox provider', async () => {
  const { rig, ids, readFigures } = await createRigWithMessages('ada@mx.example');
  const lookedUpAt = rig.now ?? 0;
  await rig.store.writeMailboxProviders([{ domain: 'mx.example', provider: 'google', lookedUpAt }]);
  await rig.run('message', 'cancel', ids[0] ?? '');
  expect(await readFigures()).toEqual({ accepted: 0, ended: 1 });
  await rig.run('message', 'resend', ids[0] ?? '');
  expect(await readFigures()).toEqual({ accepted: 1, ended: 1 });
  const overview: { readonly keys: readonly unknown[] } = await rig.runJson('overview', '--by', 'provider');
  expect(JSON.stringify(overview)).toMatch(/"key":"google"[^{}]*.*?"accepted":1/);
  await rig.run('message', 'resend', ids[0] ?? '');
  expect(await readFigures()).toEqual({ accepted: 2, ended: 1 });
});

test('a bulk change is counted once for each changed message, and a refused or read-only command is not counted', async () => {
  const { rig, readFigures } = await createRigWithMessages('ada@x.example', 'bea@x.example');
  await rig.run('message', 'list');
  await rig.run('message', 'resend', '01990000-0000-7000-8000-000000000001');
  expect(await readFigures()).toEqual({ accepted: 0, ended: 0 });
  expect((await rig.run('message', 'change', 'cancel', '--to', '@x.example', '--dry-run')).stdout).toBe(
    '2 messages match\n',
  );
  await rig.run('message', 'change', 'cancel', '--to', '@x.example');
  expect(await readFigures()).toEqual({ accepted: 0, ended: 2 });
});

test('a bulk change reports the messages that matched at its start and no longer match when it reaches them', async () => {
  const { rig, ids } = await createRigWithMessages('ada@x.example', 'bea@x.example');
  const search = rig.store.searchMessages;
  let callCount = 0;
  vi.spyOn(rig.store, 'searchMessages').mockImplementation(async (...args) => {
    callCount += 1;
    if (callCount === 2) await rig.store.cancelMessage(ids[0] ?? '', Date.now());
    return search(...args);
  });
  const { stdout } = await rig.run('message', 'change', 'cancel', '--to', '@x.example', '--state', 'queued');
  expect(stdout).toBe('cancel: 1 done, 1 no longer matched\n');
});

test('if the figures cannot be written, the change is stored and a warning is printed', async () => {
  const { rig, ids } = await createRigWithMessages('ada@x.example');
  vi.spyOn(rig.store, 'writeTraffic').mockRejectedValue(new Error('the disk is full'));
  const { code, stderr } = await rig.run('message', 'cancel', ids[0] ?? '');
  expect([code, stderr]).toEqual([0, 'Error: the disk is full\n']);
  expect((await rig.store.findMessage(ids[0] ?? ''))?.state).toBe('cancelled');
});
