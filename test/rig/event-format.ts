import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProviderEvent, ProviderRequest, ReadResult } from '../../src/providers/event-reader.ts';
import type { Json } from '../../src/providers/json.ts';
import type { EventFormat, ProviderName } from '../../src/providers/provider.ts';
import { findProvider } from '../../src/providers/providers.ts';

const SAMPLES = join(import.meta.dirname, '../corpus/provider-events');

export const MESSAGE_ID = '01990000-0000-7000-8000-000000000001';
export const RECIPIENT = 'recipient@example.com';

export type EventsResult = Extract<ReadResult, { kind: 'events' }>;

export function createRequest(body: string | Buffer, headers: ProviderRequest['headers'] = {}): ProviderRequest {
  return { method: 'POST', headers, body: Buffer.from(body), url: null };
}

export function createAuthenticator(
  { createAuthenticator: create }: EventFormat,
  ...secrets: readonly string[]
): (request: ProviderRequest, now?: number) => 'authenticated' | 'refused' {
  const parseResult = create(secrets);
  if (!parseResult.ok) throw new Error(parseResult.fault);
  return (request, now = 0) => parseResult.secret(request, now).kind;
}

/** @throws Error if the body is not in the provider's format */
export function readEvents({ read }: EventFormat, request: ProviderRequest): EventsResult {
  const result = read(request);
  if (result.kind !== 'events') throw new Error(result.reason);
  return result;
}

export function getOnlyEvent({ events }: EventsResult): ProviderEvent {
  const [event] = events;
  if (event === undefined || events.length > 1) throw new Error(`${events.length} events`);
  return event;
}

/** A documented type of events, what it means, and the name of its sample. */
export interface DocumentedType {
  readonly sample: string;
  readonly meaning: string;
  readonly type: string;
}

export function listDocumentedTypes(provider: ProviderName): readonly DocumentedType[] {
  const lines = readFileSync(join(SAMPLES, 'meanings.tsv'), 'utf8').trimEnd().split('\n');
  return lines.flatMap((line) => {
    const [name, sample = '', meaning = '', type = ''] = line.split('\t');
    return name === provider ? [{ sample, meaning, type }] : [];
  });
}

export function listSamples(provider: ProviderName): readonly string[] {
  return readdirSync(join(SAMPLES, provider));
}

export function readSampleFile(provider: ProviderName, name: string): Buffer {
  return readFileSync(join(SAMPLES, provider, name));
}

export function getFormat(provider: ProviderName): EventFormat {
  const format = findProvider(provider)?.events ?? null;
  if (format === null) throw new Error(`${provider} has no events`);
  return format;
}

export interface FormatReader {
  readonly readSampleBody: (name: string) => Buffer;
  readonly readSample: (name: string) => unknown;
  readonly read: (value: unknown) => EventsResult;
  readonly readEvent: (value: unknown) => ProviderEvent;
}

export function createFormatReader(provider: ProviderName): FormatReader {
  const format = getFormat(provider);
  const readSampleBody = (name: string) => readSampleFile(provider, name);
  const read = (value: unknown) => readEvents(format, createRequest(JSON.stringify(value)));
  return {
    readSampleBody,
    readSample: (name) => JSON.parse(readSampleBody(name).toString()),
    read,
    readEvent: (value) => getOnlyEvent(read(value)),
  };
}

export function replaceMembers(sample: unknown, members: Json): Json {
  if (typeof sample !== 'object' || sample === null) throw new Error('the sample is not an object');
  return { ...sample, ...members };
}
