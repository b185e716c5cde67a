/**
 * Reads the events of managed providers with a table of the names that a provider gives to their members. The readers
 * are pure and never throw for any body.
 */
import type { FailureClass } from '../model/failure.ts';
import { computeDigest, findPostriderId, findRow, getMember, type Json, toId, toObject, toText } from './json.ts';

/** One HTTP request of a provider. */
export interface ProviderRequest {
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** The header fields by name in lower case. The values of a repeated field are joined with `, `. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** The public URL of the endpoint: POSTRIDER_FEEDBACK_URL and the path. Null if POSTRIDER_FEEDBACK_URL is not set. */
  readonly url: string | null;
}

/** The diagnosis that an event contains. The texts are untrusted, not validated and not shortened. */
export interface Diagnosis {
  /** The enhanced status code, for example `5.1.1` (RFC 3463), or null. */
  readonly status: string | null;
  /** The reply of the receiving server, or the provider's description, or null. */
  readonly diagnostic: string | null;
  /** The name or the address of the receiving server, or null. */
  readonly host: string | null;
}

/**
 * What a documented type of event means. A failure class: the provider makes no further attempt; for `by-text`, the
 * diagnosis determines the class. `provider-suppressed`: the provider did not send the message, because the recipient is
 * on its suppression list. `reactivated`: the recipient was removed from this list. `ignored`: Postrider ignores it.
 */
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

/** The recipient of an event whose recipient is not a single text. No message has this recipient. */
export const UNREADABLE_RECIPIENT = '?';

export interface ProviderEvent {
  /** The type as the provider writes it, for example `Bounce/HardBounce`. It is untrusted text. */
  readonly type: string;
  /** The provider's id of the event, or a digest of the event: equal for all copies, in whatever batch. */
  readonly key: string;
  /** The id of the message from the message's metadata or from its Message-ID. Null if the event contains neither. */
  readonly messageId: string | null;
  /** The provider's id of the message, or null. Postrider uses it only if `messageId` is null. */
  readonly reference: string | null;
  /** As the provider writes it, `UNREADABLE_RECIPIENT`, or null if the event names none. */
  readonly recipient: string | null;
  readonly meaning: Exclude<EventMeaning, 'ignored'>;
  /** True if the event says why the recipient is on the provider's suppression list. */
  readonly hasListReason: boolean;
  readonly diagnosis: Diagnosis;
}

export type ReadResult =
  /**
   * `ignored` counts the events that concern no message of Postrider or are of an ignored type, `broken` the members
   * that are no events.
   */
  | {
      readonly kind: 'events';
      readonly events: readonly ProviderEvent[];
      readonly ignored: number;
      readonly broken: number;
      /**
       * The keys of an authenticated request without events. Postrider records them, so that a later request with the
       * same signature and a different body has no effect.
       */
      readonly recordedKeys?: readonly string[];
    }
  /** The body is not in the provider's format. `reason` is one line, for example `the body is not a JSON object`. */
  | { readonly kind: 'broken'; readonly reason: string };

export type AuthenticationResult =
  | { readonly kind: 'authenticated' }
  /** The response has status 401. `reason` is one line without secrets, for example `the signature is invalid`. */
  | { readonly kind: 'refused'; readonly reason: string };

/** The result of reading one member: an event, or the name of the count in `ReadResult` that includes the member. */
export type MemberResult = ProviderEvent | 'ignored' | 'broken';

export const NO_EVENTS: Extract<ReadResult, { kind: 'events' }> = { kind: 'events', events: [], ignored: 0, broken: 0 };

/** Reads every member of a batch, in order. A member that is not an event does not affect the others. */
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

/** Reads a body that is one event or an array of events. */
export function readObjectOrArray(value: unknown, readMember: (member: Json) => MemberResult): ReadResult {
  return Array.isArray(value) ? readBatch(value, readMember) : readObject(value, readMember);
}

/** Reads a body that is one event. An object that is not an event is counted and acknowledged, like one of a batch. */
export function readObject(value: unknown, readMember: (member: Json) => MemberResult): ReadResult {
  return toObject(value) === null
    ? { kind: 'broken', reason: 'the body is not JSON of the form that the provider documents' }
    : readBatch([value], readMember);
}

/**
 * The position of a value in an event. A string is the path of a member: `a.b` is the member `b` of the object `a`. An
 * array of one element is read as this element. A function computes a value that is not a member.
 */
type Source = string | ((event: Json) => unknown);

/** The shape of a provider's events. */
interface EventShape {
  /** The sources of each value of an event, in order. The first source with a valid value applies. */
  readonly sources: {
    /** The type, which selects the meaning. */
    readonly type: readonly Source[];
    /** The members that distinguish events of the same type. Their values are appended to the type. */
    readonly subtypes?: readonly Source[];
    readonly key?: readonly Source[];
    /** The message id of Postrider, metadata that contains this id, or the Message-ID of the message. */
    readonly messageId?: readonly Source[];
    readonly reference?: readonly Source[];
    readonly recipient: readonly Source[];
    readonly status?: readonly Source[];
    readonly diagnostic: readonly Source[];
    readonly host?: readonly Source[];
  };
  /** The meaning of each type, or the rule that decides it. Events of any other type are ignored. */
  readonly meanings: Readonly<Record<string, EventMeaning | ((event: Json, diagnosis: Diagnosis) => EventMeaning)>>;
  readonly hasListReason?: (event: Json, diagnosis: Diagnosis) => boolean;
  /** The path of an object without which an event is broken. If no path is given, no object is required. */
  readonly requiredObject?: string;
}

/** Creates the function that reads one event. An event without a type or, if it is nested too deep, an id is broken. */
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

/** Creates a function that returns the first source value that `convert` accepts, after conversion, or null. */
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

/** Returns true if the text contains one of the phrases, which are in lower case. */
export function containsAny(text: string | null, phrases: readonly string[]): boolean {
  const lowerCase = text?.toLowerCase() ?? '';
  return phrases.some((phrase) => lowerCase.includes(phrase));
}
