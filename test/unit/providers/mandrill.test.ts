import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ProviderRequest } from '../../../src/providers/event-reader.ts';
import { createAuthenticator, getFormat } from '../../rig/event-format.ts';

const MANDRILL_EVENTS = getFormat('mandrill');
const KEY = 'webhook-key-001';
const ENDPOINT_URL = 'https://events.example.org/events/mandrill';
const EVENTS = '[{"event":"send","msg":{"subject":"Prüfung & mehr"}}]';

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

describe('the signature of Mandrill', () => {
  const authenticate = createAuthenticator(MANDRILL_EVENTS, KEY);
  function explain(request: ProviderRequest) {
    const parseResult = MANDRILL_EVENTS.createAuthenticator([KEY]);
    return parseResult.ok ? parseResult.secret(request, 0) : parseResult;
  }

  it.each(['', 'x', `${'A'.repeat(28)}=`, 'A'.repeat(10_000)])(
    'of a wrong length is refused before the form is parsed (%#)',
    (signature) => {
      const fields = Array.from({ length: 2_000 }, (): [string, string] => ['a', 'b']);
      expect(explain(createRequest(fields, { signature }))).toMatchObject({
        kind: 'refused',
        reason: expect.stringContaining('HMAC-SHA1'),
      });
    },
  );

  it('covers the fields in the order of their names', () => {
    const sortedFields: readonly [string, string][] = [['a', '1'], ...FIELDS, ['z', 'ä']];
    const signature = computeSignature(KEY, ENDPOINT_URL, sortedFields);
    expect(authenticate(createRequest(sortedFields.toReversed(), { signature }))).toBe('authenticated');
  });

  it.each<[string, ProviderRequest]>([
    ['a further field', createRequest([...FIELDS, ['x', 'y']], { signature: SIGNATURE })],
    ['another URL', createRequest(FIELDS, { signature: SIGNATURE, url: `${ENDPOINT_URL}/` })],
    [
      'the public key of the URL test',
      createRequest(FIELDS, { signature: computeSignature('test-webhook', ENDPOINT_URL, FIELDS) }),
    ],
  ])('is refused with %s', (_name, request) => {
    expect(authenticate(request)).toBe('refused');
  });

  it('is refused without POSTRIDER_FEEDBACK_URL, and the reason names the setting', () => {
    expect(explain(createRequest(FIELDS, { signature: SIGNATURE, url: null }))).toEqual({
      kind: 'refused',
      reason: expect.stringContaining('POSTRIDER_FEEDBACK_URL'),
    });
  });

  it('is refused if the form has too many fields', () => {
    const body = Buffer.from('a=b&'.repeat(2_000_000));
    const request = { ...createRequest(FIELDS, { signature: SIGNATURE }), body };
    expect(authenticate(request)).toBe('refused');
    expect(MANDRILL_EVENTS.read(request).kind).toBe('broken');
  });
});

describe('a batch of Mandrill', () => {
  it('has the diagnosis and the host of the last element of smtp_events', () => {
    const smtp_events = [
      { diag: '451 first', destination_ip: '192.0.2.1' },
      { diag: '250 OK', destination_ip: '192.0.2.2' },
    ];
    const batch = [{ event: 'delivered', ts: '1762360434.5', msg: { email: 'a@example.com', smtp_events } }];
    const request = createRequest([['mandrill_events', JSON.stringify(batch)]]);
    expect(MANDRILL_EVENTS.read(request)).toMatchObject({
      events: [
        {
          messageId: null,
          meaning: 'delivered',
          diagnosis: { diagnostic: '250 OK', host: '192.0.2.2' },
        },
      ],
    });
  });
});
