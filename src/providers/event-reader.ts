/** Reads events with a table of the names that a provider gives to their members. No body makes it throw. */
import type { FailureClass } from '../model/failure.ts';
import { computeDigest, findPostriderId, findRow, getMember, type Json, toId, toObject, toText } from './json.ts';

export interface ProviderRequest {
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** By name in lower case. The values of a repeated field are joined with `, `. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** POSTRIDER_FEEDBACK_URL and the path of the endpoint. */
  readonly url: string | null;
}

/** Untrusted, not validated and not shortened. */
export interface Diagnosis {
  /** For example `5.1.1` (RFC 3463). */
  readonly status: string | null;
  /** The reply of the receiving server, or the provider's description. */
  readonly diagnostic: string | null;
  readonly host: string | null;
}

/** `by-text`: by the diagnosis. `provider-suppressed`: not sent, on the provider’s list. `reactivated`: off it. */
export type EventMeaning =
  | FailureClass
  | 'by-text'
  | 'complaint'
  | 'provider-suppressed'
  | 'unsubscribed'
  | 'reactivated'
  | 'deferred'
  | 'delivered'
  | 'ignored';

/** For a recipient that is not a single text. No message has it. */
export const UNREADABLE_RECIPIENT = '?';

export interface ProviderEvent {
  /** Untrusted, for example `Bounce/HardBounce`. */
  readonly type: string;
  /** The provider's id of the event, or a digest: equal for all copies, in whatever batch. */
  readonly key: string;
  /** From the message's metadata or from its Message-ID. */
  readonly messageId: string | null;
  /** The provider's id of the message, which counts if `messageId` is null. */
  readonly reference: string | null;
  /** As the provider writes it, `UNREADABLE_RECIPIENT`, or null if the event names none. */
  readonly recipient: string | null;
  readonly meaning: Exclude<EventMeaning, 'ignored'>;
  /** True if the event says why the recipient is on the provider's suppression list. */
  readonly hasListReason: boolean;
  readonly diagnosis: Diagnosis;
}

export type ReadResult =
  /** `ignored`: of an ignored type, or about no message of Postrider. `broken`: no events. */
  | {
      readonly kind: 'events';
      readonly events: readonly ProviderEvent[];
      readonly ignored: number;
      readonly broken: number;
      /** Of requests without events: a later request with the same signature and another body must have no effect. */
      readonly recordedKeys?: readonly string[];
    }
  /** One line. */
  | { readonly kind: 'broken'; readonly reason: string };

export type AuthenticationResult =
  | { readonly kind: 'authenticated' }
  | { readonly kind: 'refused'; readonly reason: string };

export type MemberResult = ProviderEvent | 'ignored' | 'broken';

export const NO_EVENTS: Extract<ReadResult, { kind: 'events' }> = { kind: 'events', events: [], ignored: 0, broken: 0 };

/** A member that is not an event does not affect the others. */
export function readBatch(members: readonly unknown[], readMember: (member: Json) => MemberResult): ReadResult {
  const events: ProviderEvent[] = [];
  const counts = { ignored: 0, broken: 0 };
  for (const value of members) {
    const member = toObject(value);
    const result = member === null ? 'broken' : readMember(member);
    if (typeof result === 'string') counts[result] += 1;
    else events.push(result);
  }
  return { ...NO_EVENTS, ...counts, events };
}

export function readObjectOrArray(value: unknown, readMember: (member: Json) => MemberResult): ReadResult {
  return Array.isArray(value) ? readBatch(value, readMember) : readObject(value, readMember);
}

/** An object that is not an event is counted and acknowledged, like one of a batch. */
export function readObject(value: unknown, readMember: (member: Json) => MemberResult): ReadResult {
  return toObject(value) === null
    ? { kind: 'broken', reason: 'the body is not JSON of the form that the provider documents' }
    : readBatch([value], readMember);
}

/** A path such as `a.b`, or a function. An array of one element is read as this element. */
type Source = string | ((event: Json) => unknown);

interface EventShape {
  /** The first source with a valid value applies. */
  readonly sources: {
    readonly type: readonly Source[];
    /** They distinguish events of the same type, to which their values are appended. */
    readonly subtypes?: readonly Source[];
    readonly key?: readonly Source[];
    /** The id, metadata that contains it, or the Message-ID. */
    readonly messageId?: readonly Source[];
    readonly reference?: readonly Source[];
    readonly recipient: readonly Source[];
    readonly status?: readonly Source[];
    readonly diagnostic: readonly Source[];
    readonly host?: readonly Source[];
  };
  /** Events of any other type are ignored. */
  readonly meanings: Readonly<Record<string, EventMeaning | ((event: Json, diagnosis: Diagnosis) => EventMeaning)>>;
  readonly hasListReason?: (event: Json, diagnosis: Diagnosis) => boolean;
  /** The path of an object without which an event is broken. */
  readonly requiredObject?: string;
}

/** An event without a type is broken, and one without an id that is nested too deep. */
export function createEventReader({ sources, meanings, hasListReason, requiredObject }: EventShape) {
  const readType = createReader(sources.type, toText);
  const subtypeReaders = (sources.subtypes ?? []).map((source) => createReader([source], toText));
  const readKey = createReader(sources.key, toId);
  const readMessageId = createReader(sources.messageId, findPostriderId);
  const readReference = createReader(sources.reference, toId);
  const readRecipient = createReader(sources.recipient, toText);
  const hasRecipient = createReader(sources.recipient, (value) => (isAbsent(value) ? null : true));
  const readStatus = createReader(sources.status, toText);
  const readDiagnostic = createReader(sources.diagnostic, toText);
  const readHost = createReader(sources.host, toText);
  const getRequiredValue = requiredObject === undefined ? null : createGetter(requiredObject);
  return (event: Json): MemberResult => {
    const type = readType(event);
    if (type === null) return 'broken';
    const row = findRow(meanings, type) ?? 'ignored';
    if (row === 'ignored') return row;
    if (getRequiredValue !== null && toObject(getRequiredValue(event)) === null) return 'broken';
    const diagnosis = { status: readStatus(event), diagnostic: readDiagnostic(event), host: readHost(event) };
    const meaning = typeof row === 'function' ? row(event, diagnosis) : row;
    if (meaning === 'ignored') return meaning;
    const key = readKey(event) ?? computeDigest(event);
    if (key === null) return 'broken';
    return {
      type: [type, ...subtypeReaders.map((read) => read(event))].filter((part) => part !== null).join('/'),
      key,
      messageId: readMessageId(event),
      reference: readReference(event),
      recipient: readRecipient(event) ?? (hasRecipient(event) === null ? null : UNREADABLE_RECIPIENT),
      meaning,
      hasListReason: meaning === 'provider-suppressed' && hasListReason?.(event, diagnosis) === true,
      diagnosis,
    };
  };
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

function createReader<Value>(
  sources: readonly Source[] = [],
  convert: (value: unknown) => Value | null,
): (event: Json) => Value | null {
  const getters = sources.map(createGetter);
  return (event) => {
    for (const get of getters) {
      const value = convert(get(event));
      if (value !== null) return value;
    }
    return null;
  };
}

function createGetter(source: Source): (event: Json) => unknown {
  if (typeof source !== 'string') return source;
  const names = source.split('.');
  return (event) => names.reduce<unknown>(getMember, event);
}

export function containsAny(text: string | null, phrases: readonly string[]): boolean {
  const lowerCase = text?.toLowerCase() ?? '';
  return phrases.some((phrase) => lowerCase.includes(phrase));
}

export function groupMeanings(
  names: Readonly<Partial<Record<EventMeaning, readonly string[]>>>,
): Readonly<Record<string, EventMeaning>> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([meaning, values]) => values.map((value) => [value, meaning as EventMeaning])),
  );
}
