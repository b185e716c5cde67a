import { randomUUID, sign } from 'node:crypto';
import { generate } from 'selfsigned';

export interface SigningPair {
  readonly key: string;
  readonly cert: string;
}

export interface Authority extends SigningPair {
  /** Issues a certificate for `name`. The default is the host name of SNS. */
  issueCertificate(
    name?: string,
    options?: { readonly ca?: boolean; readonly days?: number; readonly since?: Date },
  ): Promise<Authority>;
}

export async function createAuthority(
  name = 'Test Root',
  issuer: SigningPair | null = null,
  ca = true,
  since?: Date,
  days = 30,
): Promise<Authority> {
  const notBeforeDate = since ?? new Date(Date.now() - 3_600_000);
  const pems = await generate([{ name: 'commonName', value: name }], {
    algorithm: 'sha256',
    keySize: 2048,
    notBeforeDate,
    notAfterDate: new Date(notBeforeDate.getTime() + days * 86_400_000),
    ...(issuer === null ? {} : { ca: { key: issuer.key, cert: issuer.cert } }),
    extensions: ca
      ? [
          { name: 'basicConstraints', cA: true, critical: true },
          { name: 'keyUsage', keyCertSign: true, cRLSign: true },
        ]
      : [{ name: 'subjectAltName', altNames: [{ type: 2, value: name }] }],
  });
  const pair = { key: pems.private, cert: pems.cert };
  return {
    ...pair,
    issueCertificate: (
      issuedName = 'sns.amazonaws.com',
      { ca: isAuthority = false, days: validDays = 20, since: notBefore } = {},
    ) => createAuthority(issuedName, pair, isAuthority, notBefore, validDays),
  };
}

export const REGION = 'eu-west-1';
export const TOPIC = `arn:aws:sns:${REGION}:123456789012:ses-feedback`;
export const CERT_URL = `https://sns.${REGION}.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem`;

const SIGNED_FIELDS: Readonly<Record<string, readonly string[]>> = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
};

export function createSnsMessage(
  key: string,
  fields: Readonly<Record<string, string>>,
  afterSigning: Readonly<Record<string, string | undefined>> = {},
): Record<string, string | undefined> {
  const type = fields.Type ?? 'Notification';
  const isConfirmation = type !== 'Notification';
  const message: Record<string, string> = {
    Type: type,
    MessageId: randomUUID(),
    TopicArn: TOPIC,
    Message: 'hello',
    Timestamp: new Date().toISOString(),
    SignatureVersion: '2',
    SigningCertURL: CERT_URL,
    ...(isConfirmation
      ? { Token: 'token', SubscribeURL: `https://sns.${REGION}.amazonaws.com/?Action=ConfirmSubscription&Token=token` }
      : {}),
    ...fields,
  };
  const signedText = (SIGNED_FIELDS[type] ?? [])
    .flatMap((name) => (message[name] === undefined ? [] : [`${name}\n${message[name]}\n`]))
    .join('');
  const digest = message.SignatureVersion === '1' ? 'RSA-SHA1' : 'RSA-SHA256';
  const Signature = sign(digest, Buffer.from(signedText), key).toString('base64');
  return { ...message, Signature, ...afterSigning };
}

export function createSesEvent(
  type: string,
  reference: string,
  to: string,
  detail: Readonly<Record<string, unknown>> = {},
  typeMember: 'eventType' | 'notificationType' = 'eventType',
): string {
  const timestamp = new Date().toISOString();
  const details: Record<string, Record<string, unknown>> = {
    Bounce: {
      bounceType: 'Permanent',
      bounceSubType: 'General',
      bouncedRecipients: [
        { emailAddress: to, action: 'failed', status: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 user unknown' },
      ],
      timestamp,
      feedbackId: `${reference}-bounce`,
      reportingMTA: 'dns; a1.smtp-out.eu-west-1.amazonses.com',
      ...detail,
    },
    Complaint: {
      complainedRecipients: [{ emailAddress: to }],
      timestamp,
      feedbackId: `${reference}-complaint`,
      userAgent: 'ExampleCorp Feedback Loop (V0.01)',
      complaintFeedbackType: 'abuse',
      ...detail,
    },
    Delivery: {
      timestamp,
      processingTimeMillis: 546,
      recipients: [to],
      smtpResponse: '250 ok',
      reportingMTA: 'a8.smtp-out.amazonses.com',
      ...detail,
    },
    DeliveryDelay: {
      timestamp,
      delayType: 'MailboxFull',
      delayedRecipients: [{ emailAddress: to, status: '4.2.2', diagnosticCode: 'smtp; 452 full' }],
      ...detail,
    },
    Reject: { reason: 'Bad content', ...detail },
  };
  const detailMembers: Record<string, string> = {
    Bounce: 'bounce',
    Complaint: 'complaint',
    Delivery: 'delivery',
    DeliveryDelay: 'deliveryDelay',
    Reject: 'reject',
    'Rendering Failure': 'failure',
  };
  const name = detailMembers[type];
  return JSON.stringify({
    [typeMember]: type,
    mail: { timestamp, messageId: reference, source: 'shop@example.org', destination: [to] },
    ...(name === undefined ? {} : { [name]: details[type] ?? { errorMessage: 'Attribute is not present', ...detail } }),
  });
}
