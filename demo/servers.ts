/**
 * Simulates the mail servers and their replies. The transcript has the format of the SMTP transport, and `classify`
 * determines the outcome from the reply, as in a real service.
 */
import { classify } from '../src/classify/classify.ts';
import type { Attempt, Outcome, Reply } from '../src/model/outcome.ts';
import { Transcript, toReply } from '../src/transports/smtp/protocol.ts';
import { type AttemptFailure, BEHAVIORS, type Behavior, findAttemptFailure } from './behaviors.ts';
import type { Random } from './random.ts';

/** The EHLO name of the demo. */
const EHLO_NAME = 'mail.lumen.example';

interface Server {
  readonly address: string;
  readonly greeting: string;
  readonly tls: string | null;
  readonly hasPipelining: boolean;
  /** The reply to an accepted message, in which `{n}` is replaced by a queue id. */
  readonly acceptReply: string;
}

/** Servers by recipient domain, with names and networks reserved for documentation (RFC 2606, RFC 5737). */
const SERVERS: Readonly<Record<string, Server>> = {
  'bigmail.example': {
    address: '192.0.2.25',
    greeting: 'ESMTP {n}.24 - bigsmtp',
    tls: 'TLSv1.3 TLS_AES_256_GCM_SHA384',
    hasPipelining: true,
    acceptReply: '250 2.0.0 OK {n} - bigsmtp',
  },
  'outpost.example': {
    address: '192.0.2.60',
    greeting: 'Outpost ESMTP MAIL Service ready',
    tls: 'TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384',
    hasPipelining: true,
    acceptReply: '250 2.6.0 <{n}@outpost.example> Queued mail for delivery',
  },
  'webpost.example.net': {
    address: '203.0.113.12',
    greeting: 'ESMTP Postfix',
    tls: 'TLSv1.3 TLS_AES_256_GCM_SHA384',
    hasPipelining: true,
    acceptReply: '250 2.0.0 Ok: queued as {n}',
  },
  'uni.example.org': {
    address: '203.0.113.80',
    greeting: 'ESMTP Exim 4.98',
    tls: 'TLSv1.3 TLS_AES_128_GCM_SHA256',
    hasPipelining: true,
    acceptReply: '250 OK id={n}',
  },
  'studio.example.com': {
    address: '198.51.100.44',
    greeting: 'ESMTP ready',
    tls: null,
    hasPipelining: false,
    acceptReply: '250 2.0.0 Message accepted for delivery',
  },
};

export const RECIPIENT_DOMAINS: readonly string[] = Object.keys(SERVERS);

export interface SimulatedAttempt {
  readonly behavior: Behavior;
  /** The number of the attempt; 1 for the first. */
  readonly attemptNumber: number;
  readonly envelopeFrom: string;
  readonly to: string;
  readonly sizeBytes: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

/**
 * Makes one attempt at the simulated server of `to`. The function returns immediately; the caller waits for `tookMs`.
 */
export function attemptDelivery(attempt: SimulatedAttempt, random: Random): Attempt {
  const { behavior, attemptNumber, to, startedAt } = attempt;
  const domain = to.slice(to.lastIndexOf('@') + 1);
  const server = SERVERS[domain] ?? FALLBACK_SERVER;
  const script = BEHAVIORS[behavior];
  const host = `mx.${domain}:25`;
  const { outcome, lines, getOffsetsMs } = simulateSession(
    attempt,
    server,
    `mx.${domain}`,
    findAttemptFailure(script, attemptNumber),
    createQueueId(random),
  );
  const isConnected = outcome.reply.stage !== 'connect';
  const tookMs = random.pickInteger(...script.tookMs);
  return {
    outcome,
    startedAt,
    tookMs,
    remote: isConnected ? host : null,
    transcript: lines,
    lineOffsetsMs: getOffsetsMs(tookMs),
  };
}

const FALLBACK_SERVER: Server = {
  address: '192.0.2.200',
  greeting: 'ESMTP',
  tls: 'TLSv1.3 TLS_AES_256_GCM_SHA384',
  hasPipelining: true,
  acceptReply: '250 2.0.0 Ok: queued as {n}',
};

function simulateSession(
  attempt: SimulatedAttempt,
  server: Server,
  name: string,
  failure: AttemptFailure | null,
  id: string,
) {
  // The number of round trips until now. The time offset of a line is proportional to the number of round trips before
  // the line.
  let roundTrips = 0;
  const transcript = new Transcript({ monotonic: () => roundTrips });
  const host = `${name}:25`;
  const fillTemplate = (text: string) => text.replace('{to}', attempt.to).replace('{host}', host).replace('{n}', id);
  const getOffsetsMs = (tookMs: number) =>
    transcript.offsetsMs.map((roundTrip) => Math.round((tookMs * roundTrip) / Math.max(1, roundTrips)));
  const createResult = (outcome: Outcome) => ({ outcome, lines: transcript.lines, getOffsetsMs });
  const addReply = (...lines: readonly string[]) => {
    roundTrips += 1;
    for (const line of lines) transcript.addServerLine(fillTemplate(line));
  };
  const exchangeEhlo = (lines: readonly string[]) => {
    transcript.addClientLine(`EHLO ${EHLO_NAME}`);
    addReply(...lines.map((line, index) => `250${index === lines.length - 1 ? ' ' : '-'}${line}`));
  };
  const classifyReply = (stage: Reply['stage'], lines: readonly string[]): Outcome => {
    const text = lines.map(fillTemplate);
    const reply = toReply(stage, { kind: 'reply', code: Number(lines[0]?.slice(0, 3)), lines: text });
    return classify(reply);
  };
  const findFailureAt = (stage: Reply['stage']) => (failure?.stage === stage ? failure : null);

  const connectFailure = findFailureAt('connect');
  if (connectFailure?.kind === 'lost')
    return createResult(toConnectionOutcome('connect', fillTemplate(connectFailure.text)));
  transcript.addRemark(`${host} [${server.address}], clear text`);
  const greetingFailure = findFailureAt('greeting');
  if (greetingFailure?.kind === 'reply') {
    addReply(...greetingFailure.lines);
    return createResult(classifyReply('greeting', greetingFailure.lines));
  }
  addReply(`220 ${name} ${server.greeting}`);
  const ehloLines = [name, ...(server.hasPipelining ? ['PIPELINING'] : []), 'SIZE 36700160', '8BITMIME'];
  exchangeEhlo([...ehloLines, ...(server.tls === null ? [] : ['STARTTLS'])]);
  if (server.tls !== null) {
    transcript.addClientLine('STARTTLS');
    addReply('220 2.0.0 Ready to start TLS');
    const tlsFailure = findFailureAt('starttls');
    if (tlsFailure?.kind === 'lost')
      return createResult(toConnectionOutcome('starttls', fillTemplate(tlsFailure.text)));
    // The TLS handshake.
    roundTrips += 1;
    transcript.addRemark(`${host} [${server.address}], ${server.tls}`);
    exchangeEhlo([...ehloLines, 'SMTPUTF8']);
  }
  return createResult(
    simulateTransaction(attempt, server, failure, { transcript, addReply, fillTemplate, classifyReply }),
  );
}

interface SessionParts {
  readonly transcript: Transcript;
  readonly addReply: (...lines: readonly string[]) => void;
  readonly fillTemplate: (text: string) => string;
  readonly classifyReply: (stage: Reply['stage'], lines: readonly string[]) => Outcome;
}

/**
 * Writes MAIL, RCPT, DATA and the message to the transcript. The client sends the commands in one group if the server
 * supports PIPELINING.
 */
function simulateTransaction(
  attempt: SimulatedAttempt,
  server: Server,
  failure: AttemptFailure | null,
  session: SessionParts,
): Outcome {
  const { transcript, addReply, fillTemplate, classifyReply } = session;
  const commands = [`MAIL FROM:<${attempt.envelopeFrom}> SIZE=${attempt.sizeBytes}`, `RCPT TO:<${attempt.to}>`, 'DATA'];
  const replies = ['250 2.1.0 Ok', '250 2.1.5 Ok', '354 End data with <CR><LF>.<CR><LF>'];
  const refusedIndex = failure?.kind === 'reply' ? ['mail', 'rcpt'].indexOf(failure.stage) : -1;
  if (server.hasPipelining) for (const command of commands) transcript.addClientLine(command);
  for (const [index, command] of commands.entries()) {
    if (!server.hasPipelining) transcript.addClientLine(command);
    if (failure?.kind === 'reply' && index === refusedIndex) {
      addReply(...failure.lines);
      // The server also refuses the remaining commands of the group.
      if (server.hasPipelining) addReply(...commands.slice(index + 1).map(() => '503 5.5.1 Bad sequence of commands'));
      return classifyReply(failure.stage, failure.lines);
    }
    addReply(replies[index] ?? '');
  }
  transcript.addClientLine(`(${attempt.sizeBytes} octets)`);
  // The outcome is unknown if the connection is lost after the message was sent and before the server replied.
  if (failure?.kind === 'lost' && failure.stage === 'content') {
    return {
      kind: 'unanswered',
      reply: { stage: 'content', code: null, enhanced: null, text: fillTemplate(failure.text) },
    };
  }
  const lines = failure?.kind === 'reply' ? failure.lines : [server.acceptReply];
  addReply(...lines);
  return classifyReply('content', lines);
}

function toConnectionOutcome(stage: 'connect' | 'starttls', text: string): Outcome {
  return {
    kind: 'deferred',
    reply: { stage, code: null, enhanced: null, text },
    reason: 'connection',
    scope: 'route',
  };
}

function createQueueId(random: Random): string {
  return random.generateBytes(5).toString('hex').toUpperCase();
}
