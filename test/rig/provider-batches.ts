import type { EventProviderName } from '../../src/providers/provider.ts';

/** A format of request bodies that contain several events. */
export interface BatchFormat {
  readonly title: string;
  readonly create: (members: readonly unknown[]) => Buffer;
}

const JSON_ARRAY: BatchFormat = { title: 'a JSON array', create: (members) => Buffer.from(JSON.stringify(members)) };
const EVENTS_FIELD = 'mandrill_events';

export const BATCH_FORMATS: Readonly<Record<EventProviderName, readonly BatchFormat[]>> = {
  postmark: [],
  sendgrid: [JSON_ARRAY],
  mailgun: [],
  resend: [],
  brevo: [JSON_ARRAY],
  mailjet: [JSON_ARRAY],
  sparkpost: [JSON_ARRAY],
  mandrill: [
    {
      title: 'a URL-encoded form',
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

export function readMember(name: EventProviderName, body: Buffer): unknown {
  const text = name === 'mandrill' ? new URLSearchParams(body.toString()).get(EVENTS_FIELD) : body.toString();
  const value: unknown = JSON.parse(text ?? 'null');
  if (Array.isArray(value)) return value[0];
  if (name !== 'mailtrap') return value;
  const { events }: { readonly events: readonly unknown[] } = JSON.parse(text ?? 'null');
  return events[0];
}

export function removeType(name: EventProviderName, member: unknown): unknown {
  const type = name === 'postal' ? /"(?:event|status)":"[A-Za-z]+"/g : /"(?:event|type|RecordType)":"[A-Za-z_.]+"/;
  return JSON.parse(JSON.stringify(member).replace(type, '"untyped":true'));
}
