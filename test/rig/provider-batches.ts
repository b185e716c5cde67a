/** The forms of a request with several events, by provider, and functions that extract the event from a sample file. */
import type { EventProviderName } from '../../src/providers/provider.ts';

/** A form of a body that contains several events. */
export interface BatchForm {
  readonly title: string;
  /** Returns the body with these elements, which may be any JSON values. */
  readonly create: (members: readonly unknown[]) => Buffer;
}

const JSON_ARRAY: BatchForm = { title: 'a JSON array', create: (members) => Buffer.from(JSON.stringify(members)) };
const EVENTS_FIELD = 'mandrill_events';

/** The forms by provider. The list is empty if the provider sends one event in each request. */
export const BATCH_FORMS: Readonly<Record<EventProviderName, readonly BatchForm[]>> = {
  postmark: [],
  sendgrid: [JSON_ARRAY],
  mailgun: [],
  resend: [],
  brevo: [JSON_ARRAY],
  mailjet: [JSON_ARRAY],
  sparkpost: [JSON_ARRAY],
  mandrill: [
    {
      title: 'a form',
      create: (members) => Buffer.from(new URLSearchParams({ [EVENTS_FIELD]: JSON.stringify(members) }).toString()),
    },
  ],
  mailersend: [],
  mailtrap: [
    { title: 'a JSON object', create: (events) => Buffer.from(JSON.stringify({ events })) },
    {
      title: 'JSON Lines',
      create: (members) => Buffer.from(members.map((member) => `${JSON.stringify(member)}\n`).join('')),
    },
  ],
  postal: [],
};

/** Returns the only event in the body of a sample, without the list or the object that contains it. */
export function readMember(name: EventProviderName, body: Buffer): unknown {
  const text = name === 'mandrill' ? new URLSearchParams(body.toString()).get(EVENTS_FIELD) : body.toString();
  const value: unknown = JSON.parse(text ?? 'null');
  if (Array.isArray(value)) return value[0];
  if (name !== 'mailtrap') return value;
  const { events }: { readonly events: readonly unknown[] } = JSON.parse(text ?? 'null');
  return events[0];
}

/** Returns the event without its type. The type of an event of Postal is also in its payload. */
export function removeType(name: EventProviderName, member: unknown): unknown {
  const type = name === 'postal' ? /"(?:event|status)":"[A-Za-z]+"/g : /"(?:event|type|RecordType)":"[A-Za-z_.]+"/;
  return JSON.parse(JSON.stringify(member).replace(type, '"untyped":true'));
}
