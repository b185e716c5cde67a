import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { NO_LIMITS } from '../rig/messages.ts';
import { runJsonCommand } from '../rig/service.ts';
import { createScenario, signInToService } from './running-service.ts';

const rig = createScenario();
const folder = rig.createFolder();
let service = await rig.serve(folder);
const { token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']);

const getUrl = (path: string) => `${service.operatorUrl}/api/v1${path}`;
const createBearerHeader = () => ({ Authorization: `Bearer ${token}` });
const get = async (path: string) =>
  (await fetch(getUrl(path), { headers: createBearerHeader() })).json() as Promise<unknown>;

async function uploadList(list: string, body: string) {
  const response = await fetch(getUrl(`/accounts/${list}/suppressions/import`), {
    method: 'POST',
    headers: { ...createBearerHeader(), 'Content-Type': 'text/csv' },
    body,
  });
  const lines = (await response.text()).split('\n').filter((line) => line !== '');
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    lines: lines.map((line) => JSON.parse(line)),
  };
}

async function createAccount(name: string): Promise<string> {
  const store = await rig.openStore(folder);
  await store.createAccount(name, NO_LIMITS, Date.now());
  return name;
}
const listEntries = async (list: string) =>
  ((await get(`/accounts/${list}/suppressions`)) as { suppressions: { address: string; reason: string }[] })
    .suppressions;
const createRows = (count: number, domain: string) =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}\n`).join('');

test('an import reports its progress and its result, and an export of the list contains the imported addresses', async () => {
  const list = await createAccount('large');
  const rows = Array.from({ length: 6_000 }, (_, n) => `user${n}@large.example,bounce,2026-01-02T03:04:05.000Z,,\n`);
  const { status, type, lines } = await uploadList(
    list,
    `address,reason,at,source,expires\n${rows.join('')}nonsense,,,,\n`,
  );
  expect([status, type]).toEqual([200, 'application/x-ndjson; charset=utf-8']);
  expect(lines.length).toBeGreaterThan(2);
  expect(lines.at(-1)).toMatchObject({ result: 'ok', read: 6_001, added: 6_000, skippedCount: 1 });
  const response = await fetch(getUrl(`/accounts/${list}/suppressions/export`), { headers: createBearerHeader() });
  expect(response.headers.get('content-disposition')).toContain('attachment; filename="suppressions-large.csv"');
  const exportedRows = (await response.text()).split('\n').sort();
  expect(exportedRows).toEqual(['address,reason,at,source,expires', ...rows.map((row) => row.trim()), ''].sort());
  expect(await get('/audit?limit=1')).toMatchObject([
    { actor: 'token:ci', action: 'suppression.import', target: list, after: { added: 6_000, skipped: 1 } },
  ]);
});

function openImport(list: string, contentLength: number): Socket {
  const { hostname, port, host } = new URL(service.operatorUrl);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /api/v1/accounts/${list}/suppressions/import HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: text/csv\r\nContent-Length: ${contentLength}\r\n\r\n`,
  );
  return socket;
}

function readResponse(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      // After its response, the service reads the rest of the request for some time before it closes the connection.
      if (!text.endsWith('}')) return;
      resolve(text);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

test('an import that is too large or no list of addresses is refused before its body has been sent', async () => {
  expect(await readResponse(openImport('default', 300_000_000))).toMatch(/^HTTP\/1\.1 413 .*is larger than 200 MB/s);
  const socket = openImport('default', 40_000_000);
  socket.write('nonsense\n'.repeat(4_000_000));
  expect(await readResponse(socket)).toMatch(/^HTTP\/1\.1 400 .*contains no address to import/s);
});

test('an import is refused while four other imports run', async () => {
  const list = await createAccount('queueing');
  // Of the five requests, the one that arrives last is refused. No request is sent completely, so the other four imports
  // remain in progress.
  const refusal = Promise.withResolvers<string>();
  const sockets = Array.from({ length: 5 }, () => {
    const socket = openImport(list, 1_000_000);
    socket.write('eve@example.com\n');
    return socket.once('data', (chunk: Buffer) => refusal.resolve(chunk.toString()));
  });
  expect(await refusal.promise).toMatch(/^HTTP\/1\.1 429 /);
  expect((await uploadList(list, 'bob@example.com\n')).lines).toMatchObject([{ code: 'rate-limited' }]);
  for (const socket of sockets) socket.destroy();
  await expect.poll(async () => (await uploadList(list, 'bob@example.com\n')).status).toBe(200);
});

test('an import adds all rows or none if its connection fails, depending on whether the file was complete', async () => {
  const list = await createAccount('broken');
  const closeConnection = async (socket: Socket, event: 'data' | 'drain') => {
    socket.once(event, () => socket.destroy());
    await new Promise((resolve) => socket.on('close', resolve));
  };
  const incompleteImport = openImport(list, 1_000_000);
  incompleteImport.write('eve@example.com\n'.repeat(20_000));
  await closeConnection(incompleteImport, 'drain');
  expect((await uploadList(list, 'bob@example.com\n')).lines.at(-1)).toMatchObject({ added: 1 });
  expect((await listEntries(list)).map(({ address }) => address)).toEqual(['bob@example.com']);

  const body = createRows(3_000, 'left.example');
  const completeImport = openImport(list, body.length);
  completeImport.write(body);
  // The service sends the first line of the response when it has received the complete file.
  await closeConnection(completeImport, 'data');
  await expect
    .poll(() => get('/audit?limit=1'))
    .toMatchObject([{ action: 'suppression.import', target: list, after: { added: 3_000 } }]);
});

test('a page can import a list only from the origin of the listener, and a shutdown ends the import after a batch', async () => {
  const session = await signInToService(service);
  const body = createRows(20_000, 'stopped.example');
  const send = (origin: string) =>
    fetch(getUrl('/accounts/default/suppressions/import'), {
      method: 'POST',
      headers: { ...session, Origin: origin, 'Content-Type': 'text/csv' },
      body,
    });
  expect((await send('https://evil.example')).status).toBe(403);
  const reader = (await send(service.operatorUrl)).body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let progress = ''; !/"added":[1-9]/.test(progress); ) progress += (await reader?.read())?.value;
  await service.stop();
  const store = await rig.openStore(folder);
  const [entry] = await store.listAudit(null, 1);
  const { added, ...after } = JSON.parse(entry?.after ?? '{}') as { added: number };
  expect([entry?.action, after]).toMatchObject(['suppression.import', { bytes: body.length, stopped: true }]);
  const result = await store.listSuppressions('default', null, 30_000);
  const addresses = result.kind === 'done' ? result.value.map(({ address }) => address) : [];
  expect(addresses.filter((address) => address.endsWith('@stopped.example')).length).toBe(added);
  expect(added).toBeGreaterThan(0);
  expect(added).toBeLessThan(20_000);
  service = await rig.serve(folder);
});
