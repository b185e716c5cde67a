import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { classifySesError, SES_RULES, toSesError } from '../../../src/transports/ses/errors.ts';
import { createRateLimiter, createSesTransport } from '../../../src/transports/ses/transport.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { listSamples } from '../../rig/rule-samples.ts';
import { createAccountAnswer, createErrorAnswer, startSesFake, stubCredentials } from '../../rig/ses-fake.ts';
import { createOutgoingMessage } from '../../rig/smtp-message.ts';

stubCredentials();

async function startFixture(options: { readonly configurationSet?: string } = {}) {
  const fake = await startSesFake();
  onTestFinished(() => fake.close());
  const errors: string[] = [];
  const transport = createSesTransport(
    { region: 'eu-west-1', endpoint: fake.endpoint, configurationSet: options.configurationSet ?? null },
    { clock: systemClock, onError: (operation, error) => errors.push(`${operation}: ${error}`) },
  );
  onTestFinished(() => transport.close(100));
  return { fake, transport, errors };
}

describe('a message', () => {
  test('arrives unchanged with the configuration set of the transport, and the outcome has the provider’s id', async () => {
    const { fake, transport } = await startFixture({ configurationSet: 'transactional' });
    const message = createOutgoingMessage('From: a@sender.example\r\nSubject: ünïcode\r\n\r\n.dots\r\n..\r\n');
    const attempt = await transport.attempt(message, null);
    expect(fake.receivedMessages).toMatchObject([{ to: [message.envelope.to], configurationSet: 'transactional' }]);
    expect(fake.receivedMessages[0]?.data.equals(message.data)).toBe(true);
    expect(attempt.outcome).toMatchObject({ kind: 'delivered', reference: fake.receivedMessages[0]?.id });
    expect(attempt.remote).toBe(new URL(fake.endpoint).host);
    expect(attempt.transcript).toEqual([
      `C: SendEmail to ${message.envelope.to}, ${message.data.length} octets`,
      `S: 200 ${fake.receivedMessages[0]?.id}`,
    ]);
  });

  test('the configuration set of the account takes precedence over that of the transport', async () => {
    const { fake, transport } = await startFixture({ configurationSet: 'transactional' });
    await transport.attempt({ ...createOutgoingMessage(), configurationSet: 'account-set' }, null);
    const otherFixture = await startFixture();
    await otherFixture.transport.attempt({ ...createOutgoingMessage(), configurationSet: 'account-set' }, null);
    const configurationSets = [...fake.receivedMessages, ...otherFixture.fake.receivedMessages].map(
      (message) => message.configurationSet,
    );
    expect(configurationSets).toEqual(['account-set', 'account-set']);
  });

  test.each([
    createErrorAnswer(404, 'NotFoundException', 'Configuration set <account-set> does not exist.'),
    createErrorAnswer(400, 'BadRequestException', 'Configuration set <account-set> does not exist.'),
    createErrorAnswer(400, 'ConfigurationSetDoesNotExist', 'Configuration set <account-set> does not exist.'),
    createErrorAnswer(400, 'SendingPausedException', 'Sending is paused for the configuration set'),
  ])('an unknown configuration set is a configuration failure of the account that names it: %j', async (answer) => {
    const { fake, transport } = await startFixture();
    fake.send = () => answer;
    const accountSetAttempt = await transport.attempt(
      { ...createOutgoingMessage(), configurationSet: 'account-set' },
      null,
    );
    // With scope `sender`, the circuit breaker stays closed for the other accounts.
    expect(accountSetAttempt.outcome).toMatchObject({ kind: 'deferred', reason: 'configuration', scope: 'sender' });
    const transportSetAttempt = await transport.attempt(createOutgoingMessage(), null);
    expect(transportSetAttempt.outcome).toMatchObject({
      kind: 'deferred',
      reason: 'configuration',
      scope: 'route',
    });
  });
});

describe('the response of the provider', () => {
  const createDeferral = (reason: string, scope: string) => ({ kind: 'deferred', reason, scope });
  const createBounce = (reason: string) => ({ kind: 'bounced', reason, suppress: false });
  const unverifiedText =
    'Email address is not verified. The following identities failed the check in region EU-WEST-1: a@b.example';
  test.each([
    [createErrorAnswer(400, 'MessageRejected', 'Message contains a virus'), createBounce('content')],
    [createErrorAnswer(400, 'BadRequestException', "Missing final '@domain'"), createBounce('policy')],
    [createErrorAnswer(400, 'MessageRejected', unverifiedText), createDeferral('configuration', 'sender')],
    [createErrorAnswer(400, 'MailFromDomainNotVerifiedException', 'no'), createDeferral('configuration', 'sender')],
    [createErrorAnswer(400, 'AccountSendingPausedException', 'no'), createDeferral('configuration', 'route')],
    [createErrorAnswer(400, 'LimitExceededException', 'Daily message quota used'), createDeferral('quota', 'route')],
    [createErrorAnswer(400, 'SendingPausedException', 'paused'), createDeferral('configuration', 'route')],
    [createErrorAnswer(403, 'AccessDeniedException', 'not authorized'), createDeferral('configuration', 'route')],
    [createErrorAnswer(503, 'ServiceUnavailable', 'later'), createDeferral('unavailable', 'route')],
    [createErrorAnswer(418, 'NewException', 'unknown'), createDeferral('unknown', 'route')],
    [createErrorAnswer(400, 'BadRequestException', 'An unknown error'), createDeferral('unknown', 'message')],
    ['disconnect', { kind: 'unanswered' }],
    ['truncate', { kind: 'unanswered' }],
    ['garbage', { kind: 'unanswered' }],
    [{ status: 200, body: {} }, { kind: 'unanswered' }],
    [{ status: 200, body: { MessageId: 'a b\u0000' } }, { kind: 'unanswered' }],
  ] as const)('%j', async (behavior, outcome) => {
    const { fake, transport } = await startFixture();
    fake.send = () => behavior;
    const attempt = await transport.attempt(createOutgoingMessage(), null);
    expect(attempt.outcome).toMatchObject(outcome);
    expect(attempt.transcript).toHaveLength(2);
    expect(JSON.stringify(attempt)).not.toContain('fake-secret');
  });

  test('a response with the session token is shown without the token', async () => {
    const { fake, transport } = await startFixture();
    const responseText =
      "The request signature we calculated does not match the signature you provided. The Canonical String for this request should have been 'POST\n/v2/email/outbound-emails\n\nx-amz-security-token:session-token-of-fake\n'";
    fake.send = () => createErrorAnswer(403, 'InvalidSignatureException', responseText);
    const attempt = await transport.attempt(createOutgoingMessage(), null);
    expect(attempt.outcome).toMatchObject({ kind: 'deferred', reason: 'configuration', scope: 'route' });
    expect(attempt.outcome.reply.text).toMatch(
      /^InvalidSignatureException \(403\): The request signature .+ provided\.$/,
    );
    expect(JSON.stringify(attempt)).not.toContain('session-token-of-fake');
  });

  test('missing credentials defer the message with the reason configuration', async () => {
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, undefined);
    for (const name of ['HOME', 'AWS_SHARED_CREDENTIALS_FILE', 'AWS_CONFIG_FILE']) vi.stubEnv(name, '/nonexistent');
    const { fake, transport } = await startFixture();
    const { outcome } = await transport.attempt(createOutgoingMessage(), null);
    expect(outcome).toMatchObject({ kind: 'deferred', reason: 'configuration', scope: 'route' });
    expect(outcome.reply.text).toContain('credentials');
    expect(fake.receivedMessages).toEqual([]);
  });

  test('each sample matches its rule', () => {
    for (const { meaning, description } of SES_RULES) {
      for (const sample of listSamples('ses-api', description)) {
        const [name = '', status = '-', ...words] = sample.split(' ');
        const error = {
          name,
          status: status === '-' ? null : Number(status),
          message: words.join(' '),
          wasSent: false,
        };
        expect({ description, meaning: classifySesError(error) }).toEqual({ description, meaning });
      }
    }
    const connectionReset = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    expect(classifySesError(toSesError(connectionReset))).toMatchObject({
      kind: 'deferred',
      reason: 'connection',
      scope: 'route',
    });
    expect(classifySesError(toSesError(Object.assign(connectionReset, { wasSent: true })))).toEqual({
      kind: 'unanswered',
    });
    expect(classifySesError(toSesError(null)).kind).toBe('deferred');
  });
});

describe('the send rate', () => {
  test('a throttled message is sent again at a lower rate, and arrives once', async () => {
    const { fake, transport } = await startFixture();
    fake.account = createAccountAnswer({}, { MaxSendRate: 100 });
    fake.send = ({ count }) =>
      count <= 2 ? createErrorAnswer(429, 'TooManyRequestsException', 'Maximum sending rate exceeded.') : 'accept';
    const attempt = await transport.attempt(createOutgoingMessage(), null);
    expect(attempt.outcome.kind).toBe('delivered');
    expect(attempt.transcript.filter((line) => line.startsWith('S: TooManyRequests'))).toHaveLength(2);
    expect(fake.receivedMessages).toHaveLength(1);
  });

  test('the rate of the account sets the concurrency, and a rate that cannot be read is reported once and does not prevent delivery', async () => {
    const { fake, transport } = await startFixture();
    fake.account = createAccountAnswer({}, { MaxSendRate: 60 });
    expect(transport.concurrency).toBe(4);
    await transport.attempt(createOutgoingMessage(), null);
    await expect.poll(() => transport.concurrency).toBe(60);
    const unreadableFixture = await startFixture();
    unreadableFixture.fake.account = createErrorAnswer(403, 'AccessDeniedException', 'no');
    expect((await unreadableFixture.transport.attempt(createOutgoingMessage(), null)).outcome.kind).toBe('delivered');
    expect(unreadableFixture.transport.concurrency).toBe(4);
    await expect.poll(() => unreadableFixture.errors).toHaveLength(1);
    expect(unreadableFixture.errors[0]).toMatch(
      /stays at 14 messages per second; allow ses:GetAccount\. AccessDeniedException: no$/,
    );
  });

  test('the number of messages per second never exceeds the rate, which falls by half after two throttled requests and then rises again', async () => {
    const clock = createVirtualClock(0);
    const rateLimiter = createRateLimiter(clock);
    rateLimiter.setRate(10);
    let sentCount = 0;
    const sendAll = async () => {
      while (await rateLimiter.acquire()) sentCount += 1;
    };
    void sendAll();
    await clock.advance(1_000);
    // One message of the burst, ten of one second, and a tolerance of one.
    expect(sentCount).toBeLessThanOrEqual(1 + 10 + 1);
    const sentBefore = sentCount;
    await clock.advance(10_000);
    expect(sentCount - sentBefore).toBeGreaterThanOrEqual(98);
    expect(sentCount - sentBefore).toBeLessThanOrEqual(101);
    rateLimiter.slowDown();
    rateLimiter.slowDown();
    expect(rateLimiter.currentRate).toBeCloseTo(4.9, 5);
    const countBefore = sentCount;
    await clock.advance(1_000);
    expect(sentCount - countBefore).toBeLessThanOrEqual(6);
    await clock.advance(20_000);
    expect(rateLimiter.currentRate).toBe(10);
    rateLimiter.close();
    expect(await rateLimiter.acquire()).toBe(false);
  });
});
