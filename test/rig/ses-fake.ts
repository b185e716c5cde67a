/** A fake of the SESv2 API (REST, JSON) on loopback, with the operations that Postrider uses. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { beforeEach, vi } from 'vitest';
import { listenOnFreePort } from './free-port.ts';

export interface SesAnswer {
  readonly status: number;
  readonly type?: string;
  readonly body: unknown;
}

/** `disconnect`: no response; `truncate`: a part of the response; `garbage`: a 200 response that is not JSON. */
export type SesBehavior = SesAnswer | 'accept' | 'stall' | 'disconnect' | 'truncate' | 'garbage';

export interface ReceivedMessage {
  readonly id: string;
  readonly to: readonly string[];
  readonly data: Buffer;
  readonly configurationSet: string | null;
  readonly at: number;
}

export interface Identity {
  isVerified: boolean;
  dkim: string;
  origin: 'AWS_SES' | 'EXTERNAL';
  tokens: readonly string[];
  selector: string | null;
  privateKey: string | null;
  /** The zone in which Easy DKIM publishes its keys. If `keyZone` is undefined, the response contains no zone. */
  keyZone?: string;
  mailFrom?: { readonly domain: string; readonly status: string; readonly behavior: string };
}

export interface SesFake {
  readonly endpoint: string;
  readonly receivedMessages: readonly ReceivedMessage[];
  readonly identities: Map<string, Identity>;
  readonly requests: readonly string[];
  readonly connectionCount: number;
  /** Returns the behavior for a message. The default is `accept`. */
  send: (message: { readonly to: string; readonly count: number }) => SesBehavior;
  account: SesBehavior;
  readonly suppressionReasons: Map<string, 'BOUNCE' | 'COMPLAINT'>;
  suppressionList: SesBehavior;
  close(): Promise<void>;
}

export const createErrorAnswer = (status: number, type: string, message: string): SesAnswer => ({
  status,
  type,
  body: { message },
});

export function createAccountAnswer(
  extraMembers: Record<string, unknown> = {},
  quota: Record<string, unknown> = {},
): SesAnswer {
  return {
    status: 200,
    body: {
      SendingEnabled: true,
      ProductionAccessEnabled: true,
      EnforcementStatus: 'HEALTHY',
      SendQuota: { Max24HourSend: 50_000, MaxSendRate: 500, SentLast24Hours: 10, ...quota },
      SuppressionAttributes: { SuppressedReasons: ['BOUNCE', 'COMPLAINT'] },
      ...extraMembers,
    },
  };
}

export async function startSesFake(): Promise<SesFake> {
  const receivedMessages: ReceivedMessage[] = [];
  const requests: string[] = [];
  const identities = new Map<string, Identity>();
  const suppressionReasons: SesFake['suppressionReasons'] = new Map();
  let connectionCount = 0;
  let messageCount = 0;
  let endpoint = '';
  const server = createServer((request, response) => {
    void handleRequest(request, response).catch(() => response.destroy());
  });
  server.on('connection', () => {
    connectionCount += 1;
  });

  async function handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const path = request.url ?? '';
    requests.push(`${request.method} ${path}`);
    const body = chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>);
    if (path === '/v2/email/outbound-emails') return sendEmail(body, response);
    if (path === '/v2/email/account') return respondAs(fake.account, response, () => createAccountAnswer());
    if (path.startsWith('/v2/email/identities')) return handleIdentity(request.method ?? '', path, body, response);
    if (path.startsWith('/v2/email/suppression/addresses'))
      return respondAs(fake.suppressionList, response, () => changeSuppressionList(request.method ?? '', path));
    sendAnswer(response, createErrorAnswer(404, 'NotFoundException', `there is no path ${path}`));
  }

  function changeSuppressionList(method: string, path: string): SesAnswer {
    const { pathname, searchParams } = new URL(path, 'http://localhost');
    const [localPart, domain] = decodeURIComponent(pathname.split('/')[5] ?? '').split('@');
    if (method === 'DELETE') {
      const address = `${localPart}@${(domain ?? '').toLowerCase()}`;
      if (suppressionReasons.delete(address)) return { status: 200, body: {} };
      const text = `Email address ${address} does not exist on your suppression list.`;
      return createErrorAnswer(404, 'NotFoundException', text);
    }
    const firstIndex = Number(searchParams.get('NextToken') ?? 0);
    const end = firstIndex + Number(searchParams.get('PageSize') ?? 1_000);
    const summaries = [...suppressionReasons].slice(firstIndex, end).map(([address, reason]) => ({
      EmailAddress: address,
      Reason: reason,
      LastUpdateTime: 1_795_000_000,
    }));
    const nextMembers = end < suppressionReasons.size ? { NextToken: String(end) } : {};
    return { status: 200, body: { SuppressedDestinationSummaries: summaries, ...nextMembers } };
  }

  function sendEmail(body: Record<string, unknown>, response: ServerResponse): void {
    const { Destination, Content, ConfigurationSetName } = body as {
      Destination: { ToAddresses: string[] };
      Content: { Raw: { Data: string } };
      ConfigurationSetName?: string;
    };
    messageCount += 1;
    const [to = ''] = Destination.ToAddresses;
    respondAs(fake.send({ to, count: messageCount }), response, () => {
      const id = `0102018f${messageCount.toString(16).padStart(8, '0')}-fake-000000`;
      const data = Buffer.from(Content.Raw.Data, 'base64');
      // As at Amazon SES, which refuses such a message also over SMTP.
      if ((data.toString('latin1').match(/^DKIM-Signature:/gim)?.length ?? 0) > 1)
        return createErrorAnswer(400, 'InvalidParameterValue', "Duplicate header 'DKIM-Signature'.");
      receivedMessages.push({
        id,
        to: Destination.ToAddresses,
        data,
        configurationSet: ConfigurationSetName ?? null,
        at: Date.now(),
      });
      return { status: 200, body: { MessageId: id } };
    });
  }

  function handleIdentity(method: string, path: string, body: Record<string, unknown>, response: ServerResponse) {
    const name = decodeURIComponent(path.split('/')[4] ?? String(body.EmailIdentity ?? ''));
    const existingIdentity = identities.get(name);
    if (method === 'POST' && existingIdentity !== undefined)
      return sendAnswer(
        response,
        createErrorAnswer(400, 'AlreadyExistsException', `Email identity ${name} already exist.`),
      );
    if (method === 'GET' && existingIdentity === undefined)
      return sendAnswer(
        response,
        createErrorAnswer(404, 'NotFoundException', `Email identity ${name} does not exist.`),
      );
    if (method === 'POST' || path.endsWith('/dkim/signing')) {
      const signingAttributes = (body.DkimSigningAttributes ?? body.SigningAttributes) as
        | { DomainSigningSelector?: string; DomainSigningPrivateKey?: string }
        | undefined;
      const isExternal = signingAttributes?.DomainSigningSelector !== undefined;
      identities.set(name, {
        isVerified: existingIdentity?.isVerified ?? false,
        dkim: 'PENDING',
        origin: isExternal ? 'EXTERNAL' : 'AWS_SES',
        tokens: isExternal ? [signingAttributes?.DomainSigningSelector ?? ''] : ['tokenone', 'tokentwo', 'tokenthree'],
        selector: signingAttributes?.DomainSigningSelector ?? null,
        privateKey: signingAttributes?.DomainSigningPrivateKey ?? null,
        ...(existingIdentity?.mailFrom === undefined ? {} : { mailFrom: existingIdentity.mailFrom }),
      });
    }
    const { isVerified, dkim, origin, tokens, keyZone, mailFrom } = identities.get(name) as Identity;
    sendAnswer(response, {
      status: 200,
      body: {
        IdentityType: 'DOMAIN',
        VerifiedForSendingStatus: isVerified,
        VerificationStatus: isVerified ? 'SUCCESS' : 'PENDING',
        DkimAttributes: {
          SigningEnabled: true,
          Status: dkim,
          Tokens: tokens,
          SigningAttributesOrigin: origin,
          SigningHostedZone: keyZone,
        },
        MailFromAttributes: {
          MailFromDomain: mailFrom?.domain,
          MailFromDomainStatus: mailFrom?.status,
          BehaviorOnMxFailure: mailFrom?.behavior ?? 'USE_DEFAULT_VALUE',
        },
      },
    });
  }

  function respondAs(behavior: SesBehavior, response: ServerResponse, succeed: () => SesAnswer) {
    switch (behavior) {
      case 'accept':
        return sendAnswer(response, succeed());
      case 'stall':
        return;
      case 'disconnect':
        response.socket?.destroy();
        return;
      case 'truncate':
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
        response.write('{"MessageId":"0102', () => response.socket?.destroy());
        return;
      case 'garbage':
        response.writeHead(200, { 'content-type': 'application/json' }).end('<html>');
        return;
      default:
        return sendAnswer(response, behavior);
    }
  }

  function sendAnswer(response: ServerResponse, { status, type, body }: SesAnswer): void {
    const headers = { 'content-type': 'application/json', ...(type === undefined ? {} : { 'x-amzn-errortype': type }) };
    response.writeHead(status, headers).end(JSON.stringify(body));
  }

  const fake: SesFake = {
    get endpoint() {
      return endpoint;
    },
    receivedMessages,
    identities,
    requests,
    get connectionCount() {
      return connectionCount;
    },
    send: () => 'accept',
    account: 'accept',
    suppressionReasons,
    suppressionList: 'accept',
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  endpoint = `http://127.0.0.1:${await listenOnFreePort(server)}`;
  return fake;
}

export const CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'AKIDFAKE',
  AWS_SECRET_ACCESS_KEY: 'fake-secret',
  AWS_EC2_METADATA_DISABLED: 'true',
};

/** Sets the credentials in the environment during each test of the file. */
export function stubCredentials(): void {
  beforeEach(() => {
    for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value);
    return () => vi.unstubAllEnvs();
  });
}
