/** Reads and authenticates requests that contain provider events. Needs neither a listener nor a store. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProviderEvent, ReadResult } from '../../src/providers/event.ts';
import type { Json } from '../../src/providers/json.ts';
import type { EventFormat, ProviderName } from '../../src/providers/provider.ts';

const PROVIDERS = join(import.meta.dirname, '../../src/providers');

export interface FormatReader {
  /** Returns the JSON of a sample file. */
  readonly readSample: (name: string) => unknown;
  /** Returns the result of reading a request whose body is this JSON. */
  readonly readResult: (value: unknown) => ReadResult;
  /**
   * Returns the events and the counts of a request whose body is this JSON. Throws if the body is not in the provider's
   * format.
   */
  readonly read: (value: unknown) => Extract<ReadResult, { kind: 'events' }>;
  /** Returns the only event of a request whose body is this JSON. */
  readonly readEvent: (value: unknown) => ProviderEvent;
  /** Returns the result of the authentication by the header field `Authorization`. */
  readonly authenticate: (secrets: readonly string[], authorization: string | undefined) => 'authenticated' | 'refused';
}

export function createFormatReader(provider: ProviderName, format: EventFormat): FormatReader {
  const readResult = (value: unknown): ReadResult =>
    format.read({ method: 'POST', headers: {}, body: Buffer.from(JSON.stringify(value)), url: null });
  const read = (value: unknown) => {
    const result = readResult(value);
    if (result.kind !== 'events') throw new Error(result.reason);
    return result;
  };
  return {
    readSample: (name) => JSON.parse(readFileSync(join(PROVIDERS, provider, 'samples', name), 'utf8')),
    readResult,
    read,
    readEvent: (value) => {
      const [event] = read(value).events;
      if (event === undefined) throw new Error('the body contains no event');
      return event;
    },
    authenticate: (secrets, authorization) => {
      const parseResult = format.createAuthenticator(secrets);
      if (!parseResult.ok) throw new Error(parseResult.fault);
      const headers = authorization === undefined ? {} : { authorization };
      return parseResult.secret({ method: 'POST', headers, body: Buffer.from('[]'), url: null }, 0).kind;
    },
  };
}

/** Returns a copy of a sample in which the given members are replaced. */
export function replaceMembers(sample: unknown, members: Json): Json {
  if (typeof sample !== 'object' || sample === null) throw new Error('the sample is not an object');
  return { ...sample, ...members };
}

/** Returns the value of `Authorization` of HTTP basic authentication (RFC 7617). */
export function createBasicAuthorization(userAndPassword: string): string {
  return `Basic ${Buffer.from(userAndPassword).toString('base64')}`;
}

/** Two secrets, and values of `Authorization` that neither of them authenticates. */
export const BASIC_SECRETS = ['events:correct-password', 'rotated:second-password'] as const;
export const WRONG_AUTHORIZATIONS: readonly (readonly [name: string, authorization: string | undefined])[] = [
  ['without Authorization', undefined],
  ['with an empty Authorization', ''],
  ['with a scheme only', 'Basic'],
  ['with the wrong password', createBasicAuthorization('events:wrong-password')],
  ['with the wrong user name', createBasicAuthorization('other:correct-password')],
  ['with the password of another secret', createBasicAuthorization('events:second-password')],
  ['with only a part of the password', createBasicAuthorization('events:correct-passwor')],
  ['with a longer password', createBasicAuthorization('events:correct-password1')],
  ['with unencoded user name and password', 'Basic events:correct-password'],
  ['with another scheme', createBasicAuthorization('events:correct-password').replace('Basic', 'Bearer')],
];
