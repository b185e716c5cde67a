/** The bodies are signed after the change, so that they reach the parser. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAddress, toCanonicalAddress } from '../../src/model/address.ts';
import { decideFeedbackChange, type FeedbackReport } from '../../src/model/feedback.ts';
import { createEventBody, EVENT_SENDERS, type EventRequest } from '../rig/provider-events.ts';
import { startReceiver } from '../rig/provider-receiver.ts';

const ID = '01990000-0000-7000-8000-00000000000a';
const RECIPIENT = 'gone@example.net';
const MESSAGE = {
  state: 'delivered',
  to: RECIPIENT,
  isTest: false,
  mayHaveBeenSent: true,
  isConfirmed: false,
  hasHardFailure: false,
  hasReportedBounce: false,
} as const;
const RUN_OPTIONS = { seed: 20261123, numRuns: 4_000 };
const BODY_SIGNERS: readonly string[] = ['mailgun', 'mandrill'];

function spliceBytes(body: Buffer, position: number, length: number, bytes: Uint8Array | string): Buffer {
  const at = Math.floor((body.length * position) / 1_000);
  return Buffer.concat([body.subarray(0, at), Buffer.from(bytes as string), body.subarray(at + length)]);
}

function replaceValue(body: Buffer, position: number, value: string): Buffer {
  const text = body.toString('latin1');
  const values = [...text.matchAll(/(?<=":\s*)(?:"[^"]*"|-?\d+(?:\.\d+)?)/g)];
  const match = values[position % Math.max(values.length, 1)];
  if (match === undefined) return body;
  return Buffer.from(text.slice(0, match.index) + value + text.slice(match.index + match[0].length), 'latin1');
}

function insertMember(body: Buffer, position: number, member: string): Buffer {
  const text = body.toString('latin1');
  const objectStarts = [...text.matchAll(/\{/g)];
  const match = objectStarts[position % Math.max(objectStarts.length, 1)];
  if (match === undefined) return body;
  return Buffer.from(`${text.slice(0, match.index + 1)}${member},${text.slice(match.index + 1)}`, 'latin1');
}

const position = fc.nat(999);
const member = fc.constantFrom(
  '"__proto__":{"email":"other@example.org"}',
  '"constructor":{"prototype":{}}',
  '"toString":1',
  '"email":"other@example.org","email":"another@example.org"',
  '"":""',
  '"\\u0000":"\\u0000"',
  `"${'k'.repeat(70_000)}":1`,
);
const value = fc.constantFrom(
  '1e999',
  '-1e400',
  '9'.repeat(400),
  '0.1e-400',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\u0001"',
  'null',
  '[]',
  '{}',
  '[[["a"]]]',
  '"constructor"',
  '"__proto__"',
  `"${'x'.repeat(70_000)}"`,
  `${'['.repeat(65)}${']'.repeat(65)}`,
  `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
);
function toCanonical(address: string): string | null {
  const parsedAddress = parseAddress(address);
  return parsedAddress === null ? null : toCanonicalAddress(parsedAddress);
}

type BodyChange = (body: Buffer) => Buffer;
const splicedText = fc.constantFrom('\0', '"', '\\', '{', '}', '[', ']', ',', ':', '\n', '%00', '&', '=', '\ufeff');
const changeAt = <Value>(values: fc.Arbitrary<Value>, change: (body: Buffer, at: number, value: Value) => Buffer) =>
  fc.tuple(position, values).map(
    ([at, value]): BodyChange =>
      (body) =>
        change(body, at, value),
  );
const change: fc.Arbitrary<BodyChange> = fc.oneof(
  changeAt(fc.constant(null), (body, at) => body.subarray(0, Math.floor((body.length * at) / 1_000))),
  changeAt(fc.tuple(fc.nat(8), fc.uint8Array({ maxLength: 8 })), (body, at, [length, bytes]) =>
    spliceBytes(body, at, length, bytes),
  ),
  changeAt(splicedText, (body, at, text) => spliceBytes(body, at, 0, text)),
  changeAt(value, replaceValue),
  changeAt(member, insertMember),
  fc.constantFrom<BodyChange>(
    (body) => Buffer.from(body.toString(), 'utf16le'),
    (body) => Buffer.from(`\ufeff${body.toString()}`, 'utf16le'),
    (body) => Buffer.from(`\ufeff${body.toString()}`),
    (body) => Buffer.from(body.toString().replaceAll('example', 'ex\u00e4mple'), 'latin1'),
    (body) => gzipSync(body),
    (body) => Buffer.concat([body, body]),
    (body) => Buffer.from(`${'['.repeat(60)}${body.toString()}${']'.repeat(60)}`),
    (body) => Buffer.from(new URLSearchParams({ body: body.toString() }).toString()),
    (body) => Buffer.from(encodeURIComponent(body.toString())),
    (body) => Buffer.from(JSON.stringify(body.toString())),
    () => Buffer.alloc(0),
    () => Buffer.alloc(100_000, 0x20),
  ),
);
const contentType = fc.option(
  fc.constantFrom(
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=b',
    'text/plain; charset=utf-16',
    'application/json; charset=latin1',
    '',
  ),
  { freq: 4 },
);

describe('a request with changed bytes', () => {
  test.each(EVENT_SENDERS.map((row) => [row.name, row] as const))(
    'of %s gets 200, 400, 401 or 413 with a one-line message, is counted if it is refused, and suppresses no address except the recipient of the message',
    async (name, row) => {
      const reports: FeedbackReport[] = [];
      const sender = row.createSender();
      const receiver = await startReceiver(name, sender.secret, {
        recordFeedback: (batch) => {
          reports.push(...batch);
          return Promise.resolve(batch.map(() => ({ kind: 'unrelated' })));
        },
      });
      const originalBody = createEventBody(row, row.samples.hardBounce, { id: ID, recipient: RECIPIENT });
      const signedRequest = sender.createRequest(originalBody, receiver.publicUrl);
      const createChangedRequest = (apply: BodyChange): EventRequest =>
        name === 'mailgun'
          ? { headers: signedRequest.headers, body: apply(signedRequest.body) }
          : sender.createRequest(apply(originalBody), receiver.publicUrl);
      await fc.assert(
        fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 2 }), contentType, async (changes, type) => {
          const refusalCount = receiver.listRefusals().length;
          reports.length = 0;
          const { headers, body } = createChangedRequest((bytes) =>
            changes.reduce((changed, apply) => apply(changed), bytes),
          );
          const response = await fetch(receiver.url, {
            method: 'POST',
            headers: { ...headers, ...(type === null ? {} : { 'content-type': type }) },
            body: new Uint8Array(body),
          });
          const { message }: { message: string } = JSON.parse(await response.text());
          expect(message).toMatch(/^[^\r\n]{5,}$/);
          expect(BODY_SIGNERS.includes(name) ? [200, 400, 401, 413] : [200, 400, 413]).toContain(response.status);
          if (response.status !== 200) expect(receiver.listRefusals().length).toBe(refusalCount + 1);
          for (const { messageRef, events } of reports) {
            const decision = decideFeedbackChange(MESSAGE, events, true);
            if (!('suppress' in decision) || decision.suppress === null) continue;
            const [event] = events;
            const recipient = event !== undefined && 'recipient' in event ? event.recipient : null;
            // An event without a recipient concerns the only recipient of its message.
            if (recipient !== null) expect(toCanonical(recipient)).toBe(toCanonical(RECIPIENT));
            if (messageRef !== null && 'id' in messageRef) expect(messageRef.id).toBe(ID);
          }
        }),
        RUN_OPTIONS,
      );
      expect(receiver.faults).toEqual([]);
      // After all changed requests, the endpoint reads the original request.
      reports.length = 0;
      const { headers, body } = signedRequest;
      const lastResponse = await fetch(receiver.url, {
        method: 'POST',
        headers: { ...headers },
        body: new Uint8Array(body),
      });
      expect([lastResponse.status, reports.length]).toEqual([200, 1]);
    },
  );
});
