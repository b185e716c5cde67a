/**
 * Generates live traffic: the simulated applications send messages through the public interface with their keys, and
 * reports are sent over SMTP to the feedback listener. The applications send about one message per second, and
 * sometimes several messages at the same time. Some messages have simulator addresses, and some requests are invalid.
 */
import type { MonotonicClock } from '../src/clock.ts';
import { createSmtpTransport } from '../src/transports/smtp/transport.ts';
import type { OutgoingMessage, Transport } from '../src/transports/transport.ts';
import { APPLICATIONS, type Application } from './accounts.ts';
import { BEHAVIORS, type Behavior } from './behaviors.ts';
import { composeMessage } from './messages.ts';
import { type EventTarget, getConfirmationDelayMs, isConfirmed, sendConfirmation } from './provider-events.ts';
import type { Random } from './random.ts';
import type { Recipients } from './recipients.ts';
import { composeReport } from './reports.ts';

export interface TrafficParts {
  readonly publicUrl: string;
  /** The address of the feedback listener as `host:port`. */
  readonly feedback: string;
  /** The listener for provider events. */
  readonly events: EventTarget;
  /** Returns the raw key of an account. */
  readonly getKey: (account: string) => string | undefined;
  readonly recipients: Recipients;
  readonly random: Random;
  readonly clock: MonotonicClock;
}

export interface Traffic {
  /** Schedules the report about a message that a simulated server has accepted. */
  onDelivered(message: OutgoingMessage, behavior: Behavior): void;
  /** Stops the traffic. Resolves when no request is in progress. */
  stop(): Promise<void>;
}

/** The minimum and the maximum pause between two submissions, in ms. */
const PAUSE_RANGE_MS = [400, 2_600] as const;
/** The minimum and the maximum delay of a report, in ms, which are shorter than in the history. */
const REPORT_DELAY_RANGE_MS = [4_000, 40_000] as const;
const SIMULATOR_LOCAL_PARTS = ['success', 'bounce', 'defer', 'complaint', 'suppressed'] as const;
/**
 * The number of messages that are sent to slow servers at the start, so that some messages are always in the state
 * `sending`.
 */
const INITIAL_SLOW_MESSAGE_COUNT = 4;

const LIVE_BEHAVIOR_WEIGHTS: Readonly<Partial<Record<Behavior, number>>> = {
  accepting: 82,
  slow: 7,
  greylisted: 4,
  'server-busy': 2,
  'mailbox-full': 1,
  'mailbox-unknown': 0.6,
  'mailbox-full-later': 0.5,
  'bounces-later': 0.3,
  'out-of-office': 1,
  policy: 0.3,
  'not-understood-report': 0.1,
};

export function startTraffic(parts: TrafficParts): Traffic {
  const { recipients, random, clock } = parts;
  const weights = Object.fromEntries(APPLICATIONS.map(({ account, liveWeight }) => [account, liveWeight]));
  const reportTransport = createReportTransport(parts.feedback, clock);
  const requests = new Set<Promise<unknown>>();
  const timers = new Set<() => void>();
  let isStopped = false;

  const schedule = (ms: number, run: () => void) => {
    const cancelTimer = clock.after(ms, () => {
      timers.delete(cancelTimer);
      run();
    });
    timers.add(cancelTimer);
  };
  const trackRequest = (request: Promise<unknown>) => {
    // Failures are ignored, because a request may fail while the service is busy or stopping.
    const trackedRequest = request.catch(() => undefined).finally(() => requests.delete(trackedRequest));
    requests.add(trackedRequest);
  };

  const submitMessage = (key: string, body: object): Promise<unknown> =>
    fetch(`${parts.publicUrl}/api/v1/send-mail`, {
      method: 'POST',
      headers: { Authorization: key, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }).then((response) => response.text());

  function sendMessage(application: Application, behavior: Behavior): void {
    const key = parts.getKey(application.account);
    if (key === undefined) return;
    const to = recipients.pickRecipient(behavior);
    const message = composeMessage(random.pickWeighted(application.messageKindWeights), to, random);
    trackRequest(submitMessage(key, { to: to.address, from: application.from, ...message }));
  }

  function submitNext(): void {
    const application = APPLICATIONS.find(({ account }) => account === random.pickWeighted(weights));
    const randomFraction = random.nextFraction();
    const key = application === undefined ? undefined : parts.getKey(application.account);
    if (application !== undefined && key !== undefined && randomFraction < 0.06) {
      const to = `${random.pick(SIMULATOR_LOCAL_PARTS)}+${random.pickInteger(1, 99)}@simulator.postrider.test`;
      trackRequest(
        submitMessage(key, {
          to,
          from: application.from,
          subject: 'Delivery test',
          message: 'A message to the simulator.',
        }),
      );
    } else if (application !== undefined && randomFraction < 0.08) {
      trackRequest(
        submitMessage(key ?? '', { to: 'not an address', from: application.from, subject: 'Hello', message: 'Hello' }),
      );
    } else if (application !== undefined) {
      for (let n = random.nextFraction() < 0.15 ? random.pickInteger(2, 5) : 1; n > 0; n -= 1) {
        sendMessage(application, random.pickWeighted(LIVE_BEHAVIOR_WEIGHTS));
      }
    }
    if (!isStopped) schedule(random.pickInteger(...PAUSE_RANGE_MS), submitNext);
  }

  for (let n = 0; n < INITIAL_SLOW_MESSAGE_COUNT; n += 1)
    sendMessage(random.pick(APPLICATIONS.filter(({ liveWeight }) => liveWeight > 0)), 'slow');
  schedule(0, submitNext);
  return {
    onDelivered(message, behavior) {
      const { report } = BEHAVIORS[behavior];
      if (isStopped) return;
      if (isConfirmed(message.id))
        schedule(getConfirmationDelayMs(message.id), () => {
          const confirmedMessage = { id: message.id, to: message.envelope.to };
          trackRequest(sendConfirmation(parts.events, confirmedMessage, clock.now()));
        });
      if (report === null) return;
      schedule(random.pickInteger(...REPORT_DELAY_RANGE_MS), () => {
        const { id, envelope } = message;
        const [from, subject] = ['service@lumen.example', 'Your message'];
        const rawReport = composeReport(report.kind, { id, to: envelope.to, from, subject, returnPath: envelope.from });
        const reportMessage = { id, envelope: { from: '', to: envelope.from, smtputf8: false }, data: rawReport };
        trackRequest(reportTransport.attempt(reportMessage, null));
      });
    },
    async stop() {
      isStopped = true;
      for (const cancelTimer of timers) cancelTimer();
      await Promise.all(requests);
      await reportTransport.close(500);
    },
  };
}

/** Creates the transport that sends the reports. */
function createReportTransport(address: string, clock: MonotonicClock): Transport {
  const colonIndex = address.lastIndexOf(':');
  return createSmtpTransport(
    {
      kind: 'smtp',
      host: address.slice(0, colonIndex),
      port: Number(address.slice(colonIndex + 1)),
      tls: 'never',
      auth: null,
      connections: 1,
      verifyCertificate: false,
      name: 'mx.bigmail.example',
      provider: null,
      relayParameters: {},
    },
    { clock },
  );
}
