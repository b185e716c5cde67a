import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ProviderEvent, ProviderRequest, ReadResult } from '../../../src/providers/event-reader.ts';
import { UNREADABLE_RECIPIENT } from '../../../src/providers/event-reader.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { findProviderByHost, PROVIDERS } from '../../../src/providers/providers.ts';
import {
  createAuthenticator,
  getFormat,
  listDocumentedTypes,
  listSamples,
  MESSAGE_ID,
  RECIPIENT,
  readSampleFile,
} from '../../rig/event-format.ts';
import { EVENT_SENDERS, type EventSender } from '../../rig/provider-events.ts';
import { IS_LONG_RUN, selectCaseCount } from '../../rig/sample.ts';

const JSON_HEADERS = { 'content-type': 'application/json' };
const FORM_HEADERS = { 'content-type': 'application/x-www-form-urlencoded' };

const EXPECTED_EVENTS: Readonly<Record<string, Partial<ProviderEvent>>> = JSON.parse(
  readFileSync(new URL('../../corpus/provider-events/events.json', import.meta.url), 'utf8'),
);

function createRequest(name: string, body: Buffer): ProviderRequest {
  return { method: 'POST', headers: name.endsWith('.form') ? FORM_HEADERS : JSON_HEADERS, body, url: null };
}

function readBody(provider: Provider, name: string, body: Buffer): ReadResult {
  if (provider.events === null) throw new Error(`${provider.name} has no events`);
  return provider.events.read(createRequest(name, body));
}

function listMutations(value: unknown): unknown[] {
  if (Array.isArray(value)) {
    return [[], ...value.flatMap((item, at) => listMutations(item).map((changed) => value.with(at, changed)))];
  }
  if (typeof value !== 'object' || value === null)
    return [null, 7, 1e308, '', [], {}, true, 'x'.repeat(300), 'constructor', '__proto__', { $: 1 }];
  const entries = Object.entries(value);
  return entries.flatMap(([name, member]) => [
    Object.fromEntries(entries.filter(([other]) => other !== name)),
    ...listMutations(member).map((changed) => ({ ...value, [name]: changed })),
  ]);
}

function listWrapped(value: unknown): unknown[] {
  if (Array.isArray(value))
    return value.flatMap((item, at) => listWrapped(item).map((changed) => value.with(at, changed)));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const isWrapped = !Array.isArray(member) && !CONTAINER_MEMBERS.has(name);
    const changes = name === 'signature' ? [] : [...(isWrapped ? [[member]] : []), ...listWrapped(member)];
    return changes.map((changed) => ({ ...value, [name]: changed }));
  });
}

const CONTAINER_MEMBERS: ReadonlySet<string> = new Set(['event-data', 'events', 'msys']);

function changeJson(name: string, body: Buffer, change: (value: unknown) => unknown[]): Buffer[] {
  const changeText = (text: string) => change(JSON.parse(text)).map((value) => JSON.stringify(value));
  if (!name.endsWith('.form')) return changeText(body.toString()).map((text) => Buffer.from(text));
  const fields = [...new URLSearchParams(body.toString())];
  return fields.flatMap(([field, text], at) =>
    (/^[[{]/.test(text) ? changeText(text) : []).map((changed) =>
      Buffer.from(new URLSearchParams(fields.with(at, [field, changed])).toString()),
    ),
  );
}

function listDamagedBodies(name: string, body: Buffer): Buffer[] {
  const bodies = changeJson(name, body, listMutations);
  if (!name.endsWith('.form')) return bodies;
  const fields = [...new URLSearchParams(body.toString())];
  const changedForms = fields.flatMap(([field, text], at) => [
    fields.toSpliced(at, 1),
    ...listMutations(text).map((value) => fields.with(at, [field, String(value)])),
  ]);
  return [...bodies, ...changedForms.map((form) => Buffer.from(new URLSearchParams(form).toString()))];
}

function insertMember(name: string, body: Buffer, member: string): Buffer {
  const insert = (text: string) => text.replace('{', () => `{${member},`);
  if (!name.endsWith('.form')) return Buffer.from(insert(body.toString()));
  const fields = [...new URLSearchParams(body.toString())].map(([field, text]): [string, string] => [
    field,
    insert(text),
  ]);
  return Buffer.from(new URLSearchParams(fields).toString());
}

for (const provider of PROVIDERS) {
  const { relay, events } = provider;
  if (events !== null) {
    const types = listDocumentedTypes(provider.name);
    /** The rows whose samples are changed: by default one row for each meaning. */
    const changedRows = types.filter(
      ({ meaning }, at) => IS_LONG_RUN || types.findIndex((row) => row.meaning === meaning) === at,
    );
    describe(`events of ${provider.title}`, () => {
      it.each(types)('a sample of “$type” means $meaning', ({ meaning, sample }) => {
        const result = readBody(provider, sample, readSampleFile(provider.name, sample));
        if (result.kind !== 'events') throw new Error(result.reason);
        expect(result.broken).toBe(0);
        if (meaning === 'ignored') {
          expect(result).toMatchObject({ events: [] });
          return;
        }
        expect(result.events.map((event) => event.meaning)).toEqual([meaning]);
        const [event] = result.events;
        expect(event?.recipient).toBe(RECIPIENT);
        if (event?.messageId !== null) expect(event?.messageId).toBe(MESSAGE_ID);
        else expect(event.reference).not.toBeNull();
      });

      const eventsBySample = Object.entries(EXPECTED_EVENTS).flatMap(([path, event]) => {
        const [name, sample = ''] = path.split('/');
        return name === provider.name ? [[sample, event] as const] : [];
      });
      it.each(eventsBySample)('the event in %s has its key, message, recipient and diagnosis', (sample, event) => {
        expect(readBody(provider, sample, readSampleFile(provider.name, sample))).toMatchObject({ events: [event] });
      });

      it('every sample file has a row in the table of events', () => {
        const namedSamples = new Set(types.map(({ sample }) => sample));
        expect(listSamples(provider.name).filter((name) => !namedSamples.has(name))).toEqual([]);
      });

      it('the events of different samples have different keys, and reading a sample twice results in equal keys', () => {
        const keys = types.flatMap(({ sample }) => {
          const [first, second] = [0, 1].map(() => readBody(provider, sample, readSampleFile(provider.name, sample)));
          expect(first).toEqual(second);
          return first?.kind === 'events' ? first.events.map(({ key }) => key) : [];
        });
        expect(new Set(keys).size).toBe(keys.length);
      });

      it('reading a damaged sample never throws and never results in another recipient or message', () => {
        for (const { sample } of changedRows) {
          for (const changedBody of listDamagedBodies(sample, readSampleFile(provider.name, sample))) {
            const result = readBody(provider, sample, changedBody);
            if (result.kind !== 'events') continue;
            for (const { recipient, messageId, meaning } of result.events) {
              expect(meaning).toBeTypeOf('string');
              if (messageId !== null) expect(messageId).toBe(MESSAGE_ID);
              if (recipient?.includes('@') === true) expect(recipient).toBe(RECIPIENT);
            }
          }
        }
      });

      it('any bytes in a sample are read without an exception', () => {
        const bytes = fc.oneof(
          fc.uint8Array({ maxLength: 8 }),
          fc.constantFrom('\0', '"', '{', ']', '%00', '&', '\ufeff'),
        );
        const samples = fc.constantFrom(...types.map(({ sample }) => sample));
        fc.assert(
          fc.property(samples, fc.nat(999), fc.nat(8), bytes, (sample, position, length, inserted) => {
            const body = readSampleFile(provider.name, sample);
            const at = Math.floor((body.length * position) / 1_000);
            const changedBody = [body.subarray(0, at), Buffer.from(inserted as string), body.subarray(at + length)];
            expect(readBody(provider, sample, Buffer.concat(changedBody)).kind).toMatch(/^(?:events|broken)$/);
          }),
          { numRuns: selectCaseCount(200, 4_000) },
        );
      });

      it('an array of one element is read as its element', () => {
        const readFacts = (sample: string, body: Buffer) => {
          const result = readBody(provider, sample, body);
          if (result.kind !== 'events') return result;
          return { ...result, events: result.events.map(({ key: _, ...members }) => members) };
        };
        for (const { sample } of changedRows) {
          const body = readSampleFile(provider.name, sample);
          for (const changedBody of changeJson(sample, body, listWrapped))
            expect(readFacts(sample, changedBody), changedBody.toString()).toEqual(readFacts(sample, body));
        }
      });

      it('a recipient that is not a single text does not match the recipient of any message', () => {
        const replaceRecipient = (recipient: unknown) => (value: unknown) => [
          JSON.parse(JSON.stringify(value), (_name, member) => (member === RECIPIENT ? recipient : member)),
        ];
        const recipients = [[RECIPIENT, 'other@example.com'], { address: RECIPIENT }, true];
        const isField = (sample: string) =>
          sample.endsWith('.form') &&
          readSampleFile(provider.name, sample).includes(`=${encodeURIComponent(RECIPIENT)}`);
        for (const { sample } of changedRows.filter((row) => !isField(row.sample)))
          for (const recipient of recipients)
            for (const changedBody of changeJson(
              sample,
              readSampleFile(provider.name, sample),
              replaceRecipient(recipient),
            )) {
              const result = readBody(provider, sample, changedBody);
              const foundEvents = result.kind === 'events' ? result.events : [];
              for (const event of foundEvents)
                expect(event.recipient, changedBody.toString()).toBe(UNREADABLE_RECIPIENT);
            }
      });

      it('a sample with a deeply nested member or a member named __proto__ is read without an exception', () => {
        const nestedArrays = '['.repeat(200_000) + ']'.repeat(200_000);
        for (const { sample } of changedRows.slice(0, IS_LONG_RUN ? undefined : 1)) {
          for (const member of [`"nested":${nestedArrays}`, '"__proto__":{"toString":1}']) {
            const changedBody = insertMember(sample, readSampleFile(provider.name, sample), member);
            expect(readBody(provider, sample, changedBody).kind).toMatch(/^(?:events|broken)$/);
          }
        }
      });

      it.each([
        ['no body', ''],
        ['half a body', '{"a":'],
        ['null', 'null'],
        ['a number', '7'],
        ['deeply nested arrays', '['.repeat(100_000)],
        ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
        ['UTF-16', Buffer.from('{"event":"bounce"}', 'utf16le')],
      ])('%s is read without an event and without an exception', (_name, body) => {
        for (const { sample } of types.slice(0, 1)) {
          const result = readBody(provider, sample, Buffer.from(body));
          expect(result.kind === 'broken' || result.events.length === 0).toBe(true);
        }
      });

      it.each(['', 'x'])(
        'the value “%s” is refused as a secret, and the error does not contain a line break',
        (text) => {
          const parseResult = events.createAuthenticator([text]);
          expect(parseResult.ok).toBe(false);
          if (!parseResult.ok) expect(parseResult.fault).not.toMatch(/[\r\n]/);
        },
      );
    });
  }
  if (relay !== null) {
    describe(`the relay of ${provider.title}`, () => {
      it('is recognized by its host names', () => {
        for (const host of relay.hosts.filter((name) => !name.includes('*')))
          expect(findProviderByHost(`${host.toUpperCase()}.`)?.name).toBe(provider.name);
      });

      it('has metadata header fields of printable ASCII', () => {
        for (const { name, value } of relay.metadata(MESSAGE_ID, {})) {
          expect(name).toMatch(/^X-[A-Za-z0-9-]+$/);
          expect(value).toMatch(/^[ -~]+$/);
        }
      });
    });
  }
}

const HOUR_MS = 3_600_000;
/** How far the signed time may be in the past and in the future, from the documentation of the providers. */
const PERIODS_MS: Readonly<Partial<Record<string, readonly [number, number]>>> = {
  sendgrid: [25 * HOUR_MS, 25 * HOUR_MS],
  mailgun: [60 * 24 * HOUR_MS, 24 * HOUR_MS],
  resend: [HOUR_MS / 12, HOUR_MS / 12],
};

describe.each(EVENT_SENDERS)('the authentication of $name', ({ name, samples, createSender }) => {
  const NOW = Date.UTC(2026, 10, 10);
  const url = 'https://events.example.org/events';
  const [first, second, other] = [createSender(), createSender(), createSender()];
  const authenticate = createAuthenticator(getFormat(name), first.secret, second.secret);
  const createRequestOf = (sender: EventSender, at = NOW, sample = samples.hardBounce): ProviderRequest => ({
    ...sender.createRequest(readSampleFile(name, sample), url, at),
    ...{ method: 'POST', url },
  });

  it('accepts the requests of each of two secrets and of no other secret', () => {
    const results = [first, second, other].map((sender) => authenticate(createRequestOf(sender), NOW));
    expect(results).toEqual(['authenticated', 'authenticated', 'refused']);
  });

  it('refuses another body, unless only a secret or a token is checked, and any damage to a header field', () => {
    const request = createRequestOf(first);
    const checksBody = request.headers.authorization === undefined && name !== 'mailgun';
    const { body } = createRequestOf(other, NOW, samples.delivery);
    if (checksBody) expect(authenticate({ ...request, body }, NOW)).toBe('refused');
    const fields = Object.entries(request.headers).filter(([field]) => field !== 'content-type');
    for (const [field, text = ''] of fields)
      for (const value of [undefined, '', '§', `x${text.slice(1)}`, String(Number(text) + 1)])
        expect(authenticate({ ...request, headers: { ...request.headers, [field]: value } }, NOW)).toBe('refused');
  });

  const period = PERIODS_MS[name];
  if (period === undefined) return;
  it('accepts a time at the limits of its period, and refuses a time beyond them', () => {
    const [maxAgeMs, maxAheadMs] = period;
    const results = [-maxAgeMs, -maxAgeMs - 1_000, maxAheadMs, maxAheadMs + 1_000].map((ms) =>
      authenticate(createRequestOf(first, NOW + ms), NOW),
    );
    expect(results).toEqual(['authenticated', 'refused', 'authenticated', 'refused']);
  });
});
