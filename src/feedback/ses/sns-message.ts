/**
 * Parses messages that Amazon SNS sends to an HTTP endpoint, and creates the text to which the signature applies
 * ("Verifying the signatures of Amazon SNS messages" in the SNS Developer Guide). The functions are pure.
 */

export interface SnsMessage {
  readonly type: 'Notification' | 'SubscriptionConfirmation' | 'UnsubscribeConfirmation';
  readonly messageId: string;
  readonly topicArn: string;
  readonly message: string;
  /** The time of the message in milliseconds since the epoch. */
  readonly at: number;
  readonly signatureVersion: '1' | '2';
  readonly signature: Buffer;
  readonly signingCertUrl: URL;
  /** The URL that confirms a subscription. Null for other messages. */
  readonly subscribeUrl: URL | null;
  /** The text to which the signature applies, as octets. */
  readonly signedContent: Buffer;
}

export type ParsedSnsMessage =
  | { readonly ok: true; readonly message: SnsMessage }
  /**
   * The fault of an invalid message. `forged`: the content proves that SNS did not send the message. `broken`: the body
   * is not an SNS message.
   */
  | { readonly ok: false; readonly fault: 'forged' | 'broken'; readonly reason: string };

const SIGNED_FIELDS = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const;

/** Parses a message and checks its fields. Does not check the signature, and does not compare the topic or the time. */
export function parseSnsMessage(body: string): ParsedSnsMessage {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return createBrokenResult('the body is not JSON');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    return createBrokenResult('the body is not a JSON object');
  const fields = json as Readonly<Record<string, unknown>>;
  const readText = (name: string): string | null => (typeof fields[name] === 'string' ? fields[name] : null);
  const type = readText('Type');
  if (type === null || !Object.hasOwn(SIGNED_FIELDS, type)) return createBrokenResult('the Type is not a type of SNS');
  const messageType = type as keyof typeof SIGNED_FIELDS;
  const requiredFields = SIGNED_FIELDS[messageType].filter((name) => name !== 'Subject');
  const missingField = [...requiredFields, 'Signature', 'SignatureVersion', 'SigningCertURL'].find(
    (name) => readText(name) === null,
  );
  if (missingField !== undefined) return createBrokenResult(`the field ${missingField} is missing`);
  const readTextOrEmpty = (name: string) => readText(name) ?? '';
  const version = readTextOrEmpty('SignatureVersion');
  if (version !== '1' && version !== '2')
    return createForgedResult(`signature version ${version.slice(0, 10)} is not supported`);
  const at = Date.parse(readTextOrEmpty('Timestamp'));
  if (Number.isNaN(at)) return createBrokenResult('the Timestamp is not a date');
  const topicArn = readTextOrEmpty('TopicArn');
  const region = topicArn.split(':')[3] ?? '';
  const signingCertUrl = parseSnsUrl(readTextOrEmpty('SigningCertURL'), region);
  if (signingCertUrl === null || !signingCertUrl.pathname.endsWith('.pem') || signingCertUrl.search !== '') {
    return createForgedResult('SigningCertURL is not a URL of SNS in the region of the topic');
  }
  const isConfirmation = messageType === 'SubscriptionConfirmation';
  const subscribeUrl = isConfirmation ? parseSnsUrl(readTextOrEmpty('SubscribeURL'), region) : null;
  if (isConfirmation && subscribeUrl === null)
    return createForgedResult('SubscribeURL is not a URL of SNS in the region of the topic');
  const signedContent = SIGNED_FIELDS[messageType]
    .flatMap((name) => (readText(name) === null ? [] : [`${name}\n${readTextOrEmpty(name)}\n`]))
    .join('');
  return {
    ok: true,
    message: {
      type: messageType,
      messageId: readTextOrEmpty('MessageId'),
      topicArn,
      message: readTextOrEmpty('Message'),
      at,
      signatureVersion: version,
      signature: Buffer.from(readTextOrEmpty('Signature'), 'base64'),
      signingCertUrl,
      subscribeUrl,
      signedContent: Buffer.from(signedContent, 'utf8'),
    },
  };
}

/**
 * Parses an https URL of SNS in this region, without user, password, port or fragment. Returns null for any other text.
 */
export function parseSnsUrl(text: string, region: string): URL | null {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.port !== '')
    return null;
  if (region === '' || url.hash !== '') return null;
  const domainSuffix = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  // The text is compared too, because the URL parser normalizes some characters.
  const host = `sns.${region}.${domainSuffix}`;
  return url.hostname === host && text.startsWith(`https://${host}/`) ? url : null;
}

function createBrokenResult(reason: string): ParsedSnsMessage {
  return { ok: false, fault: 'broken', reason };
}

function createForgedResult(reason: string): ParsedSnsMessage {
  return { ok: false, fault: 'forged', reason };
}
