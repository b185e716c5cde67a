import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { ErrorResponse, MailCreated, MailRequest } from '../../../src/http/openapi.ts';
import { parseJson } from '../../../src/http/protocol.ts';
import { validateSubmission } from '../../../src/model/submission.ts';
import { selectCaseCount } from '../../rig/sample.ts';
import { LISTENER_SETTINGS, MESSAGE, postBody, startRig } from './rig.ts';

interface RepeatedText {
  readonly before: string;
  readonly part: string;
  readonly times: number;
  readonly middle?: string;
  readonly close?: string;
  readonly after: string;
}
interface JsonCase {
  readonly name: string;
  readonly text?: string;
  readonly hex?: string;
  readonly repeat?: RepeatedText;
  readonly expect: string | null;
}

const CASES: readonly JsonCase[] = JSON.parse(
  readFileSync(new URL('../../corpus/json/bodies.json', import.meta.url), 'utf8'),
);

function toBytes({ text, hex, repeat }: JsonCase): Buffer {
  if (hex !== undefined) return Buffer.from(hex, 'hex');
  if (text !== undefined) return Buffer.from(text);
  if (repeat === undefined) throw new Error('a case needs text, hex or repeat');
  const { before, part, times, middle = '', close = '', after } = repeat;
  return Buffer.from(before + part.repeat(times) + middle + close.repeat(times) + after);
}

// Formats and lengths are checked by `validateSubmission` only, because JSON Schema counts characters and defines
// the formats differently.
const STRUCTURE_SCHEMA: unknown = JSON.parse(
  JSON.stringify(MailRequest, (name, value: unknown) =>
    name === 'format' || name === 'maxLength' ? undefined : value,
  ),
);
const ajv = new Ajv();
const isError = ajv.compile(JSON.parse(JSON.stringify(ErrorResponse)));
const isCreated = new Ajv({ formats: { uuid: true } }).compile(JSON.parse(JSON.stringify(MailCreated)));

const rig = await startRig({ settings: { ...LISTENER_SETTINGS, maxRequestBytes: 1 << 20 } });
afterAll(() => rig.listener.close());

describe('a JSON body', () => {
  test.each(CASES.map((jsonCase): [string, JsonCase] => [jsonCase.name, jsonCase]))(
    'gets the documented response in the case: %s',
    async (_name, jsonCase) => {
      const response = await postBody(rig, toBytes(jsonCase));
      const submittedCount = rig.recordedEvents.submittedMessages.splice(0).length;
      expect([response.headers.get('content-type'), response.headers.get('connection')]).toEqual([
        ...['application/json', 'keep-alive'],
      ]);
      if (jsonCase.expect === null) expect([response.status, submittedCount]).toEqual([201, 1]);
      else
        expect([response.status, response.body, submittedCount]).toEqual([
          ...[400, { result: 'error', message: jsonCase.expect }, 0],
        ]);
    },
  );

  test('does not modify Object.prototype', () => {
    expect(Reflect.ownKeys(Object.prototype)).not.toContain('to');
    expect('to' in {}).toBe(false);
  });
});

describe('an arbitrary body', () => {
  const field = fc.oneof(
    { weight: 3, arbitrary: fc.string({ unit: 'binary' }) },
    { weight: 1, arbitrary: fc.jsonValue() },
    { weight: 2, arbitrary: fc.emailAddress() },
  );
  const bodies = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.json().map((text) => Buffer.from(text)),
    fc
      .record({ to: field, from: field, subject: field, message: field, extra: fc.jsonValue() }, { requiredKeys: [] })
      .map((value) => Buffer.from(JSON.stringify(value))),
    // These are valid bodies in which a few bytes are changed.
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }).map((changes) => {
      const bytes = Buffer.from(JSON.stringify(MESSAGE));
      for (const [index, byte] of changes) bytes[index % bytes.length] = byte;
      return bytes;
    }),
  );

  test('causes status 201 or 400 with a body that matches the schema, never status 500', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, async (bytes) => {
        const response = await postBody(rig, bytes);
        expect([201, 400]).toContain(response.status);
        expect((response.status === 201 ? isCreated : isError)(response.body)).toBe(true);
        expect(response.headers.get('content-type')).toBe('application/json');
      }),
      { seed: 29, numRuns: selectCaseCount(100, 600) },
    );
    expect(rig.recordedEvents.errors).toEqual([]);
  });

  test('matches the structure of the schema if and only if validateSubmission finds no missing field and no wrong type', () => {
    const matchesStructure = ajv.compile(STRUCTURE_SCHEMA as object);
    fc.assert(
      fc.property(bodies, (bytes) => {
        const value = parseJson(bytes);
        if (value === undefined) return;
        const validation = validateSubmission(value);
        const isStructuralFault =
          validation.kind === 'refused' &&
          ['invalid-json', 'missing-fields', 'not-strings'].includes(validation.refusal.code);
        expect(matchesStructure(value)).toBe(!isStructuralFault);
      }),
      { seed: 29, numRuns: selectCaseCount(100, 2000) },
    );
  });
});
