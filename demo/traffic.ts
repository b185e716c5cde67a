/**
 * Live traffic: the simulated applications send messages through the public interface with their keys, and reports arrive over SMTP
 * at the feedback listener. About one message per second, sometimes several at once, some to simulator addresses, some invalid.
 */
import type { MonotonicClock } from '../src/clock.ts';
import { createSmtpTransport } from '../src/transports/smtp/transport.ts';
import type { OutgoingMessage, Transport } from '../src/transports/transport.ts';
import { APPLICATIONS, type Application } from './accounts.ts';
import { BEHAVIOURS, type Behaviour } from './behaviours.ts';
import { composeMessage } from './messages.ts';
import type { Random } from './random.ts';
import type { Recipients } from './recipients.ts';
import { rawReport } from './reports.ts';

export interface TrafficParts {
  readonly publicUrl: string;
  /** `host:port` of the feedback listener. */
  readonly feedback: string;
  /** The raw key of an account. */
  readonly keyOf: (account: string) => string | undefined;
  readonly people: Recipients;
  readonly chance: Random;
  readonly clock: MonotonicClock;
}

export interface Traffic {
  /** A simulated server has accepted a message; schedules its report. */
  onDelivered(message: OutgoingMessage, fate: Behaviour): void;
  /** Resolves when no request is in progress. */
  stop(): Promise<void>;
}

/** Minimum and maximum pause between two submissions, in ms. */
const PAUSE_MS = [400, 2_600] as const;
/** Minimum and maximum delay of a report, in ms; shorter than in the history. */
const REPORT_MS = [4_000, 40_000] as const;
const SIMULATED = ['success', 'bounce', 'defer', 'complaint', 'suppressed'] as const;
/** Messages to slow servers at the start, so that some messages are always in state `sending`. */
const INITIAL_SLOW_MESSAGES = 4;

const LIVE_FATES: Readonly<Partial<Record<Behaviour, number>>> = {
  fine: 82,
  slow: 7,
  greylisted: 4,
  busy: 2,
  full: 1,
  gone: 0.6,
  'full-later': 0.5,
  'bounces-later': 0.3,
  away: 1,
  policy: 0.3,
  'odd-report': 0.1,
};

export function startTraffic(parts: TrafficParts): Traffic {
  const { people, chance, clock } = parts;
  const weights = Object.fromEntries(APPLICATIONS.map(({ account, liveWeight }) => [account, liveWeight]));
  const reporting = reportingHost(parts.feedback, clock);
  const underWay = new Set<Promise<unknown>>();
  const waiting = new Set<() => void>();
  let stopped = false;

  const later = (ms: number, run: () => void) => {
    const cancel = clock.after(ms, () => {
      waiting.delete(cancel);
      run();
    });
    waiting.add(cancel);
  };
  const track = (work: Promise<unknown>) => {
    // A request that fails while the service is busy or stopping is ignored.
    const settled = work.catch(() => undefined).finally(() => underWay.delete(settled));
    underWay.add(settled);
  };

  const submit = (key: string, body: object): Promise<unknown> =>
    fetch(`${parts.publicUrl}/api/v1/send-mail`, {
      method: 'POST',
      headers: { Authorization: key, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }).then((response) => response.text());

  function send(application: Application, fate: Behaviour): void {
    const key = parts.keyOf(application.account);
    if (key === undefined) return;
    const to = people.pick(fate);
    const message = composeMessage(chance.weighted(application.messageKinds), to, chance);
    track(submit(key, { to: to.address, from: application.from, ...message }));
  }

  function submitNext(): void {
    const application = APPLICATIONS.find(({ account }) => account === chance.weighted(weights));
    const selector = chance.next();
    const key = application === undefined ? undefined : parts.keyOf(application.account);
    if (application !== undefined && key !== undefined && selector < 0.06) {
      const to = `${chance.pick(SIMULATED)}+${chance.integer(1, 99)}@simulator.postrider.test`;
      track(
        submit(key, { to, from: application.from, subject: 'Delivery test', message: 'A message to the simulator.' }),
      );
    } else if (application !== undefined && selector < 0.08) {
      track(submit(key ?? '', { to: 'not an address', from: application.from, subject: 'Hello', message: 'Hello' }));
    } else if (application !== undefined) {
      for (let n = chance.next() < 0.15 ? chance.integer(2, 5) : 1; n > 0; n -= 1) {
        send(application, chance.weighted(LIVE_FATES));
      }
    }
    if (!stopped) later(chance.integer(...PAUSE_MS), submitNext);
  }

  for (let n = 0; n < INITIAL_SLOW_MESSAGES; n += 1)
    send(chance.pick(APPLICATIONS.filter(({ liveWeight }) => liveWeight > 0)), 'slow');
  later(0, submitNext);
  return {
    onDelivered(message, fate) {
      const { report } = BEHAVIOURS[fate];
      if (report === null || stopped) return;
      later(chance.integer(...REPORT_MS), () => {
        const { id, envelope } = message;
        const [from, subject] = ['service@lumen.example', 'Your message'];
        const raw = rawReport(report.kind, { id, to: envelope.to, from, subject, returnPath: envelope.from });
        const reportMessage = { id, envelope: { from: '', to: envelope.from, smtputf8: false }, data: raw };
        track(reporting.attempt(reportMessage, null));
      });
    },
    async stop() {
      stopped = true;
      for (const cancel of waiting) cancel();
      await Promise.all(underWay);
      await reporting.close(500);
    },
  };
}

/** The mail server that sends the reports. */
function reportingHost(at: string, clock: MonotonicClock): Transport {
  const colon = at.lastIndexOf(':');
  return createSmtpTransport(
    {
      kind: 'smtp',
      host: at.slice(0, colon),
      port: Number(at.slice(colon + 1)),
      tls: 'never',
      auth: null,
      connections: 1,
      verifyCertificate: false,
      name: 'mx.bigmail.example',
    },
    { clock },
  );
}
