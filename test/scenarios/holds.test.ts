import { expect, test } from 'vitest';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { createScenario } from './running-service.ts';

interface ListedHold {
  readonly id: number;
  readonly state: string;
  readonly held: number;
}
interface ShownMessage {
  readonly state: string;
  readonly due: string | null;
  readonly held: { readonly hold: number; readonly reason: string } | null;
}

const rig = createScenario();

test('nothing that a hold matches leaves the service until its release or its end, and everything leaves then', async () => {
  const folder = rig.createFolder();
  const { publicUrl, key } = await rig.serve(folder);
  const runJson = <T>(...args: readonly string[]) => runJsonCommand<T>(folder, args);
  const showMessage = (id: string) => runJson<ShownMessage>('message', 'show', id);
  const submit = (to: string) => submitAccepted(publicUrl, key, { to });
  const store = await rig.openStore(folder);
  /** A message that is submitted before the node knows the hold may leave. */
  const submitUntilHeld = async (to: string): Promise<string> => {
    let lastId = '';
    await expect
      .poll(async () => {
        lastId = await submit(to);
        return (await store.findMessage(lastId))?.parked?.reason;
      })
      .toBe('hold');
    return lastId;
  };

  const { id } = await runJson<ListedHold>('hold', 'add', '--to', '@held.example', '--reason', 'incident');
  const heldIds = [await submitUntilHeld('one@held.example'), await submit('two@HELD.example')];
  const otherId = await submit('one@sub.held.example');
  await expect.poll(async () => (await showMessage(otherId)).state).toBe('delivered');
  for (const heldId of heldIds)
    expect(await showMessage(heldId)).toMatchObject({
      ...{ state: 'queued', due: null, held: { hold: id, reason: 'incident' }, attempts: [] },
    });
  expect(await runJson<ListedHold[]>('hold', 'list')).toMatchObject([{ id, state: 'active', held: 2 }]);
  expect(await runJson('overview')).toMatchObject({ queue: { queued: 2, held: 2, oldestAt: null }, activeHolds: 1 });
  const { explanation } = await runJson<{ explanation: string[] }>('message', 'explain', heldIds[0] ?? '');
  expect(explanation.join('\n')).toContain(`postrider hold release ${id}`);
  const released = Date.now();
  expect(await runJson<ListedHold[]>('hold', 'release', String(id))).toMatchObject([{ id, state: 'released' }]);
  for (const heldId of heldIds) {
    await expect.poll(async () => (await store.findMessage(heldId))?.state, { interval: 20 }).toBe('delivered');
    const deliveredAt = (await store.findMessage(heldId))?.events.at(-1)?.at ?? Number.POSITIVE_INFINITY;
    expect(deliveredAt - released).toBeLessThan(5_000);
  }

  await runJson('hold', 'add', '--for', '6s', '--reason', 'six seconds');
  const lastId = await submitUntilHeld('three@other.example');
  await expect.poll(async () => (await store.findMessage(lastId))?.state).toBe('delivered');
  expect(await runJson<ListedHold[]>('hold', 'list')).toMatchObject([{ state: 'ended' }, { state: 'released' }]);
});

test.each([
  [['add', '--reason', 'x', '--from', 'example.com'], /--from: "example.com" is neither an address .* nor a domain/],
  [['add', '--reason', 'x', '--account', 'nobody'], /there is no account "nobody"; `postrider account list`/],
  [['add', '--reason', 'x', '--for', '2 hours'], /--for: .*2 hours/],
  [['add', '--reason', 'x', '--mailbox-provider', 'gmail'], /--mailbox-provider: .*gmail/],
  [['add'], /--reason/],
  [['release', '7', 'x'], /IDS: "x" is not the number of a hold; `postrider hold list` lists holds/],
  [['release', '7', '8'], /there is no hold 7; `postrider hold list` lists holds/],
] as const)('`hold %s` is refused with one clear line', async (args, line) => {
  const { code, stderr } = await runCommand(rig.createFolder(), ['hold', ...args]);
  expect([code, stderr.trim().split('\n')]).toEqual([expect.any(Number), [expect.stringMatching(line)]]);
  expect(code).not.toBe(0);
});
