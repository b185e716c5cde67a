/** A DNS server on UDP and TCP of one loopback port, with a zone that a test may change at any time. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket as TcpSocket } from 'node:net';

export interface ZoneEntry {
  /** The values of the TXT records. A list contains the strings of one record. */
  readonly TXT?: readonly (string | readonly string[])[];
  readonly MX?: readonly (readonly [number, string])[];
  readonly A?: readonly string[];
  readonly AAAA?: readonly string[];
  readonly PTR?: readonly string[];
  readonly CNAME?: string;
  /** `truncate`: the UDP response is truncated, so that the resolver must repeat the query over TCP. */
  readonly fault?: 'timeout' | 'SERVFAIL' | 'REFUSED' | 'truncate' | 'garbage';
}

/** Entries by name, in lower case and without the final dot. The response for a name without an entry is NXDOMAIN. */
export type Zone = Record<string, ZoneEntry>;

export interface FakeDns {
  readonly host: string;
  readonly port: number;
  readonly zone: Zone;
  readonly queries: readonly string[];
  close(): Promise<void>;
}

const RECORD_TYPES: Readonly<Record<string, number>> = { A: 1, CNAME: 5, PTR: 12, MX: 15, TXT: 16, AAAA: 28 };
const NOERROR = 0;
const SERVFAIL = 2;
const NXDOMAIN = 3;
const REFUSED = 5;
const TRUNCATED_FLAG = 0x0200;
const HEADER_BYTES = 12;
const TTL_S = 300;
const MAX_CHAIN = 8;
const MAX_BIND_ATTEMPTS = 20;

export async function startDns(zone: Zone = {}): Promise<FakeDns> {
  const queries: string[] = [];
  const sockets = new Set<TcpSocket>();
  const answerQuery = (protocol: 'udp' | 'tcp', query: Buffer) => createResponse(protocol, query, zone, queries);
  const { udp, tcp, port } = await bindBothSockets();
  udp.on('message', (query, { address, port: to }) => {
    const reply = answerQuery('udp', query);
    if (reply !== null) udp.send(reply, to, address);
  });
  tcp.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    let pendingBytes = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      pendingBytes = Buffer.concat([pendingBytes, chunk]);
      while (pendingBytes.length >= 2 && pendingBytes.length >= 2 + pendingBytes.readUInt16BE(0)) {
        const end = 2 + pendingBytes.readUInt16BE(0);
        const reply = answerQuery('tcp', pendingBytes.subarray(2, end));
        pendingBytes = pendingBytes.subarray(end);
        if (reply !== null) socket.write(Buffer.concat([encodeUint16(reply.length), reply]));
      }
    });
  });
  return {
    host: '127.0.0.1',
    port,
    zone,
    queries,
    async close() {
      for (const socket of sockets) socket.destroy();
      await Promise.all([new Promise<void>((done) => udp.close(done)), new Promise((done) => tcp.close(done))]);
    },
  };
}

async function bindBothSockets(): Promise<{ udp: UdpSocket; tcp: Server; port: number }> {
  for (let attemptCount = 1; ; attemptCount += 1) {
    const udp = createSocket('udp4');
    udp.bind(0, '127.0.0.1');
    await once(udp, 'listening');
    const { port } = udp.address();
    const tcp = createServer();
    try {
      tcp.listen(port, '127.0.0.1');
      await once(tcp, 'listening');
      return { udp, tcp, port };
    } catch (error) {
      await new Promise<void>((done) => udp.close(done));
      if (attemptCount === MAX_BIND_ATTEMPTS) throw error;
    }
  }
}

function createResponse(protocol: 'udp' | 'tcp', query: Buffer, zone: Zone, queries: string[]): Buffer | null {
  const { name, type, end } = readQuestion(query);
  queries.push(`${protocol} ${type} ${name}`);
  const entry = zone[name];
  switch (entry?.fault) {
    case 'timeout':
      return null;
    case 'garbage':
      return Buffer.concat([query.subarray(0, 2), Buffer.from('no DNS message')]);
    case 'SERVFAIL':
      return encodeMessage(query, end, SERVFAIL, []);
    case 'REFUSED':
      return encodeMessage(query, end, REFUSED, []);
    case 'truncate':
      if (protocol === 'udp') return encodeMessage(query, end, NOERROR | TRUNCATED_FLAG, []);
      break;
    case undefined:
      break;
  }
  const answers: Buffer[] = [];
  let owner = name;
  for (let hopCount = 0; hopCount < MAX_CHAIN; hopCount += 1) {
    const ownerEntry = zone[owner];
    if (ownerEntry === undefined) return encodeMessage(query, end, hopCount === 0 ? NXDOMAIN : NOERROR, answers);
    for (const data of encodeRecords(ownerEntry, type)) answers.push(encodeRecord(owner, type, data));
    if (ownerEntry.CNAME === undefined || type === 'CNAME') break;
    answers.push(encodeRecord(owner, 'CNAME', encodeName(ownerEntry.CNAME)));
    owner = ownerEntry.CNAME;
  }
  const response = encodeMessage(query, end, NOERROR, answers);
  const maxBytes = protocol === 'udp' ? readMaxUdpBytes(query, end) : 65_535;
  return response.length > maxBytes ? encodeMessage(query, end, NOERROR | TRUNCATED_FLAG, []) : response;
}

function readQuestion(query: Buffer): { readonly name: string; readonly type: string; readonly end: number } {
  const labels: string[] = [];
  let index = HEADER_BYTES;
  while ((query[index] ?? 0) > 0) {
    const length = query[index] ?? 0;
    labels.push(query.toString('latin1', index + 1, index + 1 + length));
    index += 1 + length;
  }
  const number = query.readUInt16BE(index + 1);
  const type = Object.keys(RECORD_TYPES).find((name) => RECORD_TYPES[name] === number) ?? `TYPE${number}`;
  return { name: labels.join('.').toLowerCase(), type, end: index + 5 };
}

/** 512 bytes, or the size in the EDNS record of the query (RFC 6891 section 6.1.2). */
function readMaxUdpBytes(query: Buffer, end: number): number {
  const additionalCount = query.readUInt16BE(10);
  return additionalCount === 1 && query.length >= end + 11 ? Math.max(512, query.readUInt16BE(end + 3)) : 512;
}

function encodeMessage(query: Buffer, end: number, flags: number, answers: readonly Buffer[]): Buffer {
  const header = Buffer.from(query.subarray(0, end));
  // A response with the flags authoritative, recursion desired and recursion available.
  header.writeUInt16BE(0x8580 | flags, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers.length, 6);
  header.writeUInt16BE(0, 8);
  header.writeUInt16BE(0, 10);
  return Buffer.concat([header, ...answers]);
}

function encodeRecord(owner: string, type: string, data: Buffer): Buffer {
  const fixedFields = Buffer.alloc(10);
  fixedFields.writeUInt16BE(RECORD_TYPES[type] ?? 0, 0);
  fixedFields.writeUInt16BE(1, 2);
  fixedFields.writeUInt32BE(TTL_S, 4);
  fixedFields.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(owner), fixedFields, data]);
}

function encodeRecords(entry: ZoneEntry, type: string): readonly Buffer[] {
  switch (type) {
    case 'TXT':
      return (entry.TXT ?? []).map((strings) => Buffer.concat([strings].flat().flatMap(encodeCharacterStrings)));
    case 'MX':
      return (entry.MX ?? []).map(([priority, name]) => Buffer.concat([encodeUint16(priority), encodeName(name)]));
    case 'A':
      return (entry.A ?? []).map((address) => Buffer.from(address.split('.').map(Number)));
    case 'AAAA':
      return (entry.AAAA ?? []).map(encodeIpv6);
    case 'PTR':
      return (entry.PTR ?? []).map(encodeName);
    case 'CNAME':
      return entry.CNAME === undefined ? [] : [encodeName(entry.CNAME)];
    default:
      return [];
  }
}

/** Divides a text into strings of at most 255 octets (RFC 1035 section 3.3). */
function encodeCharacterStrings(text: string): Buffer[] {
  const bytes = Buffer.from(text);
  const strings: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += 255) {
    const chunk = bytes.subarray(at, at + 255);
    strings.push(Buffer.of(chunk.length), chunk);
  }
  return strings;
}

function encodeName(name: string): Buffer {
  const labels = name === '' ? [] : name.split('.').flatMap((label) => [Buffer.of(label.length), Buffer.from(label)]);
  return Buffer.concat([...labels, Buffer.of(0)]);
}

function encodeIpv6(address: string): Buffer {
  const [leadingText = '', trailingText] = address.split('::');
  const parseGroups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)));
  const leadingGroups = parseGroups(leadingText);
  const trailingGroups = parseGroups(trailingText ?? '');
  const allGroups = [
    ...leadingGroups,
    ...new Array<number>(8 - leadingGroups.length - trailingGroups.length).fill(0),
    ...trailingGroups,
  ];
  return Buffer.concat(allGroups.map(encodeUint16));
}

function encodeUint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
