import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { type MonotonicClock, systemClock } from '../../../src/clock.ts';
import type { OperatorToken } from '../../../src/model/account.ts';
import { TOPICS, type Topic } from '../../../src/model/audit.ts';
import { hashToken } from '../../../src/model/credentials.ts';
import { createLiveUpdates, type LiveUpdates } from '../../../src/observability/live-updates.ts';
import { MAX_STREAMS_PER_ACTOR } from '../../../src/operator/events.ts';
import { SESSION_LIFETIME_MS } from '../../../src/operator/sessions.ts';
import { signInByLink } from '../../rig/session.ts';
import { createApi, createOptions, startOperatorListener } from './operator-rig.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Starts a listener. The token is valid while `store.token` is not null. */
async function startListener(
  clock: MonotonicClock = systemClock,
  liveUpdates = createLiveUpdates({
    clock,
    topics: TOPICS,
    readChanges: async () => [],
    events: { subscribe: () => () => undefined },
  }),
) {
  const times = { createdAt: 0, expiresAt: null, revokedAt: null, lastUsedAt: null };
  const store: { token: OperatorToken | null } = {
    token: { id: 1, name: 'ci', prefix: 'po_', hash: hashToken('po_ci'), ...times },
  };
  const api = createApi(
    { findTokens: async () => (store.token === null ? [] : [store.token]) },
    { liveUpdates, publish: () => liveUpdates.poll() },
  );
  const { listener, port, signInUrl } = await startOperatorListener(createOptions({ clock, api }));
  const session = await signInByLink(signInUrl ?? '');
  const lines = Object.entries(session).map(([name, value]) => `${name}: ${value}`);
  return { port, liveUpdates, store, listener, session: lines.join('\r\n') };
}

interface EventStream {
  readonly readReceived: () => string;
  readonly countEvents: () => number;
  readonly isClosed: () => boolean;
  readonly socket: Socket;
}

function openStream(port: number, header: string, isReading = true): EventStream {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  let [text, eventCount, isClosed] = ['', 0, false];
  socket.write(`GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n`);
  if (isReading) {
    socket.on('data', (chunk) => {
      text += chunk.toString();
      // The data of each event is one JSON object. Counting in the whole text takes quadratic time.
      eventCount += chunk.toString().split('}').length - 1;
    });
  }
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('error', () => undefined);
  return { readReceived: () => text, countEvents: () => eventCount, isClosed: () => isClosed, socket };
}

const BEARER_HEADER = 'Authorization: Bearer po_ci';

/**
 * Creates a clock that a test advances. Timers run when the clock passes their time; timers of at most 500 ms also run
 * in real time.
 */
function createManualClock(): MonotonicClock & { advance(ms: number): void } {
  let offsetMs = 0;
  const timers = new Map<object, { at: number; run: () => void }>();
  const now = () => Date.now() + offsetMs;
  return {
    now,
    monotonic: now,
    after(delayMs, run) {
      const key = {};
      timers.set(key, { at: now() + delayMs, run });
      if (delayMs <= 500) setTimeout(() => timers.delete(key) && run(), delayMs);
      return () => void timers.delete(key);
    },
    advance(ms) {
      offsetMs += ms;
      for (const [key, { at, run }] of [...timers]) {
        if (at > now() || !timers.delete(key)) continue;
        run();
      }
    },
  };
}

test('a change is published to sessions and tokens as an event with its topics', async () => {
  const { port, liveUpdates, session } = await startListener();
  const streams = [openStream(port, session), openStream(port, BEARER_HEADER)];
  for (const { readReceived: text } of streams) {
    await expect.poll(text).toContain('retry: ');
    expect(text()).toMatch(/^HTTP\/1\.1 200 /);
    expect(text()).toMatch(/content-type: text\/event-stream; charset=utf-8/i);
    expect(text()).toMatch(/content-security-policy: /i);
  }
  liveUpdates.publish('messages', 'overview');
  for (const { readReceived: text } of streams)
    await expect.poll(text).toContain('event: change\ndata: {"topics":["messages","overview"]}\n\n');
});

test('the number of streams of an actor is limited, another actor can open one, and a new stream can be opened after an open stream has ended', async () => {
  const { port, session } = await startListener();
  const streams = Array.from({ length: MAX_STREAMS_PER_ACTOR }, () => openStream(port, BEARER_HEADER));
  for (const { readReceived: text } of streams) await expect.poll(text).toContain('retry: ');
  const refusedResponse = await fetch(`http://127.0.0.1:${port}/api/v1/events`, {
    headers: { Authorization: 'Bearer po_ci' },
  });
  expect([refusedResponse.status, refusedResponse.headers.get('retry-after')]).toEqual([429, '10']);
  expect(await refusedResponse.json()).toEqual({
    result: 'error',
    code: 'rate-limited',
    message: 'Too many live streams are open (50, 50 of token:ci); close a page of the dashboard',
  });
  await expect.poll(openStream(port, session).readReceived).toContain('retry: ');
  streams[0]?.socket.destroy();
  await expect
    .poll(async () => {
      const stream = openStream(port, BEARER_HEADER);
      await expect.poll(stream.readReceived).toContain('HTTP/1.1');
      return stream.readReceived().slice(9, 12);
    })
    .toBe('200');
});

describe('a stream ends when its authentication ends', () => {
  test('at the expiry of a session', async () => {
    const clock = createManualClock();
    const { port, session } = await startListener(clock);
    const stream = openStream(port, session);
    await expect.poll(stream.readReceived).toContain('retry: ');
    clock.advance(15_000);
    await expect.poll(stream.readReceived).toContain(': alive\n\n');
    clock.advance(SESSION_LIFETIME_MS - 16_000);
    await expect.poll(() => stream.readReceived().split(': alive').length).toBe(3);
    expect(stream.readReceived()).not.toContain('\r\n0\r\n');
    clock.advance(1_001);
    await expect.poll(stream.readReceived).toContain('\r\n0\r\n');
  });

  test('at the next heartbeat after a token is revoked', async () => {
    const clock = createManualClock();
    const { port, store } = await startListener(clock);
    const stream = openStream(port, BEARER_HEADER);
    await expect.poll(stream.readReceived).toContain('retry: ');
    store.token = null;
    clock.advance(15_000);
    await expect.poll(stream.readReceived).toContain('\r\n0\r\n');
  });
});

test('a client that does not read is disconnected, and the other clients still receive events', async () => {
  const subscribers = new Set<(topics: readonly Topic[]) => void>();
  const liveUpdates: LiveUpdates = {
    publish: () => undefined,
    poll: () => undefined,
    stop: () => undefined,
    subscribe(onChange) {
      subscribers.add(onChange);
      return () => void subscribers.delete(onChange);
    },
  };
  const { port } = await startListener(systemClock, liveUpdates);
  openStream(port, BEARER_HEADER, false);
  const reader = openStream(port, BEARER_HEADER);
  await expect.poll(() => subscribers.size).toBe(2);
  await expect.poll(reader.readReceived).toContain('retry: ');
  const topics = Array.from({ length: 100 }, () => 'messages' as const);
  // Events are published until the buffers of the connection are full. Each iteration waits for the client that reads.
  for (let expectedEvents = 10; subscribers.size === 2; expectedEvents += 10) {
    for (let n = 0; n < 10; n += 1) for (const onChange of subscribers) onChange(topics);
    while (reader.countEvents() < expectedEvents) await turn();
  }
  expect([subscribers.size, reader.isClosed()]).toEqual([1, false]);
});

test('the listener closes immediately despite open streams', async () => {
  const { port, listener } = await startListener();
  const stream = openStream(port, BEARER_HEADER);
  await expect.poll(stream.readReceived).toContain('retry: ');
  await listener.close();
  await expect.poll(stream.isClosed).toBe(true);
});
