import type { ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runEvery } from '../../../src/clock.ts';
import {
  type Body,
  Capacity,
  type CapacityLimits,
  CHECK_INTERVAL_MS,
  type NewBody,
  type Standing,
} from '../../../src/http/capacity.ts';
import { createPeerShareExemption } from '../../../src/http/connections.ts';
import { createTrustedProxies } from '../../../src/http/peers.ts';
import type { DropReason } from '../../../src/model/events.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createTestServer } from './rig.ts';

const MIB = 1_048_576;
const LIMITS: CapacityLimits = {
  maxConnections: 1_000,
  peerConnectionShare: 1 / 20,
  maxBytes: 64 * MIB,
  maxBodiesPerOwner: 200,
  bodyTimeoutMs: 300_000,
  maxInFlight: 2_000,
};

function createRig(limits: Partial<CapacityLimits> = {}) {
  const clock = createVirtualClock(0);
  const capacity = new Capacity({ ...LIMITS, ...limits }, clock);
  runEvery(clock, CHECK_INTERVAL_MS, () => capacity.check());
  const log: string[] = [];
  const connect = (name: string, peer: string | null = null, standing: Standing = 'unknown') => {
    const connection = {
      entry: null,
      isAnswering: false,
      isInUse: () => connection.isAnswering,
      close: (reason: DropReason) => void log.push(`${name} ${reason}`),
    };
    const refusal = capacity.connect(connection, peer);
    if (refusal !== null) log.push(`${name} refused`);
    capacity.setStanding(connection, standing);
    return { connection, isConnected: refusal === null };
  };
  /** Takes the first bytes of a body that is then stalled. */
  const stall = (bytes: number, newBody: Partial<NewBody>) => {
    const body = capacity.open({ peer: null, owner: null, announcedBytes: null, ...newBody });
    if (body !== null) capacity.take(body, bytes);
  };
  const open = (name: string, newBody: Partial<NewBody> = {}): Body => {
    const body = capacity.open({ peer: null, owner: null, announcedBytes: null, ...newBody });
    if (body === null) throw new Error(`${name} is refused`);
    body.onEvicted = (reason) => void log.push(`${name} ${reason}`);
    return body;
  };
  const receive = async (bodies: readonly Body[], bytesPerSecond: number, seconds: number) => {
    for (let n = 0; n < seconds; n += 1) {
      for (const body of bodies) if (body.state === 'reading') capacity.take(body, bytesPerSecond);
      await clock.advance(1_000);
    }
  };
  return { clock, capacity, log, connect, open, stall, receive };
}

describe('connections', () => {
  test('a full listener closes its oldest unauthenticated connection for each new connection, and closes no authenticated connection', () => {
    const { capacity, log, connect } = createRig({ maxConnections: 4 });
    connect('a', null, 'authenticated');
    for (const name of ['b', 'c', 'd', 'e', 'f']) connect(name);
    expect([log, capacity.openCount]).toEqual([['b full', 'c full'], 4]);
  });

  test('if every connection is authenticated, the longest idle one is closed for a new one, and none with a request', () => {
    const { capacity, log, connect } = createRig({ maxConnections: 3 });
    const connections = ['a', 'b', 'c'].map((name) => connect(name, null, 'authenticated').connection);
    const [first] = connections;
    for (const connection of connections) connection.isAnswering = true;
    expect(connect('late').isConnected).toBe(false);
    for (const connection of connections) connection.isAnswering = false;
    // A further authenticated request.
    if (first !== undefined) capacity.setStanding(first, 'authenticated');
    expect(connect('next').isConnected).toBe(true);
    expect([log, capacity.openCount]).toEqual([['late refused', 'b full'], 3]);
  });

  test('the unauthenticated connections of a peer are limited to its share only while half of the connections are in use', () => {
    const { log, connect } = createRig({ maxConnections: 100 });
    for (let n = 0; n < 50; n += 1) connect(`p${n}`, 'peer');
    expect(log).toEqual([]);
    for (let n = 50; n < 55; n += 1) connect(`p${n}`, 'peer');
    expect(log).toEqual([0, 1, 2, 3, 4].map((n) => `p${n} address-share`));
  });

  test('new connections of a peer above its share close older ones of the peer until half of the connections are free', () => {
    const { capacity, log, connect } = createRig({ maxConnections: 100 });
    for (let n = 0; n < 30; n += 1) connect(`p${n}`, 'peer');
    for (let n = 0; n < 40; n += 1) connect(`k${n}`, `other${n}`, 'authenticated');
    for (let n = 30; n < 60; n += 1) connect(`p${n}`, 'peer');
    expect(capacity.openCount).toBe(50);
    expect(log.every((entry) => entry.startsWith('p') && entry.endsWith('address-share'))).toBe(true);
  });

  test('authenticated connections and connections of exempt peers do not count toward a share', () => {
    const { capacity, log, connect } = createRig({ maxConnections: 20 });
    for (let n = 0; n < 10; n += 1) connect(`k${n}`, 'peer', 'authenticated');
    for (let n = 0; n < 10; n += 1) connect(`t${n}`, null);
    expect([log, capacity.openCount]).toEqual([[], 20]);
  });

  test('removing a connection twice or authenticating a removed connection has no effect', () => {
    const { capacity, connect } = createRig();
    const { connection } = connect('a', 'peer');
    capacity.disconnect(connection);
    capacity.disconnect(connection);
    capacity.setStanding(connection, 'authenticated');
    capacity.touch(connection);
    expect(capacity.openCount).toBe(0);
  });

  test('connections without a recipient are closed first, then those for a role mailbox, then idle ones for a return path', async () => {
    const { clock, capacity, log, connect } = createRig({ maxConnections: 5 });
    connect('recording', 'p1', 'busy');
    const active = connect('active', 'p2', 'sending');
    connect('idle', 'p3', 'sending');
    connect('role', 'p4', 'weak');
    connect('new', 'p5');
    await clock.advance(9_000);
    capacity.touch(active.connection);
    await clock.advance(2_000);
    for (const name of ['a', 'b', 'c']) connect(name, name, 'busy');
    expect(log).toEqual(['new full', 'role full', 'idle full']);
    expect(connect('late').isConnected).toBe(false);
  });

  test('a connection whose message arrives too slowly is closed for a new one, although it is not idle', async () => {
    const { capacity, log, connect, open, receive } = createRig({ maxConnections: 2 });
    const { connection } = connect('drip', 'p1', 'sending');
    connect('recording', 'p2', 'busy');
    const body = open('body', { peer: 'p1', connection });
    await receive([body], 1, 2);
    capacity.touch(connection);
    expect(connect('late').isConnected).toBe(false);
    await receive([body], 1, 1);
    expect(log).toEqual(['late refused', 'body slow']);
  });

  test('each of 200,000 connections is handled in constant time', () => {
    const { capacity, log, connect } = createRig({ maxConnections: 10_000 });
    for (let n = 0; n < 200_000; n += 1) connect('x', `198.51.100.${n % 250}`);
    // An algorithm with quadratic time would take minutes.
    expect(log.length).toBe(200_000 - capacity.openCount);
  });
});

describe('bodies', () => {
  test('one peer may use a quarter of the bytes, and one owner half; released bytes can be used again', () => {
    const { capacity, open } = createRig();
    const fill = (newBody: Partial<NewBody>) => {
      const bodies: Body[] = [];
      for (;;) {
        const body = open('x', newBody);
        if (capacity.take(body, MIB) !== null) return { bodies, last: body };
        bodies.push(body);
      }
    };
    const { bodies, last } = fill({ peer: '192.0.2.1' });
    expect(bodies).toHaveLength(16);
    expect(capacity.take(last, 1)).toBe('share');
    expect(fill({ owner: 1 }).bodies).toHaveLength(32);
    for (const body of bodies) capacity.release(body);
    expect(capacity.take(last, MIB)).toBe(null);
  });

  test.each([
    ['large ones of unknown clients', [null], MIB, 48],
    ['large ones of authenticated clients', [1, 2], MIB, 56],
    ['those of up to 64 KiB', [null], 65_536, 64],
  ])('of all bytes, bodies may use a part: %s', (_name, owners, announcedBytes, expected) => {
    const { capacity, open } = createRig({ maxBodiesPerOwner: Number.POSITIVE_INFINITY });
    for (const owner of owners) while (capacity.take(open('x', { owner, announcedBytes }), 65_536) === null);
    expect(capacity.bytes).toBe(expected * MIB);
  });

  test('an authenticated body evicts others of any age, and is not evicted for them', () => {
    const { capacity, log, open, stall } = createRig();
    for (let n = 0; n < 1_024; n += 1) stall(65_536, {});
    const message = open('message', { owner: 1 });
    expect(capacity.take(message, MIB)).toBe(null);
    while (capacity.take(open('x'), 65_536) === null);
    expect([capacity.bytes, log.includes('message full')]).toEqual([64 * MIB, false]);
  });

  test('above half of the bytes, bodies below the least rate are evicted after two seconds', async () => {
    const { capacity, log, open, receive } = createRig();
    const [fast, slow, smallFast, smallSlow] = ['fast', 'slow', 'small fast', 'small slow'].map((name) => open(name));
    if (fast === undefined || slow === undefined || smallFast === undefined || smallSlow === undefined)
      throw new Error();
    for (const body of [fast, slow]) capacity.take(body, 100_000);
    const receiveAll = async (seconds: number) => {
      for (let n = 0; n < seconds; n += 1) {
        for (const [body, bytes] of [
          [fast, 8_192],
          [slow, 8_000],
          [smallFast, 1_024],
          [smallSlow, 1_000],
        ] as const)
          if (body.state === 'reading') capacity.take(body, bytes);
        await receive([], 0, 1);
      }
    };
    await receiveAll(5);
    expect(log).toEqual([]);
    for (let n = 0; n < 33; n += 1) {
      const large = open('large');
      capacity.take(large, MIB);
      capacity.complete(large);
    }
    await receiveAll(1);
    expect(log).toEqual(['slow slow', 'small slow slow']);
    await receiveAll(5);
    expect(log).toHaveLength(2);
  });

  test('time during which the listener does not read does not count', async () => {
    const { capacity, log, open, receive } = createRig({ bodyTimeoutMs: 10_000 });
    const bodies = Array.from({ length: 40 }, (_, n) => open(`b${n}`, { announcedBytes: MIB }));
    for (const body of bodies) capacity.take(body, MIB);
    for (const body of bodies) capacity.setPaused(body, true);
    await receive([], 0, 60);
    for (const body of bodies) capacity.setPaused(body, false);
    await receive([], 0, 3);
    expect(log).toEqual([]);
    await receive([], 0, 1);
    expect(log[0]).toBe('b0 slow');
  });

  test('an evicted body holds no bytes, even if more of it arrives or it becomes complete', async () => {
    const { clock, capacity, log, open } = createRig({ maxBytes: 1_000 });
    const body = open('a', { owner: 1 });
    capacity.take(body, 500);
    const other = open('b', { owner: 2 });
    capacity.take(other, 100);
    await clock.advance(4_000);
    expect(log).toContain('a slow');
    const heldBytes = capacity.bytes;
    expect([capacity.take(body, 50), capacity.complete(body)]).toEqual(['full', false]);
    capacity.release(body);
    expect(capacity.bytes).toBe(heldBytes);
  });

  test('a body that is not complete in time is evicted, and a complete one never', async () => {
    const { capacity, log, open, receive } = createRig({ bodyTimeoutMs: 10_000 });
    const [incomplete, complete] = [open('incomplete'), open('complete')];
    capacity.take(complete, MIB);
    capacity.complete(complete);
    await receive([incomplete], 100, 20);
    expect([log, capacity.bytes]).toEqual([['incomplete late'], MIB]);
  });

  test('an owner with too many bodies gets a new one only in exchange for a slow one', async () => {
    const { log, open, receive } = createRig({ maxBodiesPerOwner: 3 });
    const bodies = ['a', 'b', 'c'].map((name) => open(name, { owner: 1 }));
    expect(() => open('d', { owner: 1 })).toThrow('d is refused');
    open('other', { owner: 2 });
    await receive(bodies.slice(1), 100, 3);
    open('e', { owner: 1 });
    expect(log).toEqual(['a share']);
  });

  test('a body that is itself the slowest is refused', async () => {
    const { clock, capacity, log, open } = createRig({ maxBytes: 40_000 });
    const [slow, fast] = [open('slow', { peer: 'p' }), open('fast', { peer: 'p' })];
    for (let n = 0; n < 3; n += 1) {
      capacity.take(slow, 100);
      capacity.take(fast, 3_000);
      await clock.advance(1_000);
    }
    expect(capacity.take(slow, 1_000)).toBe('share');
    expect(log).toEqual([]);
  });
});

describe('an honest client is served at once beside', () => {
  test('64 unfinished messages of 1 MB from four addresses', async () => {
    const { capacity, open, stall, receive } = createRig();
    for (const seconds of [0, 1, 10]) {
      await receive([], 0, seconds);
      for (let n = 0; n < 64; n += 1) stall(1e6, { peer: `192.0.2.${n % 4}`, announcedBytes: 1e6 });
      const bounce = open('bounce', { peer: '198.51.100.1' });
      expect(capacity.take(bounce, 20_000)).toBe(null);
      capacity.release(bounce);
    }
  });

  test('seven stalled bodies of one address: 45 events of a provider whose requests are authenticated, and 45 of another', async () => {
    const { capacity, open, stall, receive } = createRig();
    for (const seconds of [0, 1, 10]) {
      await receive([], 0, seconds);
      for (let n = 0; n < 7; n += 1) stall(9.9e6, { peer: '192.0.2.1', announcedBytes: 1e7 });
      const honest = Array.from({ length: 90 }, (_, n) =>
        open('event', n % 2 === 0 ? { owner: 'sparkpost' } : { peer: '198.51.100.1' }),
      );
      expect(honest.map((body) => capacity.take(body, 300_000))).toEqual(honest.map(() => null));
      for (const body of honest) capacity.release(body);
    }
  });

  test('two accounts with 128 incomplete bodies each', async () => {
    const { capacity, open, stall, receive } = createRig({ maxBytes: 256 * MIB });
    for (const seconds of [0, 1, 10]) {
      await receive([], 0, seconds);
      for (const owner of [1, 2]) for (let n = 0; n < 128; n += 1) stall(MIB - 1, { owner, announcedBytes: MIB });
      const honest = Array.from({ length: 10 }, () => open('message', { owner: 3, announcedBytes: 2_000 }));
      expect(honest.map((body) => capacity.take(body, 2_000))).toEqual(honest.map(() => null));
      for (const body of honest) capacity.release(body);
    }
  });
});

test('loopback addresses, trusted proxies and addresses in trusted networks are exempt from the share, also as IPv4-mapped addresses', () => {
  const isExempt = createPeerShareExemption(createTrustedProxies(['192.0.2.7', '10.0.0.0/8', '2001:db8::/32']));
  const exemptAddresses = '127.0.0.1 127.8.9.1 ::1 ::ffff:127.0.0.1 192.0.2.7 ::ffff:10.1.2.3 2001:db8:1::5'.split(' ');
  expect(exemptAddresses.filter((address) => !isExempt(address))).toEqual([]);
  expect(['192.0.2.8', '11.0.0.1', '2001:db9::1', '::ffff:11.0.0.1'].filter(isExempt)).toEqual([]);
});

test('a body that a handler has read uses capacity until its request is answered', async () => {
  const received = Promise.withResolvers<ServerResponse>();
  const server = createTestServer({
    handle: (incoming, outgoing) => void server.readBody(incoming, 100, null).then(() => received.resolve(outgoing)),
  });
  onTestFinished(() => server.drain(0));
  const { url } = await server.start();
  const response = fetch(url, { method: 'POST', body: 'x'.repeat(60) });
  const outgoing = await received.promise;
  expect(server.capacity.bytes).toBe(60);
  outgoing.end();
  await response;
  await expect.poll(() => server.capacity.bytes).toBe(0);
});
