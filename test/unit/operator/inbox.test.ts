/** The inbox over HTTP: whatever a mail holds, it is told as data, and its HTML is served where it can do nothing. */
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { readEntity } from '../../../src/feedback/read/entity.ts';
import { framed, readCapturedMail } from '../../../src/operator/captured-mail.ts';
import { addInbox, HTML_POLICY } from '../../../src/operator/inbox.ts';
import type { Inbox, InboxEntry } from '../../../src/operator/mailbox.ts';

const ids = [3, 2, 1].map((n) => `0192a3b4-c5d6-7e8f-9012-34567890000${n}`);
const [NEWEST = '', MIDDLE = '', OLDEST = ''] = ids;
const UNKNOWN = '0192a3b4-c5d6-7e8f-9012-345678900009';
const HOSTILE = '</script><script>alert(1)</script>"\'&\u2028\ud83d\ude00';

const mail = (html: string) =>
  Buffer.from(
    [
      'Return-Path: <shop@example.org>',
      'Delivered-To: ada@example.com',
      'Subject: =?utf-8?B?R3LDvMOfZQ==?=',
      ' =?utf-8?B?ICE=?= and',
      '\tmore',
      'X-Raw: <b>é</b>',
      'Content-Type: multipart/alternative; boundary=b',
      '',
      '--b',
      'Content-Type: text/plain; charset=utf-8',
      '',
      'Grüße <b>x</b>',
      '--b',
      'Content-Type: text/html; charset=utf-8',
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from(html).toString('base64'),
      '--b--',
      '',
    ].join('\r\n'),
  );

function serving(sources: Readonly<Record<string, Buffer>>, signedIn = true, capturing = true) {
  const entries: readonly InboxEntry[] = Object.keys(sources).map((id) => ({
    id,
    at: 1_700_000_000_000,
    to: 'ada@example.com',
    from: 'shop@example.org',
    returnPath: 'b-1@bounces.example.org',
    subject: HOSTILE,
  }));
  const inbox: Inbox = {
    list: (limit, before) =>
      Promise.resolve(entries.filter(({ id }) => before === null || id < before).slice(0, limit)),
    entry: (id) => Promise.resolve(entries.find((one) => one.id === id) ?? null),
    source: (id) => Promise.resolve(sources[id] ?? null),
  };
  const app = Fastify();
  addInbox(app, '/api/v1', { inbox: capturing ? inbox : null, readEntity }, async (_request, reply) =>
    signedIn ? undefined : reply.code(401).send({ result: 'error', message: 'Sign in first' }),
  );
  return (path: string, headers: Record<string, string> = {}) => app.inject({ url: `/api/v1/inbox${path}`, headers });
}

const three = Object.fromEntries(ids.map((id) => [id, mail('<html><p>x</p></html>')]));

describe('the list', () => {
  test('is told page by page, the newest first, as JSON that no markup breaks out of', async () => {
    const ask = serving(three);
    const first = await ask('?limit=2');
    expect(first.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(first.json()).toEqual({
      messages: [NEWEST, MIDDLE].map((id) => ({
        id,
        at: '2023-11-14T22:13:20.000Z',
        to: 'ada@example.com',
        from: 'shop@example.org',
        returnPath: 'b-1@bounces.example.org',
        subject: HOSTILE,
      })),
      next: MIDDLE,
    });
    const last = (await ask(`?limit=2&before=${MIDDLE}`)).json<{ messages: InboxEntry[]; next: string | null }>();
    expect([last.messages.map(({ id }) => id), last.next]).toEqual([[OLDEST], null]);
    expect((await ask('')).json()).toMatchObject({ next: null });
    expect((await serving({})('')).json()).toEqual({ messages: [], next: null });
  });

  test.each([
    ['?limit=0', 'limit must be a number from 1 to 200'],
    ['?limit=201', 'limit must be a number from 1 to 200'],
    ['?limit=', 'limit must be a number from 1 to 200'],
    ['?limit=1e1', 'limit must be a number from 1 to 200'],
    ['?limit=%201', 'limit must be a number from 1 to 200'],
    ['?limit=1&limit=2', 'limit must be a number from 1 to 200'],
    ['?before=', 'before must be the id of a mail: `next` of the page before'],
    ['?before=elsewhere', 'before must be the id of a mail: `next` of the page before'],
    ['?before=../../etc', 'before must be the id of a mail: `next` of the page before'],
    [`?before=${OLDEST}&before=${OLDEST}`, 'before must be the id of a mail: `next` of the page before'],
    ['?colour=red', 'Unknown parameter in the query: "colour"'],
    ['?__proto__=x', 'Unknown parameter in the query: "__proto__"'],
  ])('%s is refused with one clear line', async (query, message) => {
    const answer = await serving(three)(query);
    expect([answer.statusCode, answer.json()]).toEqual([400, { result: 'error', code: 'invalid', message }]);
  });
});

describe('one mail', () => {
  test('is told with its header decoded in order, its text, and whether it has HTML', async () => {
    const source = mail('<html><p>x</p></html>');
    const answer = await serving({ [OLDEST]: source })(`/${OLDEST}`);
    expect(answer.json()).toEqual({
      id: OLDEST,
      at: '2023-11-14T22:13:20.000Z',
      to: 'ada@example.com',
      from: 'shop@example.org',
      returnPath: 'b-1@bounces.example.org',
      subject: HOSTILE,
      headers: [
        { name: 'Return-Path', value: '<shop@example.org>' },
        { name: 'Delivered-To', value: 'ada@example.com' },
        { name: 'Subject', value: 'Grüße ! and\tmore' },
        { name: 'X-Raw', value: '<b>é</b>' },
        { name: 'Content-Type', value: 'multipart/alternative; boundary=b' },
      ],
      text: 'Grüße <b>x</b>\n',
      html: true,
      bytes: source.length,
    });
  });

  test('its source is plain text, whatever it holds', async () => {
    const source = Buffer.from('Subject: <b>x</b>\r\n\r\n<html><script>1</script>\u00ff');
    const answer = await serving({ [OLDEST]: source })(`/${OLDEST}/source`);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-security-policy': "default-src 'none'; sandbox",
    });
    expect(answer.rawPayload).toEqual(source);
  });

  test('without HTML has none for a frame', async () => {
    const answer = await serving({ [OLDEST]: Buffer.from('Subject: x\r\n\r\n<html>') })(`/${OLDEST}/html`);
    expect([answer.statusCode, answer.json()]).toEqual([
      404,
      { result: 'error', code: 'not-found', message: `The mail ${OLDEST} has no HTML` },
    ]);
  });

  test.each(['', '/source', '/html'])('%j of no mail, or where nothing is captured, is not found', async (part) => {
    expect((await serving(three)(`/${UNKNOWN}${part}`)).json()).toEqual({
      result: 'error',
      code: 'not-found',
      message: `there is no mail ${UNKNOWN} in the inbox`,
    });
    for (const id of ['..%2f..%2fetc%2fpasswd', '%00', 'x'])
      expect((await serving(three)(`/${id}${part}`)).statusCode).toBe(404);
    const answer = await serving(three, true, false)(`/${OLDEST}${part}`);
    expect([answer.statusCode, answer.json()]).toEqual([
      404,
      { result: 'error', code: 'not-found', message: 'There is no inbox: POSTRIDER_TRANSPORT is not capture:' },
    ]);
  });

  test('nothing is told without sign-in', async () => {
    for (const path of ['', '?limit=0', `/${OLDEST}`, `/${OLDEST}/source`, `/${OLDEST}/html`, `/${UNKNOWN}`]) {
      const answer = await serving(three, false)(path);
      expect([path, answer.statusCode, answer.body.includes('example')]).toEqual([path, 401, false]);
    }
  });
});

describe('HTML for a frame', () => {
  const BODIES = [
    '<!doctype html><html><script>alert(1)</script><p onclick="alert(1)">x</p></html>',
    '<html><meta http-equiv="Content-Security-Policy" content="script-src *"><a href="javascript:alert(1)">x</a></html>',
    '<html><meta http-equiv="refresh" content="0;url=https://evil.example/"></html>',
    '<html><base href="https://evil.example/" target="_top"><form action="/api/v1/tokens"><button>x</button></form></html>',
    '<html><style>@import "https://evil.example/x.css"; p{background:url(https://evil.example/x)}</style></html>',
    '<html><svg onload="alert(1)"><a xlink:href="javascript:alert(1)"><text>x</text></a></svg></html>',
    '<html><iframe srcdoc="<script>alert(1)</script>"></iframe><object data="x"></object><embed src="x"></html>',
    '<html>\0\u2028<plaintext><!--<![CDATA[</html>',
  ];

  test.each(BODIES)('%j is served under the same policy', async (body) => {
    const answer = await serving({ [OLDEST]: mail(body) })(`/${OLDEST}/html`);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
      'x-dns-prefetch-control': 'off',
    });
    expect(HTML_POLICY).not.toContain('allow-');
    // As the recipient sees it, but for the target of links.
    expect(answer.body.replace('<base target="_blank">', '')).toBe(body);
  });

  test('a browser that opens it outside of a frame gets its source as plain text, with a word on where it is shown', async () => {
    const ask = serving({ [OLDEST]: mail('<html><a href="https://evil.example/" target="_self">x</a></html>') });
    const framed = await ask(`/${OLDEST}/html`, { 'Sec-Fetch-Dest': 'iframe' });
    expect([framed.headers['content-type'], framed.headers.vary]).toEqual([
      'text/html; charset=utf-8',
      'Sec-Fetch-Dest',
    ]);
    for (const place of ['document', 'empty', 'object', 'embed', 'frame', '']) {
      const answer = await ask(`/${OLDEST}/html`, { 'Sec-Fetch-Dest': place });
      expect([place, answer.statusCode, answer.headers['content-type'], answer.headers.vary]).toEqual([
        place,
        200,
        'text/plain; charset=utf-8',
        'Sec-Fetch-Dest',
      ]);
      expect(answer.body).toBe(
        `This HTML is shown at /inbox/${OLDEST} only, in a frame that it cannot leave. Its source:\n\n` +
          '<html><a href="https://evil.example/" target="_self">x</a></html>',
      );
    }
  });

  test('its links open in a window that the sandbox forbids, and the doctype stays first', () => {
    expect(framed('\n <!DOCTYPE html "a>b"><html></html>')).toBe(
      '\n <!DOCTYPE html "a><base target="_blank">b"><html></html>',
    );
    expect(framed('<html><base target="_top">')).toBe('<base target="_blank"><html><base target="_top">');
    expect(framed('<!doctype')).toBe('<base target="_blank"><!doctype');
  });

  test('no link element is left to open a connection with', () => {
    expect(framed('<LiNk rel=preconnect href=//evil.example><link/rel=x>')).not.toMatch(/<link/i);
  });
});

describe('reading', () => {
  const MIB = 1_048_576;
  const TYPE = 'Content-Type: text/plain\r\n';
  const nested = Array.from(
    { length: 5_000 },
    (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`,
  );

  test.each([
    ['lines', `${TYPE}\r\n${'x\r\n'.repeat(MIB / 3)}`],
    ['blank lines', `${TYPE}\r\n${'\n'.repeat(MIB)}`],
    ['one line', `${TYPE}\r\n${'x'.repeat(MIB)}`],
    ['header fields', 'X: y\r\n'.repeat(MIB / 6)],
    ['a folded field', `X: y\r\n${' z\r\n'.repeat(MIB / 4)}`],
    ['encoded words', `Subject: ${'=?utf-8?Q?x?= '.repeat(MIB / 14)}\r\n\r\n`],
    ['multiparts within one another', nested.join('')],
    ['parts', `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(MIB / 10)}`],
    ['parameters', `Content-Type: text/plain; ${'x*0="a"; '.repeat(MIB / 9)}\r\n\r\n`],
    ['NUL', '\0'.repeat(MIB)],
  ])('1 MiB of %s is read without holding the service up', (_what, source) => {
    const began = performance.now();
    const read = readCapturedMail(Buffer.from(source), readEntity);
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(read.headers.length).toBeLessThanOrEqual(1_000);
  });

  test('all of a long text is told', () => {
    const text = 'né '.repeat(MIB / 3);
    expect(readCapturedMail(Buffer.from(`${TYPE}\r\n${text}`), readEntity).text).toBe(text);
  });

  test('what is attached is not taken for the text', () => {
    const attached =
      'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: Attachment; filename=x\r\n\r\nno\r\n--b\r\n\r\nyes\r\n--b--';
    expect(readCapturedMail(Buffer.from(attached), readEntity).text).toBe('yes\n');
  });
});
