import { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { MAX_FAILURES } from '../../../src/http/peers.ts';
import { AccessControl, delayResponse, MAX_DELAY_MS } from '../../../src/operator/access.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const createBasicHeader = (password: string) => `Basic ${Buffer.from(`any:${password}`).toString('base64')}`;
const createCheck = (access: AccessControl) => (address: string, password: string, now: number) =>
  access.check(address, 'h', createBasicHeader(password), now);

test('after ten wrong passwords within one minute a peer is refused, even with the correct password, and other peers are not refused', () => {
  const access = new AccessControl('right');
  const checkPassword = createCheck(access);
  for (let n = 0; n < MAX_FAILURES; n += 1)
    expect(checkPassword('192.0.2.1', 'wrong', 1_000 + n).kind).toBe('challenge');
  expect(checkPassword('192.0.2.1', 'right', 2_000)).toEqual({ kind: 'limited', retryAfterMs: 59_000 });
  expect(checkPassword('::ffff:192.0.2.1', 'right', 2_000).kind).toBe('limited');
  expect(checkPassword('192.0.2.2', 'right', 2_000).kind).toBe('granted');
  expect(checkPassword('192.0.2.1', 'right', 61_000).kind).toBe('granted');
  expect(access.check('192.0.2.3', 'h', undefined, 0).kind).toBe('challenge');
});

test('all addresses of an IPv6 /64 network count as one peer', () => {
  const checkPassword = createCheck(new AccessControl('right'));
  for (let n = 0; n < MAX_FAILURES; n += 1)
    expect(checkPassword(`2001:db8:0:7::${n + 1}`, 'wrong', 0).kind).toBe('challenge');
  expect(checkPassword('2001:db8:0:7:ffff::1', 'wrong', 0).kind).toBe('limited');
  expect(checkPassword('2001:db8:0:8::1', 'wrong', 0).kind).toBe('challenge');
  expect(checkPassword('2001:db8:0:8::1', 'right', 0).kind).toBe('granted');
});

test('wrong passwords from many peers increase the delay of each password up to a limit, and cause no refusal', () => {
  const checkPassword = createCheck(new AccessControl('right'));
  const getDelayMs = (now: number) => {
    const decision = checkPassword('198.51.100.1', 'right', now);
    if (decision.kind !== 'granted') throw new Error(`the result for the correct password is ${decision.kind}`);
    return decision.delayMs;
  };
  const delaysMs: number[] = [];
  for (let n = 0; n < 1_000; n += 1) {
    delaysMs.push(getDelayMs(n));
    expect(checkPassword(`2001:db8:1:${n.toString(16)}::1`, 'wrong', n)).toEqual({
      kind: 'challenge',
      delayMs: delaysMs.at(-1),
    });
  }
  // A few typing errors cause no delay.
  expect(delaysMs.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 0));
  expect(delaysMs.slice(0, 100)).toEqual(delaysMs.slice(0, 100).toSorted((left, right) => left - right));
  expect(Math.max(...delaysMs)).toBe(MAX_DELAY_MS);
  // Ten minutes later there is no delay. A clock that is set back does not change the delay.
  expect(getDelayMs(10 * 60_000)).toBe(0);
  expect(getDelayMs(-10 * 60_000)).toBe(MAX_DELAY_MS);
});

test('many delayed responses of one connection cause no warning, and closing the connection ends all delays', async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => warnings.push(name);
  process.on('warning', onWarning);
  onTestFinished(() => {
    process.off('warning', onWarning);
  });
  const socket = new Socket();
  const maxListenersBefore = socket.getMaxListeners();
  const delays = Array.from({ length: 30 }, () => delayResponse({ socket }, createVirtualClock(0), 1_000));
  socket.destroy();
  await Promise.all(delays);
  // A warning is emitted in a later iteration of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
  expect([socket.listenerCount('close'), socket.getMaxListeners()]).toEqual([0, maxListenersBefore]);
});
