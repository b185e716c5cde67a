/**
 * Messages of Amazon SNS as they are posted to an HTTP endpoint, and what their signature covers ("Verifying the signatures
 * of Amazon SNS messages" in the SNS Developer Guide). Pure.
 */

export interface SnsMessage {
  readonly type: 'Notification' | 'SubscriptionConfirmation' | 'UnsubscribeConfirmation';
  readonly messageId: string;
  readonly topicArn: string;
  readonly message: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly signatureVersion: '1' | '2';
  readonly signature: Buffer;
  readonly signingCertUrl: URL;
  /** Of a confirmation; null otherwise. */
  readonly subscribeUrl: URL | null;
  /** The octets that are signed. */
  readonly signed: Buffer;
}

export type ParsedSns =
  | { readonly ok: true; readonly message: SnsMessage }
  /** `forged`: what is there cannot be from SNS; `broken`: it is no message of SNS at all. */
  | { readonly ok: false; readonly fault: 'forged' | 'broken'; readonly why: string };

const SIGNED = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const;

/** Reads and checks all that can be checked without a key. */
export function parseSns(body: string): ParsedSns {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return broken('it is no JSON');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return broken('it is no JSON object');
  const fields = json as Readonly<Record<string, unknown>>;
  const text = (name: string): string | null => (typeof fields[name] === 'string' ? fields[name] : null);
  const type = text('Type');
  if (type === null || !Object.hasOwn(SIGNED, type)) return broken('its Type is none of SNS');
  const known = type as keyof typeof SIGNED;
  const wanted = SIGNED[known].filter((name) => name !== 'Subject');
  const missing = [...wanted, 'Signature', 'SignatureVersion', 'SigningCertURL'].find((name) => text(name) === null);
  if (missing !== undefined) return broken(`it has no ${missing}`);
  const value = (name: string) => text(name) ?? '';
  const version = value('SignatureVersion');
  if (version !== '1' && version !== '2') return forged(`signature version ${version.slice(0, 10)} is none of SNS`);
  const at = Date.parse(value('Timestamp'));
  if (Number.isNaN(at)) return broken('its Timestamp is no time');
  const topicArn = value('TopicArn');
  const region = topicArn.split(':')[3] ?? '';
  const signingCertUrl = snsUrl(value('SigningCertURL'), region);
  if (signingCertUrl === null || !signingCertUrl.pathname.endsWith('.pem') || signingCertUrl.search !== '') {
    return forged('its signing certificate is not at an address of SNS in the region of its topic');
  }
  const confirms = known === 'SubscriptionConfirmation';
  const subscribeUrl = confirms ? snsUrl(value('SubscribeURL'), region) : null;
  if (confirms && subscribeUrl === null)
    return forged('its SubscribeURL is not an address of SNS in the region of its topic');
  const signed = SIGNED[known].flatMap((name) => (text(name) === null ? [] : [`${name}\n${value(name)}\n`])).join('');
  return {
    ok: true,
    message: {
      type: known,
      messageId: value('MessageId'),
      topicArn,
      message: value('Message'),
      at,
      signatureVersion: version,
      signature: Buffer.from(value('Signature'), 'base64'),
      signingCertUrl,
      subscribeUrl,
      signed: Buffer.from(signed, 'utf8'),
    },
  };
}

/** An https URL whose host is exactly SNS's in this region, with nothing else in it that leads elsewhere; null otherwise. */
export function snsUrl(text: string, region: string): URL | null {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.port !== '')
    return null;
  if (region === '' || url.hash !== '') return null;
  const suffix = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  // The text itself too: what a parser makes of odd characters must not make it fit.
  const host = `sns.${region}.${suffix}`;
  return url.hostname === host && text.startsWith(`https://${host}/`) ? url : null;
}

function broken(why: string): ParsedSns {
  return { ok: false, fault: 'broken', why };
}

function forged(why: string): ParsedSns {
  return { ok: false, fault: 'forged', why };
}
