/** Tests the signature over URL and form fields, the URL test request, and the batches of Mandrill. */
import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Authenticate } from '../../../src/providers/authentication.ts';
import type { ProviderRequest, ReadResult } from '../../../src/providers/event.ts';
import { MANDRILL } from '../../../src/providers/mandrill/mandrill.ts';

const KEY = 'webhook-key-001';
const ENDPOINT_URL = 'https://events.example.org/events/mandrill';
const EVENTS = '[{"event":"send","msg":{"subject":"Prüfung & mehr"}}]';

const { events } = MANDRILL;
if (events === null) throw new Error('Mandrill has no events');

function createAuthenticator(...keys: string[]): Authenticate {
  const parseResult = events?.createAuthenticator(keys);
  if (parseResult?.ok !== true) throw new Error('the key is not valid');
  return parseResult.secret;
}

/** Signs the URL and the fields. The fields must be sorted by name. */
function computeSignature(key: string, url: string, fields: readonly [string, string][]): string {
  return createHmac('sha1', key)
    .update(url + fields.flat().join(''), 'utf8')
    .digest('base64');
}

interface PostParts {
  readonly signature?: string | undefined;
  readonly url?: string | null;
}

function createRequest(
  fields: readonly [string, string][],
  { signature, url = ENDPOINT_URL }: PostParts = {},
): ProviderRequest {
  const body = Buffer.from(new URLSearchParams([...fields]).toString());
  return { method: 'POST', headers: { 'x-mandrill-signature': signature }, body, url };
}

const FIELDS: readonly [string, string][] = [['mandrill_events', EVENTS]];
const SIGNATURE = computeSignature(KEY, ENDPOINT_URL, FIELDS);

function readBatch(value: unknown): ReadResult {
  const result = events?.read(createRequest([['mandrill_events', JSON.stringify(value)]]));
  if (result === undefined) throw new Error('Mandrill has no events');
  return result;
}

describe('the signature of Mandrill', () => {
  const authenticate = createAuthenticator(KEY);

  it.each(['', 'x', `${'A'.repeat(28)}=`, 'A'.repeat(10_000)])(
    'of a wrong length is refused before the form is parsed (%#)',
    (signature) => {
      const fields = Array.from({ length: 2_000 }, (): [string, string] => ['a', 'b']);
      const result = createAuthenticator(KEY)(createRequest(fields, { signature }), 0);
      expect(result).toMatchObject({ kind: 'refused', reason: expect.stringContaining('HMAC-SHA1') });
    },
  );

  it('covers the fields in the order of their names', () => {
    const sortedFields: readonly [string, string][] = [['a', '1'], ...FIELDS, ['z', 'ä']];
    const signature = computeSignature(KEY, ENDPOINT_URL, sortedFields);
    expect(authenticate(createRequest(sortedFields.toReversed(), { signature }), 0).kind).toBe('authenticated');
  });

  it('is accepted if it matches the second of two keys', () => {
    expect(createAuthenticator('webhook-key-002', KEY)(createRequest(FIELDS, { signature: SIGNATURE }), 0).kind).toBe(
      'authenticated',
    );
  });

  it.each<[string, ProviderRequest]>([
    ['another key', createRequest(FIELDS, { signature: computeSignature('webhook-key-002', ENDPOINT_URL, FIELDS) })],
    ['changed events', createRequest([['mandrill_events', '[]']], { signature: SIGNATURE })],
    ['a further field', createRequest([...FIELDS, ['x', 'y']], { signature: SIGNATURE })],
    ['another URL', createRequest(FIELDS, { signature: SIGNATURE, url: `${ENDPOINT_URL}/` })],
    ['no signature', createRequest(FIELDS)],
    ['an empty signature', createRequest(FIELDS, { signature: '' })],
    [
      'the public key of the URL test',
      createRequest(FIELDS, { signature: computeSignature('test-webhook', ENDPOINT_URL, FIELDS) }),
    ],
  ])('is refused with %s', (_name, request) => {
    expect(authenticate(request, 0).kind).toBe('refused');
  });

  it('is refused without POSTRIDER_FEEDBACK_URL, and the reason names the setting', () => {
    expect(authenticate(createRequest(FIELDS, { signature: SIGNATURE, url: null }), 0)).toEqual({
      kind: 'refused',
      reason: expect.stringContaining('POSTRIDER_FEEDBACK_URL'),
    });
  });

  it('is refused if the form has too many fields', () => {
    const body = Buffer.from('a=b&'.repeat(2_000_000));
    const request = { ...createRequest(FIELDS, { signature: SIGNATURE }), body };
    expect(authenticate(request, 0).kind).toBe('refused');
    expect(events?.read(request).kind).toBe('broken');
  });
});

describe('a batch of Mandrill', () => {
  it('has the diagnosis and the host of the last element of smtp_events', () => {
    const smtp_events = [
      { diag: '451 first', destination_ip: '192.0.2.1' },
      { diag: '250 OK', destination_ip: '192.0.2.2' },
    ];
    expect(
      readBatch([{ event: 'delivered', ts: '1762360434.5', msg: { email: 'a@example.com', smtp_events } }]),
    ).toMatchObject({
      events: [
        {
          at: 1_762_360_434_500,
          messageId: null,
          fact: { kind: 'delivered', diagnosis: { diagnostic: '250 OK', host: '192.0.2.2' } },
        },
      ],
    });
  });
});
