/** Reads the members of a batch of events. A member that is not an event does not affect the other members. */
import { NO_EVENTS, type ProviderEvent, type ReadResult } from './event.ts';
import { type Json, toObject } from './json.ts';

/** The result of reading one member: an event, or the name of the count in `ReadResult` that includes the member. */
export type MemberResult = ProviderEvent | 'ignored' | 'broken';

/** Reads every member of a batch, in order. A member that is not an object is counted as broken. */
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

/** Reads a body that is one event. An object that is not an event is counted and acknowledged, like a member of a batch. */
export function readObject(value: unknown, readMember: (member: Json) => MemberResult): ReadResult {
  return toObject(value) === null
    ? { kind: 'broken', reason: 'the body is not JSON of the form that the provider documents' }
    : readBatch([value], readMember);
}
