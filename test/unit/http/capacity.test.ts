/** Checks which connections a full listener closes. The tests use no sockets. */
import { expect, test } from 'vitest';
import {
  ConnectionTable,
  divideDescriptors,
  MAX_CONNECTIONS,
  readDescriptorLimit,
  type TableConnection,
} from '../../../src/http/capacity.ts';
import { createPeerShareExemption } from '../../../src/http/connections.ts';
import { createTrustedProxies } from '../../../src/http/trusted-proxies.ts';
import type { DropReason } from '../../../src/model/events.ts';

/** Creates a table. `closedConnections` lists the closed connections as `name reason`. */
function createTable(maxConnections: number) {
  const table = new ConnectionTable(maxConnections);
  const closedConnections: string[] = [];
  const createConnection = (name: string): TableConnection => ({
    tableEntry: null,
    close: (reason: DropReason) => void closedConnections.push(`${name} ${reason}`),
  });
  const addConnection = (name: string, peer: string | null = null) => {
    const connection = createConnection(name);
    table.add(connection, peer);
    return connection;
  };
  return { table, closedConnections, addConnection };
}

test('a full listener closes its oldest unauthenticated connection for each new connection, and closes no authenticated connection', () => {
  const { table, closedConnections, addConnection } = createTable(4);
  const [a] = ['a', 'b', 'c', 'd'].map((name) => addConnection(name));
  if (a !== undefined) table.markAuthenticated(a);
  addConnection('e');
  addConnection('f');
  expect([closedConnections, table.openCount]).toEqual([['b full', 'c full'], 4]);
});

test('if every connection is authenticated, a new connection is refused and the authenticated connections remain open', () => {
  const { table, closedConnections, addConnection } = createTable(3);
  const connections = ['a', 'b', 'c'].map((name) => addConnection(name));
  for (const connection of connections) table.markAuthenticated(connection);
  addConnection('late');
  expect([closedConnections, table.openCount]).toEqual([['late full'], 3]);
  const [firstConnection] = connections;
  if (firstConnection !== undefined) table.remove(firstConnection);
  addConnection('next');
  expect([closedConnections, table.openCount]).toEqual([['late full'], 3]);
});

test('the unauthenticated connections of a peer are limited to its share only if more than half of the capacity is used', () => {
  const { closedConnections, addConnection } = createTable(100);
  for (let n = 0; n < 50; n += 1) addConnection(`p${n}`, 'peer');
  expect(closedConnections).toEqual([]);
  for (let n = 50; n < 55; n += 1) addConnection(`p${n}`, 'peer');
  expect(closedConnections).toEqual([0, 1, 2, 3, 4].map((n) => `p${n} address-share`));
});

test('new connections of a peer above its share close older connections of the peer until half of the capacity is free', () => {
  const { table, closedConnections, addConnection } = createTable(100);
  for (let n = 0; n < 30; n += 1) addConnection(`p${n}`, 'peer');
  for (let n = 0; n < 40; n += 1) table.markAuthenticated(addConnection(`k${n}`, `other${n}`));
  for (let n = 30; n < 60; n += 1) addConnection(`p${n}`, 'peer');
  expect(table.openCount).toBe(50);
  expect(closedConnections.every((entry) => entry.startsWith('p') && entry.endsWith('address-share'))).toBe(true);
});

test('authenticated connections and connections of trusted peers do not count toward a share', () => {
  const { table, closedConnections, addConnection } = createTable(20);
  for (let n = 0; n < 10; n += 1) table.markAuthenticated(addConnection(`k${n}`, 'peer'));
  for (let n = 0; n < 10; n += 1) addConnection(`t${n}`, null);
  expect([closedConnections, table.openCount]).toEqual([[], 20]);
});

test('removing a connection twice or authenticating a removed connection has no effect', () => {
  const { table, addConnection } = createTable(4);
  const removedConnection = addConnection('a', 'peer');
  table.remove(removedConnection);
  table.remove(removedConnection);
  table.markAuthenticated(removedConnection);
  expect(table.openCount).toBe(0);
});

test('each of 200,000 connections is handled in constant time', () => {
  const { table, closedConnections, addConnection } = createTable(10_000);
  const startedAt = performance.now();
  for (let n = 0; n < 200_000; n += 1) addConnection('x', `198.51.100.${n % 250}`);
  expect(table.openCount).toBeLessThanOrEqual(10_000);
  expect(closedConnections.length).toBe(200_000 - table.openCount);
  // An algorithm with quadratic time would take minutes.
  expect(performance.now() - startedAt).toBeLessThan(60_000);
});

test('loopback addresses, trusted proxies and addresses in trusted networks are exempt from the share, also as IPv4-mapped addresses', () => {
  const isExempt = createPeerShareExemption(createTrustedProxies(['192.0.2.7', '10.0.0.0/8', '2001:db8::/32']));
  const exemptAddresses = '127.0.0.1 127.8.9.1 ::1 ::ffff:127.0.0.1 192.0.2.7 ::ffff:10.1.2.3 2001:db8:1::5'.split(' ');
  expect(exemptAddresses.filter((address) => !isExempt(address))).toEqual([]);
  expect(['192.0.2.8', '11.0.0.1', '2001:db9::1', '::ffff:11.0.0.1'].filter(isExempt)).toEqual([]);
});

test('each listener gets its maximum if the limit of open files is sufficient; otherwise, all listeners get the same fraction of their maximum', () => {
  expect(divideDescriptors(Number.POSITIVE_INFINITY, 20)).toEqual(MAX_CONNECTIONS);
  expect(divideDescriptors(20_000, 1_000)).toEqual(MAX_CONNECTIONS);
  for (const limit of [64, 256, 1_024, 4_096, 10_240]) {
    const shares = divideDescriptors(limit, 20);
    const total = shares.public + shares.operator + shares.events;
    expect(total, String(limit)).toBeLessThanOrEqual(limit / 2 + 24 + Math.max(0, limit / 2 - 148));
    expect(shares.public).toBeLessThan(MAX_CONNECTIONS.public);
    expect(shares.operator).toBeGreaterThanOrEqual(8);
  }
});

test('the limit of open files of this process is read', () => {
  expect(readDescriptorLimit()).toBeGreaterThan(64);
});
