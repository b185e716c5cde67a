/** Tests the rules of the interface specification and of the product with a real process. */
import PostalMime from 'postal-mime';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { runJsonCommand, submit, submitAccepted } from '../rig/service.ts';
import type { SessionHeaders } from '../rig/session.ts';
import {
  type Answer,
  countValues,
  createScenario,
  type RunningService,
  readMessageId,
  sendRequest,
  signInToService,
} from './running-service.ts';

const rig = createScenario();
const VALID_REQUEST = {
  to: 'rita@example.com',
  from: 'shop@example.org',
  subject: 'Your receipt',
  message: 'Thank you.',
};
const MIB = 1_048_576;

let folder = '';
let service: RunningService;
let store: Store;
/** The request headers of a signed-in operator. */
let session: SessionHeaders;
/** A service with a relay and the default sender policy. */
let serviceWithRelay: RunningService;

beforeAll(async () => {
  folder = rig.createFolder();
  [service, serviceWithRelay] = await Promise.all([
    rig.serve(folder),
    rig.serve(rig.createFolder(), { POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1' }),
  ]);
  store = await rig.openStore(folder);
  session = await signInToService(service);
});

interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string | null;
  readonly type?: string | null;
  readonly headers?: Record<string, string>;
  /** Text and bytes are sent unchanged, other values as JSON. */
  readonly body?: unknown;
}

function sendTo(at: RunningService, request: Request): Promise<Answer> {
  const {
    method = 'POST',
    path = '/api/v1/send-mail',
    key = at.key,
    type = 'application/json',
    body = VALID_REQUEST,
  } = request;
  const headers = new Headers(request.headers);
  if (key !== null) headers.set('Authorization', key);
  if (type !== null) headers.set('Content-Type', type);
  const bytes = body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return sendRequest(at.publicUrl + path, {
    method,
    headers,
    ...(method === 'GET' || method === 'HEAD' ? {} : { body: new Uint8Array(bytes) }),
  });
}

type Row = readonly [what: string, request: Request, status: number, message: string];
const INVALID_KEY = 'Invalid API key';
const INVALID_JSON = 'Invalid JSON payload';
const CONTENT_TYPE_ERROR = 'Content-Type must be application/json';
const ALL_FIELDS_MISSING = 'Missing required fields: to, from, subject, message';
const LONG_LOCAL_PART_ADDRESS = `${'l'.repeat(65)}@example.com`;
const LONG_ADDRESS = `${'l'.repeat(64)}@${`${'d'.repeat(60)}.`.repeat(3)}example.com`;

const REFUSED_REQUESTS: readonly Row[] = [
  ['an unknown path', { path: '/nowhere' }, 404, 'Not found'],
  ['an unknown path without a key', { path: '/api/v1/send-mail/x', key: null }, 404, 'Not found'],
  ['an unknown version', { path: '/api/v2/send-mail' }, 404, 'Not found'],
  ['another method', { method: 'PUT' }, 405, 'Method not allowed'],
  ['GET', { method: 'GET', key: null, type: null }, 405, 'Method not allowed'],
  ['no key', { key: null }, 401, INVALID_KEY],
  ['an empty key', { key: '' }, 401, INVALID_KEY],
  ['an unknown key', { key: `pr_${'A'.repeat(43)}` }, 401, INVALID_KEY],
  ['a very long key', { key: 'k'.repeat(8_000) }, 401, INVALID_KEY],
  ['a missing key is reported before other errors', { key: null, type: 'text/plain', body: 'x' }, 401, INVALID_KEY],
  ['no content type', { type: null }, 400, CONTENT_TYPE_ERROR],
  ['another content type', { type: 'text/plain' }, 400, CONTENT_TYPE_ERROR],
  [
    'a content type that begins with application/json but has a longer name',
    { type: 'application/json-patch+json' },
    400,
    CONTENT_TYPE_ERROR,
  ],
  [
    'a wrong content type is reported before an invalid body',
    { type: 'text/plain', body: '{' },
    400,
    CONTENT_TYPE_ERROR,
  ],
  ['a body that is larger than the limit', { body: ' '.repeat(MIB + 1) }, 400, 'Request body too large'],
  ['an empty body', { body: '' }, 400, INVALID_JSON],
  ['a body that is not JSON', { body: '{"to":' }, 400, INVALID_JSON],
  ['JSON followed by other text', { body: `${JSON.stringify(VALID_REQUEST)}x` }, 400, INVALID_JSON],
  ['a list', { body: [] }, 400, INVALID_JSON],
  ['a string', { body: '"to"' }, 400, INVALID_JSON],
  ['null', { body: 'null' }, 400, INVALID_JSON],
  ['bytes that are not UTF-8', { body: Buffer.from('7b22746f223a22ff227d', 'hex') }, 400, INVALID_JSON],
  ['no fields', { body: {} }, 400, ALL_FIELDS_MISSING],
  [
    'null and empty fields',
    { body: { to: null, from: '', subject: 'x' } },
    400,
    'Missing required fields: to, from, message',
  ],
  [
    'a missing field is reported before a field of a wrong type',
    { body: { ...VALID_REQUEST, to: 5, subject: '' } },
    400,
    'Missing required fields: subject',
  ],
  ['fields that exist only in a prototype', { body: '{"__proto__":{"to":"a@b.example"}}' }, 400, ALL_FIELDS_MISSING],
  [
    'fields that are not strings',
    { body: { ...VALID_REQUEST, to: ['rita@example.com'], subject: 5 } },
    400,
    'Fields must be strings: to, subject',
  ],
  ['false', { body: { ...VALID_REQUEST, message: false } }, 400, 'Fields must be strings: message'],
  ['a recipient that is not an address', { body: { ...VALID_REQUEST, to: 'rita' } }, 400, 'Invalid email address: to'],
  [
    'two values that are not addresses',
    { body: { ...VALID_REQUEST, to: 'rita', from: '@' } },
    400,
    'Invalid email address: to, from',
  ],
  [
    'a display name',
    { body: { ...VALID_REQUEST, from: 'Shop <shop@example.org>' } },
    400,
    'Invalid email address: from',
  ],
  [
    'two recipients',
    { body: { ...VALID_REQUEST, to: 'a@example.com,b@example.com' } },
    400,
    'Invalid email address: to',
  ],
  ['an address literal', { body: { ...VALID_REQUEST, to: 'a@[127.0.0.1]' } }, 400, 'Invalid email address: to'],
  ['a single label', { body: { ...VALID_REQUEST, to: 'root@localhost' } }, 400, 'Invalid email address: to'],
  [
    'a line break in an address',
    { body: { ...VALID_REQUEST, to: 'a@example.com\r\nBcc: b@example.com' } },
    400,
    'Invalid email address: to',
  ],
  [
    '65 octets before the @',
    { body: { ...VALID_REQUEST, to: LONG_LOCAL_PART_ADDRESS } },
    400,
    'Invalid email address: to',
  ],
  ['255 octets and more', { body: { ...VALID_REQUEST, to: LONG_ADDRESS } }, 400, 'Invalid email address: to'],
  [
    'a line break in the subject',
    { body: { ...VALID_REQUEST, subject: 'a\r\nBcc: b@example.com' } },
    400,
    'Invalid subject: line breaks are not allowed',
  ],
  [
    '999 bytes of subject',
    { body: { ...VALID_REQUEST, subject: 's'.repeat(999) } },
    400,
    'Invalid subject: more than 998 bytes in UTF-8 are not allowed',
  ],
  ['a NUL in an address', { body: { ...VALID_REQUEST, to: 'rita\0@example.com' } }, 400, 'Invalid email address: to'],
  [
    'a NUL in both addresses',
    { body: { ...VALID_REQUEST, to: 'a\0', from: '\0' } },
    400,
    'Invalid email address: to, from',
  ],
  ['a NUL', { body: { ...VALID_REQUEST, message: 'a\0b' } }, 400, 'Invalid message: NUL characters are not allowed'],
  [
    'an unpaired surrogate',
    { body: { ...VALID_REQUEST, subject: 'a\ud800' } },
    400,
    'Invalid subject: unpaired surrogates are not allowed',
  ],
  [
    'an empty Idempotency-Key',
    { headers: { 'Idempotency-Key': '' } },
    400,
    'Invalid Idempotency-Key: must be 1 to 255 visible ASCII characters, in one header',
  ],
  [
    'a long Idempotency-Key',
    { headers: { 'Idempotency-Key': 'k'.repeat(256) } },
    400,
    'Invalid Idempotency-Key: must be 1 to 255 visible ASCII characters, in one header',
  ],
];

describe('refusals', () => {
  test.each(REFUSED_REQUESTS)(
    'a refused request receives the specified status and message: %s',
    async (_case, request, status, message) => {
      const answer = await sendTo(service, request);
      expect([answer.status, answer.text]).toEqual([status, JSON.stringify({ result: 'error', message })]);
      expect(answer.headers.get('content-type')).toBe('application/json');
      expect([answer.headers.get('server'), answer.headers.get('x-powered-by')]).toEqual([null, null]);
      expect(answer.headers.get('allow')).toBe(status === 405 ? 'POST' : null);
    },
  );

  test.each(['Bearer', 'bearer', 'Basic', 'ApiKey'])(
    'a key that follows an authentication scheme (%s) is refused',
    async (scheme) => {
      const answer = await sendTo(service, { key: `${scheme} ${service.key}` });
      expect([answer.status, answer.text]).toEqual([401, `{"result":"error","message":"${INVALID_KEY}"}`]);
    },
  );

  test('a message from a domain that is not authenticated is refused with 403, with the reason in a header', async () => {
    const answer = await sendTo(serviceWithRelay, {});
    expect([answer.status, answer.text, answer.headers.get('postrider-reason')]).toEqual([
      403,
      '{"result":"error","message":"Invalid tokens or rate limit exceeded"}',
      'sender-not-authenticated',
    ]);
  });

  test('no refused request stores a message', async () => {
    const messagesBefore = await runJsonCommand<unknown[]>(folder, ['message', 'list', '--limit', '1000']);
    await Promise.all(REFUSED_REQUESTS.map(([, request]) => sendTo(service, request)));
    expect(await runJsonCommand<unknown[]>(folder, ['message', 'list', '--limit', '1000'])).toEqual(messagesBefore);
  });
});

const ACCEPTED_REQUESTS: readonly (readonly [what: string, request: Request])[] = [
  ['the four fields', {}],
  ['unknown members', { body: { ...VALID_REQUEST, cc: 'x', result: 1 } }],
  ['a content type with a parameter', { type: 'Application/JSON; charset=UTF-8' }],
  ['a query string', { path: '/api/v1/send-mail?x=1' }],
  ['998 bytes of subject', { body: { ...VALID_REQUEST, subject: 'é'.repeat(499) } }],
  ['64 octets before the @', { body: { ...VALID_REQUEST, to: `${'l'.repeat(64)}@example.com` } }],
  ['a quoted local part', { body: { ...VALID_REQUEST, to: '"rita rose"@example.com' } }],
  ['an international address', { body: { ...VALID_REQUEST, to: 'rité@bücher.example' } }],
  ['a body whose size is exactly the limit', { body: JSON.stringify(VALID_REQUEST).padEnd(MIB, ' ') }],
  ['an Idempotency-Key of 255 characters', { headers: { 'Idempotency-Key': '~'.repeat(255) } }],
];

test.each(ACCEPTED_REQUESTS)('a request with %s is accepted', async (_case, request) => {
  const answer = await sendTo(service, request);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([201, 'application/json']);
  readMessageId(answer.text);
  expect([answer.headers.get('server'), answer.headers.get('ratelimit')]).toEqual([null, null]);
});

test('the health checks need no key and return 200 while the store answers', async () => {
  for (const path of ['/healthz', '/readyz']) {
    const answer = await sendRequest(service.publicUrl + path);
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([200, { result: 'ok' }]);
  }
});

describe('message content', () => {
  const fetchParsedMessage = async (fields: Partial<typeof VALID_REQUEST>) => {
    const id = await submitAccepted(service.publicUrl, service.key, fields);
    const path = `${service.operatorUrl}/api/v1/inbox/${id}/source`;
    await expect.poll(async () => (await sendRequest(path, { headers: session })).status).toBe(200);
    const source = Buffer.from(await (await fetch(path, { headers: session })).arrayBuffer());
    return { source, parsedMessage: await PostalMime.parse(source) };
  };

  test('a message with any Unicode text arrives unchanged after decoding', async () => {
    const subject = '  Ünïcödé 🚀 =?utf-8?q?no?=  ';
    const message = `.dot\n..dots\r\n\tTäb 🚀 ${'lang'.repeat(400)}\nFrom here\n`;
    const { source, parsedMessage } = await fetchParsedMessage({ subject, message });
    expect(parsedMessage.text?.replaceAll('\r\n', '\n').trimEnd()).toBe(message.replaceAll('\r\n', '\n').trimEnd());
    expect(parsedMessage.subject?.trim()).toBe(subject.trim());
    expect(parsedMessage.html).toBeUndefined();
    const lines = source.toString('latin1').split('\r\n');
    expect(lines.filter((line) => line.length > 998 || /[\r\n]/.test(line))).toEqual([]);
  });

  test.each(['\n <!DOCTYPE HTML><html><p>Hé</p></html>', '<HtMl lang="en"><p>Hé</p></HtMl>'])(
    'a message that begins with an HTML doctype or tag is sent as HTML with a text part: %j',
    async (message) => {
      const { parsedMessage } = await fetchParsedMessage({ message });
      expect(parsedMessage.html?.trim()).toBe(message.trim());
      expect(parsedMessage.text?.trim()).toBe('Hé');
    },
  );

  test('a message that contains HTML after other text is sent as plain text', async () => {
    const { parsedMessage } = await fetchParsedMessage({ message: 'see <html>' });
    expect([parsedMessage.text?.trim(), parsedMessage.html]).toEqual(['see <html>', undefined]);
  });
});

describe('idempotency', () => {
  test('fifty concurrent requests with the same idempotency key and payload create one message, and a repeated request after a restart creates none', async () => {
    const headers = { 'Idempotency-Key': 'order-17' };
    const separateFolder = rig.createFolder();
    const firstService = await rig.serve(separateFolder);
    const submitWithIdempotencyKey = (target: RunningService) =>
      sendRequest(`${target.publicUrl}/api/v1/send-mail`, {
        method: 'POST',
        headers: { Authorization: firstService.key, 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(VALID_REQUEST),
      });
    const answers = await Promise.all(Array.from({ length: 50 }, () => submitWithIdempotencyKey(firstService)));
    expect(countValues(answers.map(({ status }) => status))).toEqual({ 201: 50 });
    expect(new Set(answers.map(({ text }) => readMessageId(text))).size).toBe(1);
    expect(countValues(answers.map((answer) => String(answer.headers.get('idempotency-replayed'))))).toEqual({
      null: 1,
      true: 49,
    });
    const otherPayloadAnswer = await submit(firstService.publicUrl, firstService.key, { subject: 'Another' }, headers);
    expect([otherPayloadAnswer.status, await otherPayloadAnswer.text()]).toEqual([
      400,
      '{"result":"error","message":"Idempotency-Key was already used with another payload"}',
    ]);
    expect(await firstService.stop()).toBe(0);
    const restartedService = await rig.serve(separateFolder);
    const answerAfterRestart = await submitWithIdempotencyKey(restartedService);
    expect([
      answerAfterRestart.status,
      answerAfterRestart.text,
      answerAfterRestart.headers.get('idempotency-replayed'),
    ]).toEqual([201, answers[0]?.text, 'true']);
    expect((await submit(restartedService.publicUrl, firstService.key, { message: 'Other' }, headers)).status).toBe(
      400,
    );
    const account = await runJsonCommand<{ volumeUsed: number }>(separateFolder, ['account', 'show', 'default']);
    expect(account.volumeUsed).toBe(1);
    expect((await runJsonCommand<unknown[]>(separateFolder, ['message', 'list'])).length).toBe(1);
  });
});

describe('simulator addresses', () => {
  const EXPECTED_OUTCOMES = {
    success: ['delivered', ['accepted', 'delivered']],
    bounce: ['bounced', ['accepted', 'bounced']],
    defer: ['queued', ['accepted', 'deferred']],
    complaint: ['complained', ['accepted', 'delivered', 'complained']],
    suppressed: ['suppressed', ['accepted', 'suppressed']],
  } as const;

  test('a message to a simulator address in any letter case and with any label reaches the simulated state and never leaves the service', async () => {
    const listAddressSpellings = (kind: string) => [
      `${kind}@simulator.postrider.test`,
      `${kind.toUpperCase()}+Label@Simulator.Postrider.TEST`,
    ];
    const submittedMessages = await Promise.all(
      Object.entries(EXPECTED_OUTCOMES).flatMap(([kind, [state]]) =>
        listAddressSpellings(kind).map(async (to) => ({
          to,
          state,
          id: await submitAccepted(service.publicUrl, service.key, { to }),
        })),
      ),
    );
    const readStates = async () => {
      const messages = await Promise.all(submittedMessages.map(({ id }) => store.findMessage(id)));
      return messages.map((message) => `${message?.to} ${message?.state}`);
    };
    await expect.poll(readStates).toEqual(submittedMessages.map(({ to, state }) => `${to} ${state}`));
    for (const [kind, [, verbs]] of Object.entries(EXPECTED_OUTCOMES)) {
      const id = submittedMessages.find(({ to }) => to.startsWith(kind))?.id ?? '';
      expect((await store.findMessage(id))?.events.map(({ verb }) => verb)).toEqual(verbs);
    }
    const inbox = (await sendRequest(`${service.operatorUrl}/api/v1/inbox?limit=200`, { headers: session })).text;
    expect(submittedMessages.filter(({ id }) => inbox.includes(id))).toEqual([]);
  });

  test('a simulated bounce does not suppress the recipient: the next message to the address also bounces', async () => {
    const to = 'bounce@simulator.postrider.test';
    const ids = [await submitAccepted(service.publicUrl, service.key, { to })];
    const findStates = () => Promise.all(ids.map(async (id) => (await store.findMessage(id))?.state));
    await expect.poll(findStates).toEqual(['bounced']);
    ids.push(await submitAccepted(service.publicUrl, service.key, { to }));
    await expect.poll(findStates).toEqual(['bounced', 'bounced']);
  });
});
