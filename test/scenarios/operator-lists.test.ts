/** Tests suppression lists through the operator API: search, explanation, import and export. */
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand, runJsonCommand, submitAccepted } from '../rig/service.ts';
import { createScenario, type RunningService, signInToService } from './running-service.ts';

const rig = createScenario();
let folder = '';
let service: RunningService;
let token = '';

beforeAll(async () => {
  folder = rig.createFolder();
  service = await rig.serve(folder);
  ({ token } = await runJsonCommand<{ token: string }>(folder, ['token', 'create', 'ci']));
});
afterAll(async () => {
  await service.stop();
});

const getUrl = (path: string) => `${service.operatorUrl}/api/v1${path}`;
const createBearerHeader = () => ({ Authorization: `Bearer ${token}` });
const get = async (path: string) =>
  (await fetch(getUrl(path), { headers: createBearerHeader() })).json() as Promise<unknown>;
const post = (path: string, body: object) =>
  fetch(getUrl(path), {
    method: 'POST',
    headers: { ...createBearerHeader(), 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });

/** Uploads a file. Resolves to the status, the content type and the parsed lines of the response. */
async function uploadList(list: string, body: string | Uint8Array, headers: Record<string, string> = {}, query = '') {
  const response = await fetch(getUrl(`/accounts/${encodeURIComponent(list)}/suppressions/import${query}`), {
    method: 'POST',
    headers: { ...createBearerHeader(), 'Content-Type': 'text/csv', ...headers },
    body: typeof body === 'string' ? body : Buffer.from(body),
  });
  const lines = (await response.text()).split('\n').filter((line) => line !== '');
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    lines: lines.map((line) => JSON.parse(line)),
  };
}

async function createAccount(name: string): Promise<string> {
  expect((await post('/accounts', { name })).status).toBe(201);
  return name;
}
const searchSuppressions = async (list: string, query: string) =>
  (await get(`/accounts/${encodeURIComponent(list)}/suppressions?${query}`)) as {
    suppressions: { address: string; reason: string }[];
    next: string | null;
  };

test('a suppression list can be searched by address and by domain, and the results are returned in pages', async () => {
  const list = await createAccount('searched');
  await uploadList(list, 'ada@example.com\nadam@example.org\nbob@example.com\nzoe@münchen.example\n');
  const searchAddresses = async (query: string) =>
    (await searchSuppressions(list, query)).suppressions.map(({ address }) => address);
  expect(await searchAddresses('search=AD')).toEqual(['ada@example.com', 'adam@example.org']);
  expect(await searchAddresses('search=%40example.com')).toEqual(['ada@example.com', 'bob@example.com']);
  expect(await searchAddresses(`search=${encodeURIComponent('@München.example')}`)).toEqual([
    'zoe@xn--mnchen-3ya.example',
  ]);
  expect(await searchAddresses('search=nobody')).toEqual([]);
  const firstPage = await searchSuppressions(list, 'search=%40exam&limit=2');
  expect(firstPage.suppressions).toHaveLength(2);
  const secondPage = await searchSuppressions(
    list,
    `search=%40exam&limit=2&after=${encodeURIComponent(firstPage.next ?? '')}`,
  );
  expect(secondPage).toMatchObject({ suppressions: [{ address: 'adam@example.org' }], next: null });
  const invalidCursor = await get(
    `/accounts/${list}/suppressions?search=bob&after=${encodeURIComponent('ada@example.com')}`,
  );
  expect(invalidCursor).toMatchObject({ result: 'error', code: 'invalid', field: 'after' });
});

test('one response names every list that contains an address, with the reason, the time and the message that caused the entry', async () => {
  const id = await submitAccepted(service.publicUrl, service.key, { to: 'why@example.com' });
  // The entry is the same as after a hard bounce of the message.
  const store = await rig.openStore(folder);
  await store.addSuppressions('default', [
    { address: 'why@example.com', reason: 'bounce', source: id, at: Date.now() },
  ]);
  await post('/accounts/*/suppressions', { address: 'why@example.com', reason: 'complaint' });
  expect(await get('/suppressions/Why%40Example.com')).toEqual({
    address: 'why@example.com',
    suppressed: true,
    lists: [
      { list: '*', reason: 'complaint', source: null, at: expect.stringMatching(/Z$/) },
      { list: 'default', reason: 'bounce', source: id, at: expect.stringMatching(/Z$/) },
    ],
  });
  expect(await get('/suppressions/free%40example.com')).toEqual({
    address: 'free@example.com',
    suppressed: false,
    lists: [],
  });
});

describe('imports', () => {
  test('an import of a large file reports its progress and its result, and an export of the list contains the imported addresses', async () => {
    const list = await createAccount('large');
    const rows = Array.from({ length: 60_000 }, (_, n) => `user${n}@large.example,bounce,2026-01-02T03:04:05.000Z,\n`);
    const { status, type, lines } = await uploadList(list, `address,reason,at,source\n${rows.join('')}nonsense,,,\n`);
    expect([status, type]).toEqual([200, 'application/x-ndjson; charset=utf-8']);
    const progress = lines.slice(0, -1) as { read: number; bytes: number; total: number }[];
    expect(progress.length).toBeGreaterThan(1);
    expect(progress.every(({ bytes, total }) => bytes <= total)).toBe(true);
    expect(progress.at(-1)).toMatchObject({ read: 60_001, added: 60_000, known: 0, skipped: 1 });
    expect(lines.at(-1)).toEqual({
      result: 'ok',
      read: 60_001,
      added: 60_000,
      known: 0,
      skipped: [{ line: 60_002, reason: '"nonsense" is not an email address' }],
      skippedCount: 1,
      excluded: [],
      reasons: [{ reason: 'bounce', count: 60_000 }],
      format: null,
      dryRun: false,
    });
    const repeatedImport = await uploadList(list, rows.slice(0, 10).join(''));
    expect(repeatedImport.lines.at(-1)).toMatchObject({ added: 0, known: 10 });
    const response = await fetch(getUrl(`/accounts/${list}/suppressions/export`), { headers: createBearerHeader() });
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(response.headers.get('content-disposition')).toContain('attachment; filename="suppressions-large.csv"');
    const exportedText = await response.text();
    expect(exportedText.split('\n').sort()).toEqual(
      ['address,reason,at,source', ...rows.map((row) => row.trim()), ''].sort(),
    );
    const secondList = await createAccount('copy');
    expect((await uploadList(secondList, exportedText)).lines.at(-1)).toMatchObject({ added: 60_000, skippedCount: 0 });
    expect(await get('/audit?limit=4')).toMatchObject([
      { actor: 'token:ci', action: 'suppression.import', target: 'copy', after: { added: 60_000 } },
      { action: 'account.create' },
      { action: 'suppression.import', target: 'large', after: { read: 10, added: 0, known: 10, skipped: 0 } },
      { action: 'suppression.import', target: 'large', after: { read: 60_001, added: 60_000, known: 0, skipped: 1 } },
    ]);
  });

  test('a JSON response from the API of a provider is imported, and a dry run reports the same numbers of rows but adds none', async () => {
    const list = await createAccount('json');
    const body = JSON.stringify({
      object: 'list',
      data: [
        { email: 'ada@example.com', origin: 'bounce', created_at: '2026-10-07T08:12:03.412Z' },
        { email: 'bob@example.com', origin: 'complaint', created_at: '2026-10-07T08:12:03.412Z' },
        { email: 'nobody', origin: 'bounce', created_at: '2026-10-07T08:12:03.412Z' },
      ],
    });
    const headers = { 'Content-Type': 'application/json' };
    const counts = {
      result: 'ok',
      read: 3,
      skippedCount: 1,
      format: 'suppressions of Resend',
      reasons: [
        { reason: 'bounce', count: 1 },
        { reason: 'complaint', count: 1 },
      ],
    };
    const dryRun = await uploadList(list, body, headers, '?dryRun=true');
    expect(dryRun.lines).toMatchObject([{ ...counts, added: 0, dryRun: true }]);
    expect((await searchSuppressions(list, '')).suppressions).toEqual([]);
    expect((await uploadList(list, body, headers)).lines.at(-1)).toMatchObject({ ...counts, added: 2, dryRun: false });
    expect((await searchSuppressions(list, '')).suppressions).toMatchObject([
      { address: 'ada@example.com', reason: 'bounce', at: '2026-10-07T08:12:03.412Z' },
      { address: 'bob@example.com', reason: 'complaint' },
    ]);
  });

  test('for rows that contain no reason, an import uses the reason in its query string', async () => {
    const list = await createAccount('reasons');
    await uploadList(list, 'ada@example.com\nbob@example.com,bounce\n', {}, '?reason=complaint');
    expect((await searchSuppressions(list, '')).suppressions).toMatchObject([
      { reason: 'complaint' },
      { reason: 'bounce' },
    ]);
  });

  test.each([
    ['empty', '', 400, /^the upload is empty/],
    ['JSON', '{\n"a": 1\n}\n', 400, /^the upload contains no address to import/],
    ['binary', Uint8Array.of(0, 1, 2, 3, 10), 400, /^the upload is not CSV: line 1 contains binary data/],
    ['a spreadsheet', Uint8Array.of(0x50, 0x4b, 3, 4, 5, 6), 400, /^the upload is a spreadsheet/],
    ['an unknown header', 'Contact,State\nada@example.com,gone\n', 400, /^the upload has an unknown header/],
    ['Latin-1', Buffer.from('j\xfcrgen@example.com\n', 'latin1'), 400, /is not UTF-8 text/],
    ['an unclosed quote', 'ada@example.com\n"bob@example.com\n', 400, /^the upload cannot be read from line 2 on/],
  ])(
    'an import of an unusable file is refused with a one-line error, and no row is added: %s',
    async (_, body, status, message) => {
      const answer = await uploadList('default', body);
      expect([answer.status, answer.lines]).toEqual([
        status,
        [{ result: 'error', code: expect.any(String), message: expect.stringMatching(message) }],
      ]);
      expect((await searchSuppressions('default', 'search=ada')).suppressions).toEqual([]);
    },
  );

  test.each([
    ['/accounts/unknown/suppressions/import', {}, 404, /^there is no account "unknown"/],
    ['/accounts/default/suppressions/import?reason=spite', {}, 400, /^reason: "spite" is not one of/],
    ['/accounts/default/suppressions/import?color=red', {}, 400, /^Unknown parameter in the query: "color"$/],
    ['/accounts/default/suppressions/import', { 'Content-Type': 'text/plain' }, 415, /^Content-Type must be text\/csv/],
    [
      '/accounts/default/suppressions/import',
      { 'Content-Type': 'multipart/form-data' },
      415,
      /^Content-Type must be text\/csv/,
    ],
    ['/accounts/default/suppressions/import', { Authorization: 'Bearer po_no' }, 401, /^The token is unknown/],
    ['/accounts/default/suppressions', {}, 415, /Unsupported Media Type/],
  ])('to %s with the headers %j are refused with status %s', async (path, headers, status, message) => {
    const response = await fetch(getUrl(path), {
      method: 'POST',
      headers: { ...createBearerHeader(), 'Content-Type': 'text/csv', ...headers },
      body: 'ada@example.com\n',
    });
    expect([response.status, await response.json()]).toMatchObject([
      status,
      { result: 'error', code: expect.any(String), message: expect.stringMatching(message) },
    ]);
  });

  test('a cross-origin request for an import is refused', async () => {
    const newService = await rig.serve(rig.createFolder());
    const session = await signInToService(newService);
    const send = (origin: string) =>
      fetch(`${newService.operatorUrl}/api/v1/accounts/default/suppressions/import`, {
        method: 'POST',
        headers: { ...session, Origin: origin, 'Content-Type': 'text/csv' },
        body: 'ada@example.com\n',
      });
    expect((await send('https://evil.example')).status).toBe(403);
    expect((await send(newService.operatorUrl)).status).toBe(200);
    await newService.stop();
  });

  test('an import with a Content-Length that is too large is refused before its body is sent', async () => {
    const { status, text } = await sendRaw((socket, head) => {
      socket.write(head('Content-Length: 300000000'));
    });
    expect([status, text]).toEqual([413, expect.stringContaining('is larger than 200 MB')]);
  });

  test.each([
    ['too large', 300_000_000, 413, /is larger than 200 MB/],
    ['not a list of addresses', 40_000_000, 400, /contains no address to import/],
  ])('an import whose file is %s is refused while its body is still being sent', async (_, size, status, message) => {
    const answer = await sendRaw((socket, head) => {
      socket.write(head(`Content-Length: ${size}`));
      socket.write('nonsense\n'.repeat(4_000_000));
    });
    expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(message)]);
  });

  test('an import is refused while four other imports run', async () => {
    const { hostname, port } = new URL(service.operatorUrl);
    const list = await createAccount('queueing');
    // Of the five requests, the one that arrives last is refused. No request is sent completely, so the other four
    // imports remain in progress.
    const refusedResponse = Promise.withResolvers<string>();
    const sockets = Array.from({ length: 5 }, () => {
      const socket = connect(Number(port), hostname, () =>
        socket.write(`${createRequestHead(list, 'Content-Length: 1000000')}eve@example.com\n`),
      );
      return socket.once('data', (chunk: Buffer) => refusedResponse.resolve(chunk.toString()));
    });
    expect(await refusedResponse.promise).toMatch(/^HTTP\/1\.1 429 /);
    expect((await uploadList(list, 'bob@example.com\n')).lines).toEqual([
      {
        result: 'error',
        code: 'rate-limited',
        message: '4 imports are in progress; retry after one of them has ended',
      },
    ]);
    for (const socket of sockets) socket.destroy();
    await expect.poll(async () => (await uploadList(list, 'bob@example.com\n')).status).toBe(200);
  });

  test('if a shutdown interrupts an import, the audit log contains the number of added rows, and a repeated import adds the missing rows', async () => {
    const separateFolder = rig.createFolder();
    const firstService = await rig.serve(separateFolder);
    const session = await signInToService(firstService);
    const body = Array.from({ length: 60_000 }, (_, n) => `user${n}@stopped.example\n`).join('');
    const send = ({ operatorUrl }: RunningService, headers: Record<string, string>) =>
      fetch(`${operatorUrl}/api/v1/accounts/default/suppressions/import`, {
        method: 'POST',
        headers: { ...headers, Origin: operatorUrl, 'Content-Type': 'text/csv' },
        body,
      });
    const response = await send(firstService, { ...session });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let progress = '';
    while (reader !== undefined && !/"added":[1-9]/.test(progress)) {
      const { value, done } = await reader.read();
      if (done) break;
      progress += value;
    }
    expect(await firstService.stop()).toBe(0);
    const entries = await runJsonCommand<{ action: string; after: { added: number } }[]>(separateFolder, ['audit']);
    expect(entries).toMatchObject([
      { action: 'suppression.import', after: { added: expect.any(Number), bytes: body.length, stopped: true } },
    ]);
    const addedCount = entries[0]?.after.added ?? 0;
    expect(addedCount).toBeGreaterThan(0);
    expect(addedCount).toBeLessThan(60_000);
    const restartedService = await rig.serve(separateFolder);
    const lines = (await (await send(restartedService, { ...(await signInToService(restartedService)) })).text())
      .trim()
      .split('\n');
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
      result: 'ok',
      added: 60_000 - addedCount,
      known: addedCount,
    });
    await restartedService.stop();
  });

  test('an import whose connection fails before the file is complete adds no row, and the service continues to run', async () => {
    const list = await createAccount('broken');
    await new Promise<void>((resolve) => {
      const { hostname, port } = new URL(service.operatorUrl);
      const socket = connect(Number(port), hostname, () => {
        socket.write(createRequestHead(list, 'Content-Length: 1000000'));
        socket.write('eve@example.com\n'.repeat(20_000), () => socket.destroy());
      });
      socket.on('close', () => resolve());
    });
    expect((await uploadList(list, 'bob@example.com\n')).lines.at(-1)).toMatchObject({ added: 1 });
    expect((await searchSuppressions(list, '')).suppressions.map(({ address }) => address)).toEqual([
      'bob@example.com',
    ]);
    // The service unlinks the temporary file of an import immediately, so the test checks only that no row was added.
    expect((await runCommand(folder, ['suppression', 'show', 'eve@example.com'])).stdout).toMatch(
      /is on no suppression list/,
    );
  });

  test('an import whose file was received completely adds all rows, even if the client disconnects before the import ends', async () => {
    const list = await createAccount('left');
    const body = Array.from({ length: 30_000 }, (_, n) => `user${n}@left.example\n`).join('');
    await new Promise<void>((resolve) => {
      const { hostname, port } = new URL(service.operatorUrl);
      const socket = connect(Number(port), hostname, () => {
        socket.write(createRequestHead(list, `Content-Length: ${body.length}`));
        socket.write(body);
      });
      // The service sends the first line of the response when it has received the complete file.
      socket.once('data', () => socket.destroy());
      socket.on('close', () => resolve());
    });
    await expect.poll(async () => (await searchSuppressions(list, 'search=user29999')).suppressions.length).toBe(1);
    await expect
      .poll(() => get('/audit?limit=1'))
      .toMatchObject([{ action: 'suppression.import', target: 'left', after: { added: 30_000 } }]);
  });
});

test('an export of the list of an unknown account returns 404, and an export without a token returns 401', async () => {
  const response = await fetch(getUrl('/accounts/unknown/suppressions/export'), { headers: createBearerHeader() });
  expect([response.status, await response.json()]).toMatchObject([
    404,
    { message: expect.stringMatching(/^there is no account/) },
  ]);
  expect((await fetch(getUrl('/accounts/default/suppressions/export'))).status).toBe(401);
});

test('when two operators change the same account, the second change is refused with the current values, and the first change is kept', async () => {
  const name = await createAccount('contested');
  const initialAccount = (await get(`/accounts/${name}`)) as { version: string };
  const change = (body: object) =>
    fetch(getUrl(`/accounts/${name}`), {
      method: 'PATCH',
      headers: { ...createBearerHeader(), 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  expect((await change({ rate: '100/1h', maxBounces: '20%', expected: initialAccount.version })).status).toBe(200);
  const conflictingChange = await change({ throttle: '5/s', maxComplaints: '1%', expected: initialAccount.version });
  expect([conflictingChange.status, await conflictingChange.json()]).toEqual([
    409,
    {
      result: 'error',
      code: 'conflict',
      message:
        'account "contested" was changed by another request, so this change was not made; compare the current values and repeat the change: active, volume unlimited, rate 100/1h, throttle none, lock thresholds: 20 % hard bounces, 0.15 % complaints',
    },
  ]);
  expect((await post(`/accounts/${name}/lock`, { reason: 'x', expected: initialAccount.version })).status).toBe(409);
  const currentAccount = (await get(`/accounts/${name}`)) as { version: string };
  expect(currentAccount).toMatchObject({ state: 'active', throttle: null, maxComplaints: 0.0015 });
  expect((await post(`/accounts/${name}/lock`, { reason: 'unpaid', expected: currentAccount.version })).status).toBe(
    200,
  );
  expect((await post(`/accounts/${name}/unlock`, { expected: currentAccount.version })).status).toBe(409);
  expect((await post(`/accounts/${name}/unlock`, {})).status).toBe(200);
});

test('the details of an account contain its limits, their usage and its reputation as numbers', async () => {
  await post('/accounts', { name: 'gauged', volume: '100', rate: '50/1h', throttle: '5/s:20' });
  const { key } = (await (await post('/accounts/gauged/keys', {})).json()) as { key: string };
  await expect
    .poll(() =>
      submitAccepted(service.publicUrl, key).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  expect(await get('/accounts/gauged')).toMatchObject({
    volume: 100,
    volumeUsed: 1,
    rateLimit: 50,
    ratePeriodMs: 3_600_000,
    rateUsed: 1,
    rateResets: expect.stringMatching(/Z$/),
    throttlePerSecond: 5,
    throttleBurst: 20,
    reputation: {
      status: 'good',
      thresholds: [
        { metric: 'bounces', count: 0, limitType: 'count', limit: 10, usage: 0 },
        { metric: 'complaints', count: 0, limitType: 'count', limit: 2, usage: 0 },
      ],
    },
  });
  const accounts = (await get('/accounts')) as { name: string; reputation: { emails: number } }[];
  expect(accounts.every(({ reputation }) => reputation.emails >= 0)).toBe(true);
});

test('the details of a domain contain its account, its keys and the check result of each DNS record, and a key rotation can be cancelled', async () => {
  await post('/accounts/default/domains', { domain: 'shop.example', subdomains: true });
  const domain = (await get('/domains/shop.example')) as {
    records: { found: string; observed: string[]; key: string | null }[];
  };
  expect(domain).toMatchObject({
    account: 'default',
    status: 'pending',
    subdomains: true,
    checked: null,
    sends: false,
  });
  expect(domain.records[0]).toMatchObject({ found: 'unknown', observed: [], detail: null, key: 'active' });
  expect(await (await post('/domains/shop.example/rotate', {})).json()).toMatchObject({
    keys: expect.arrayContaining([expect.objectContaining({ state: 'staged' })]),
  });
  const cancelledRotation = (await (await post('/domains/shop.example/rotate', { cancel: true })).json()) as {
    keys: { state: string }[];
  };
  expect(cancelledRotation.keys.map(({ state }) => state)).toEqual(['active', 'active']);
  const changeResponse = await fetch(getUrl('/domains/shop.example'), {
    method: 'PATCH',
    headers: { ...createBearerHeader(), 'Content-Type': 'application/json' },
    body: JSON.stringify({ subdomains: false }),
  });
  expect(await changeResponse.json()).toMatchObject({ subdomains: false });
});

function createRequestHead(list: string, extraHeader: string): string {
  return `POST /api/v1/accounts/${list}/suppressions/import HTTP/1.1\r\nHost: ${new URL(service.operatorUrl).host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: text/csv\r\n${extraHeader}\r\n\r\n`;
}

/** Sends a request over a TCP socket and resolves to the response. */
function sendRaw(
  write: (socket: ReturnType<typeof connect>, head: (extraHeader: string) => string) => void,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(service.operatorUrl);
    let text = '';
    const socket = connect(Number(port), hostname, () =>
      write(socket, (extraHeader) => createRequestHead('default', extraHeader)),
    );
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      // After its response, the service reads the rest of the request for some time before it closes the connection.
      // The test does not wait for this.
      if (text.endsWith('}')) socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve({ status: Number(text.slice(9, 12)), text }));
  });
}
