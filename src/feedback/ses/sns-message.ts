/**
 * Parses messages of Amazon SNS to an HTTP endpoint and builds the signed content ("Verifying the signatures of Amazon SNS
 * messages" in the SNS Developer Guide). The functions are pure.
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
  /** The URL of a subscription confirmation; null for other messages. */
  readonly subscribeUrl: URL | null;
  /** The signed octets. */
  readonly signedContent: Buffer;
}

export type ParsedSns =
  | { readonly ok: true; readonly message: SnsMessage }
  /** `forged`: the content proves that SNS did not send the message; `broken`: the body is not an SNS message. */
  | { readonly ok: false; readonly fault: 'forged' | 'broken'; readonly reason: string };

const SIGNED_FIELDS = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const;

/** Parses a message and checks everything except the signature. */
export function parseSns(body: string): ParsedSns {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return broken('the body is not JSON');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return broken('the body is not a JSON object');
  const fields = json as Readonly<Record<string, unknown>>;
  const text = (name: string): string | null => (typeof fields[name] === 'string' ? fields[name] : null);
  const type = text('Type');
  if (type === null || !Object.hasOwn(SIGNED_FIELDS, type)) return broken('its Type is not a type of SNS');
  const messageType = type as keyof typeof SIGNED_FIELDS;
  const required = SIGNED_FIELDS[messageType].filter((name) => name !== 'Subject');
  const missing = [...required, 'Signature', 'SignatureVersion', 'SigningCertURL'].find((name) => text(name) === null);
  if (missing !== undefined) return broken(`it has no ${missing}`);
  const value = (name: string) => text(name) ?? '';
  const version = value('SignatureVersion');
  if (version !== '1' && version !== '2') return forged(`signature version ${version.slice(0, 10)} is not supported`);
  const at = Date.parse(value('Timestamp'));
  if (Number.isNaN(at)) return broken('its Timestamp is not a date');
  const topicArn = value('TopicArn');
  const region = topicArn.split(':')[3] ?? '';
  const signingCertUrl = snsUrl(value('SigningCertURL'), region);
  if (signingCertUrl === null || !signingCertUrl.pathname.endsWith('.pem') || signingCertUrl.search !== '') {
    return forged('SigningCertURL is not a URL of SNS in the region of the topic');
  }
  const isConfirmation = messageType === 'SubscriptionConfirmation';
  const subscribeUrl = isConfirmation ? snsUrl(value('SubscribeURL'), region) : null;
  if (isConfirmation && subscribeUrl === null)
    return forged('SubscribeURL is not a URL of SNS in the region of the topic');
  const signedContent = SIGNED_FIELDS[messageType]
    .flatMap((name) => (text(name) === null ? [] : [`${name}\n${value(name)}\n`]))
    .join('');
  return {
    ok: true,
    message: {
      type: messageType,
      messageId: value('MessageId'),
      topicArn,
      message: value('Message'),
      at,
      signatureVersion: version,
      signature: Buffer.from(value('Signature'), 'base64'),
      signingCertUrl,
      subscribeUrl,
      signedContent: Buffer.from(signedContent, 'utf8'),
    },
  };
}

/** Parses an https URL of SNS in this region, without user, password, port or fragment. Returns null for any other text. */
export function snsUrl(text: string, region: string): URL | null {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.port !== '')
    return null;
  if (region === '' || url.hash !== '') return null;
  const suffix = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  // The text is compared too, because the URL parser normalizes unusual characters.
  const host = `sns.${region}.${suffix}`;
  return url.hostname === host && text.startsWith(`https://${host}/`) ? url : null;
}

function broken(reason: string): ParsedSns {
  return { ok: false, fault: 'broken', reason };
}

function forged(reason: string): ParsedSns {
  return { ok: false, fault: 'forged', reason };
}
