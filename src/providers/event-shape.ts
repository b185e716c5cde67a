/**
 * Reads one event with a table of the names that a provider gives to the members of its events. The parsers of all
 * providers use this reader. The functions are pure and never throw.
 */
import type { MemberResult } from './batch.ts';
import {
  createFact,
  type Diagnosis,
  type EventMeaning,
  type ProviderFact,
  type ProviderListReason,
  UNREADABLE_RECIPIENT,
} from './event.ts';
import {
  computeDigest,
  findPostriderId,
  findRow,
  getMember,
  type Json,
  parseTime,
  toId,
  toObject,
  toText,
} from './json.ts';

/**
 * The position of a value in an event. A string is the path of a member: `a.b` is the member `b` of the object `a`. An
 * array of one element is read as this element. A function computes a value that is not a member.
 */
export type Source = string | ((event: Json) => unknown);

/** The sources of each value of an event, in order. The first source with a valid value applies. */
export interface EventSources {
  /** The type, which selects the meaning. */
  readonly type: readonly Source[];
  /** The members that distinguish events of the same type. The values of the members are appended to the type. */
  readonly subtypes?: readonly Source[];
  /** The provider's id of the event. Without an id, the key of the event is a digest of the event. */
  readonly key?: readonly Source[];
  /** The message id of Postrider, metadata that contains this id, or the Message-ID of the message. */
  readonly messageId?: readonly Source[];
  /** The provider's id of the message. */
  readonly reference?: readonly Source[];
  readonly recipient: readonly Source[];
  /** A Unix time in seconds, or an ISO 8601 time with a time zone. */
  readonly at: readonly Source[];
  readonly status?: readonly Source[];
  readonly diagnostic: readonly Source[];
  readonly host?: readonly Source[];
}

/** Decides the meaning of an event whose type alone does not determine it. */
export type MeaningRule = (event: Json, diagnosis: Diagnosis) => EventMeaning;

/** The shape of a provider's events. */
export interface EventShape {
  readonly sources: EventSources;
  /** The meaning of each type, or the rule that decides it. Events of any other type are ignored. */
  readonly meanings: Readonly<Record<string, EventMeaning | MeaningRule>>;
  /**
   * Returns the reason for the entry on the provider's suppression list. The reason applies only to the meaning
   * `provider-suppressed`. Without this function, the reason is `unknown`.
   */
  readonly listReason?: (event: Json, diagnosis: Diagnosis) => ProviderListReason | undefined;
  /** The path of an object without which an event is broken. If no path is given, no object is required. */
  readonly requiredObject?: string;
}

/**
 * Creates the function that reads one event. The result is `broken` for an event without a type. The result is also
 * `broken` for an event without an id whose members are nested deeper than 64 levels. The result is `ignored` for an
 * event that Postrider ignores.
 */
export function createEventReader({ sources, meanings, listReason, requiredObject }: EventShape): ReadEvent {
  const readType = createReader(sources.type, toText);
  const subtypeReaders = (sources.subtypes ?? []).map((source) => createReader([source], toText));
  const readKey = createReader(sources.key, toId);
  const readMessageId = createReader(sources.messageId, findPostriderId);
  const readReference = createReader(sources.reference, toId);
  const readRecipient = createReader(sources.recipient, toText);
  const hasRecipient = createReader(sources.recipient, (value) => (isAbsent(value) ? null : true));
  const readTime = createReader(sources.at, parseTime);
  const readStatus = createReader(sources.status, toText);
  const readDiagnostic = createReader(sources.diagnostic, toText);
  const readHost = createReader(sources.host, toText);
  const getRequiredValue = requiredObject === undefined ? null : createGetter(requiredObject);

  function readFact(type: string, event: Json): ProviderFact | 'ignored' | 'broken' {
    const row = findRow(meanings, type) ?? 'ignored';
    if (row === 'ignored') return row;
    if (getRequiredValue !== null && toObject(getRequiredValue(event)) === null) return 'broken';
    const diagnosis = { status: readStatus(event), diagnostic: readDiagnostic(event), host: readHost(event) };
    const meaning = typeof row === 'function' ? row(event, diagnosis) : row;
    return createFact(meaning, diagnosis, listReason?.(event, diagnosis)) ?? 'ignored';
  }

  return (event) => {
    const type = readType(event);
    const fact = type === null ? 'broken' : readFact(type, event);
    if (typeof fact === 'string') return fact;
    const key = readKey(event) ?? computeDigest(event);
    if (key === null) return 'broken';
    return {
      type: [type, ...subtypeReaders.map((read) => read(event))].filter((part) => part !== null).join('/'),
      key,
      messageId: readMessageId(event),
      reference: readReference(event),
      recipient: readRecipient(event) ?? (hasRecipient(event) === null ? null : UNREADABLE_RECIPIENT),
      at: readTime(event),
      fact,
    };
  };
}

/** Reads one event. */
export type ReadEvent = (event: Json) => MemberResult;

/** Returns true for undefined, null, an empty text and an empty array, which count as absent. */
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
  return (event) => {
    let value: unknown = event;
    for (const name of names) value = getMember(value, name);
    return value;
  };
}

/** Returns the reason of the first phrase that the text contains, or `unknown`. The phrases are in lower case. */
export function findListReason(
  text: string | null,
  phrases: readonly (readonly [phrase: string, reason: ProviderListReason])[],
): ProviderListReason {
  const lowerCase = text?.toLowerCase() ?? '';
  return phrases.find(([phrase]) => lowerCase.includes(phrase))?.[1] ?? 'unknown';
}
