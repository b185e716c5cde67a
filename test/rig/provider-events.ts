import { createHash, createHmac, createSign, generateKeyPairSync, randomBytes, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EventProviderName } from '../../src/providers/provider.ts';

const SAMPLE_ID = '01990000-0000-7000-8000-000000000001';
const SAMPLE_RECIPIENT = 'recipient@example.com';
const SAMPLE_REFERENCE = '61eec2dc16ae8b627a4b87e7';
const SAMPLES = join(import.meta.dirname, '../corpus/provider-events');

/** A request that a provider sends, without the path of the request. */
export interface EventRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface EventSender {
  readonly secret: string;
  /** `url` is the public URL of the endpoint. `at` is the signed time in ms; the default is the current time. */
  readonly createRequest: (body: Buffer, url: string, at?: number) => EventRequest;
}

export interface EventSenderRow {
  readonly name: EventProviderName;
  readonly createSender: () => EventSender;
  readonly samples: { readonly hardBounce: string; readonly delivery: string };
  /** The ids of the events in the samples. `createEventBody` replaces the digits of these ids. */
  readonly eventIds: readonly string[];
  readonly metadata: RegExp | null;
}

export const EVENT_SENDERS: readonly EventSenderRow[] = [
  {
    name: 'postmark',
    createSender: createBasicSender,
    samples: { hardBounce: 'bounce-hard-bounce.json', delivery: 'delivery.json' },
    eventIds: [],
    metadata: /^X-PM-Metadata-postrider-id: (\S+)\r$/m,
  },
  {
    name: 'sendgrid',
    createSender: createSendgridSender,
    samples: { hardBounce: 'bounce.json', delivery: 'delivered.json' },
    eventIds: ['c2FtcGxl17942420340004', 'c2FtcGxl17942420340003'],
    metadata: /^X-SMTPAPI: \{"unique_args":\{"postrider-id":"([^"]+)"\}\}\r$/m,
  },
  {
    name: 'mailgun',
    createSender: createMailgunSender,
    samples: { hardBounce: 'failed-permanent.json', delivery: 'delivered.json' },
    eventIds: ['05'.repeat(25), '03'.repeat(25)],
    metadata: /^X-Mailgun-Variables: \{"postrider-id":"([^"]+)"\}\r$/m,
  },
  {
    name: 'resend',
    createSender: createResendSender,
    samples: { hardBounce: 'bounced-permanent.json', delivery: 'email-delivered.json' },
    eventIds: [],
    metadata: /^X-Postrider-Id: (\S+)\r$/m,
  },
  {
    name: 'brevo',
    createSender: createBasicSender,
    samples: { hardBounce: 'hard-bounce.json', delivery: 'delivered.json' },
    eventIds: [],
    metadata: /^X-Mailin-custom: \{"postrider-id":"([^"]+)"\}\r$/m,
  },
  {
    name: 'mailjet',
    createSender: createBasicSender,
    samples: { hardBounce: 'bounce-hard.json', delivery: 'sent.json' },
    eventIds: [],
    metadata: /^X-MJ-CustomID: (\S+)\r$/m,
  },
  {
    name: 'sparkpost',
    createSender: createBasicSender,
    samples: { hardBounce: 'bounce-10.json', delivery: 'delivery.json' },
    eventIds: ['92356927693813858', '92356927693813893'],
    metadata: /^X-MSYS-API: \{"metadata":\{"postrider-id":"([^"]+)"\}\}\r$/m,
  },
  {
    name: 'mandrill',
    createSender: createMandrillSender,
    samples: { hardBounce: 'hard-bounce.form', delivery: 'delivered.form' },
    eventIds: [],
    metadata: /^X-MC-Metadata: \{"postrider-id":"([^"]+)"\}\r$/m,
  },
  {
    name: 'mailersend',
    createSender: () => createHexSender('signature'),
    samples: { hardBounce: 'hard-bounced.json', delivery: 'delivered.json' },
    eventIds: ['6892766a5b66e2daf3dc915c'],
    metadata: null,
  },
  {
    name: 'mailtrap',
    createSender: () => createHexSender('mailtrap-signature'),
    samples: { hardBounce: 'bounce.json', delivery: 'delivery.json' },
    eventIds: ['bede7236-2284-43d6-a953-1fdcafd0f001', 'bede7236-2284-43d6-a953-1fdcafd0f007'],
    metadata: /^X-MT-Custom-Variables: \{"postrider-id":"([^"]+)"\}\r$/m,
  },
  {
    name: 'postal',
    createSender: createPostalSender,
    samples: { hardBounce: 'message-delivery-failed.json', delivery: 'message-sent.json' },
    eventIds: ['62498fda-ffc5-42f9-b23e-cea5274c5003', '62498fda-ffc5-42f9-b23e-cea5274c5001'],
    metadata: /^Message-ID: <([^@]+)@\S+>\r$/m,
  },
];

export function createEventBody(
  { name, eventIds }: Pick<EventSenderRow, 'name' | 'eventIds'>,
  sample: string,
  message: { readonly id: string; readonly recipient: string },
): Buffer {
  const replacements: [string, string][] = [
    [SAMPLE_ID, message.id],
    [SAMPLE_RECIPIENT, message.recipient],
    [encodeURIComponent(SAMPLE_RECIPIENT), encodeURIComponent(message.recipient)],
    [SAMPLE_REFERENCE, createReference(message.id)],
    ...eventIds.map((eventId): [string, string] => [eventId, replaceDigits(eventId)]),
  ];
  const text = readFileSync(join(SAMPLES, name, sample), 'utf8');
  return Buffer.from(replacements.reduce((body, [from, to]) => body.replaceAll(from, to), text));
}

export function createReference(messageId: string): string {
  return createHash('sha256').update(messageId).digest('hex').slice(0, SAMPLE_REFERENCE.length);
}

function replaceDigits(text: string): string {
  return text.replaceAll(/[0-9]/g, () => String(randomInt(10)));
}

/** Creates a sender that uses HTTP basic authentication (RFC 7617). */
function createBasicSender(): EventSender {
  const secret = `events:${randomBytes(16).toString('hex')}`;
  const authorization = `Basic ${Buffer.from(secret).toString('base64')}`;
  return { secret, createRequest: (body) => ({ headers: { ...JSON_TYPE, authorization }, body }) };
}

export function createSendgridSender(): EventSender {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  return {
    secret: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    createRequest(body, _url, at = Date.now()) {
      const timestamp = String(Math.floor(at / 1000));
      const signature = createSign('sha256').update(timestamp).update(body).sign(privateKey, 'base64');
      const headers = {
        'x-twilio-email-event-webhook-signature': signature,
        'x-twilio-email-event-webhook-timestamp': timestamp,
      };
      return { headers: { ...JSON_TYPE, ...headers }, body };
    },
  };
}

function createMailgunSender(): EventSender {
  const secret = randomBytes(16).toString('hex');
  return {
    secret,
    createRequest(body, _url, at = Date.now()) {
      const request: { signature: { token: string } } = JSON.parse(body.toString());
      const { token } = request.signature;
      const timestamp = String(Math.floor(at / 1000));
      const signature = createHmac('sha256', secret).update(`${timestamp}${token}`).digest('hex');
      return {
        headers: JSON_TYPE,
        body: Buffer.from(JSON.stringify({ ...request, signature: { timestamp, token, signature } })),
      };
    },
  };
}

function createHexSender(field: string): EventSender {
  const secret = randomBytes(16).toString('hex');
  const createRequest = (body: Buffer): EventRequest => {
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    return { headers: { ...JSON_TYPE, [field]: signature }, body };
  };
  return { secret, createRequest };
}

function createPostalSender(): EventSender {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const createRequest = (body: Buffer): EventRequest => {
    const signature = createSign('RSA-SHA256').update(body).sign(privateKey, 'base64');
    return { headers: { ...JSON_TYPE, 'x-postal-signature-256': signature }, body };
  };
  return { secret: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'), createRequest };
}

function createResendSender(): EventSender {
  const key = randomBytes(24);
  return {
    secret: `whsec_${key.toString('base64')}`,
    createRequest(body, _url, at = Date.now()) {
      const id = `msg_${createHash('sha256').update(body).digest('hex').slice(0, 27)}`;
      const timestamp = String(Math.floor(at / 1000));
      const signature = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
      const headers = { 'svix-id': id, 'svix-timestamp': timestamp, 'svix-signature': `v1,${signature}` };
      return { headers: { ...JSON_TYPE, ...headers }, body };
    },
  };
}

function createMandrillSender(): EventSender {
  const secret = randomBytes(16).toString('base64url');
  return {
    secret,
    createRequest(body, url) {
      const events = new URLSearchParams(body.toString()).get('mandrill_events') ?? '';
      const signature = createHmac('sha1', secret).update(`${url}mandrill_events${events}`).digest('base64');
      return { headers: { ...FORM_TYPE, 'x-mandrill-signature': signature }, body };
    },
  };
}

const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' };
const JSON_TYPE = { 'content-type': 'application/json' };
