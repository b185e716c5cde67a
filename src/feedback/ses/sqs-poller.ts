/**
 * Amazon SES's notices from an SQS queue (POSTRIDER_SES_QUEUE), for a service that exposes nothing. A message is deleted only
 * once the store has committed; until then the queue keeps it and shows it again, so duplicates and any order are normal.
 */
import type { Message, SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../../clock.ts';
import type { FeedbackReport } from '../../store/feedback.ts';
import type { Taken } from '../intake.ts';
import { reportOfEvent } from './report.ts';

/** SQS's own bounds. */
const WAIT_S = 20;
const AT_ONCE = 10;
/** Receives under way together: a busy queue is not held up by the way to it. */
const RECEIVERS = 4;
/** When a notice that is too early is shown again. */
const AGAIN_S = 30;
/** After so long in the queue what cannot be applied is kept for the operator instead. */
const LAST_MS = 3_600_000;
const BACKOFF_MS = { first: 1_000, most: 60_000 } as const;

export interface SqsPollerParts {
  readonly queueUrl: string;
  /** Where the URL does not name it. */
  readonly region: string;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Believed topics of messages that SNS puts into the queue; any where it is empty. */
  readonly topics: readonly string[];
  readonly take: (report: FeedbackReport) => Promise<Taken>;
  readonly refused: (reason: 'sqs-topic' | 'not-settled' | 'store') => void;
  readonly failed: (what: string, error: unknown) => void;
}

export interface SqsPoller {
  start(): Promise<void>;
  /** Ends what waits at once, and waits for what is being recorded. */
  close(): Promise<void>;
}

type Fate = 'delete' | 'later' | 'leave';

export function createSqsPoller(parts: SqsPollerParts): SqsPoller {
  const { queueUrl: QueueUrl, clock, topics, take, refused, failed } = parts;
  const stop = new AbortController();
  const running: Promise<void>[] = [];
  let client: SQSClient | null = null;

  async function receiver(sqs: SQSClient): Promise<void> {
    const { ReceiveMessageCommand } = await import('@aws-sdk/client-sqs');
    let faults = 0;
    while (!stop.signal.aborted) {
      try {
        const asked = new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: AT_ONCE,
          WaitTimeSeconds: WAIT_S,
          MessageSystemAttributeNames: ['SentTimestamp'],
        });
        const { Messages: messages = [] } = await sqs.send(asked, { abortSignal: stop.signal });
        await settle(sqs, messages);
        faults = 0;
      } catch (error) {
        if (stop.signal.aborted) return;
        failed('sqs', error);
        await pause(Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** faults) * (0.5 + parts.random() / 2));
        faults = Math.min(faults + 1, 10);
      }
    }
  }

  async function settle(sqs: SQSClient, messages: readonly Message[]): Promise<void> {
    const fates = await Promise.all(messages.map((message) => fateOf(message)));
    const { DeleteMessageBatchCommand, ChangeMessageVisibilityBatchCommand } = await import('@aws-sdk/client-sqs');
    const entries = (fate: Fate) =>
      messages.flatMap(({ ReceiptHandle }, n) =>
        fates[n] === fate && ReceiptHandle !== undefined ? [{ Id: String(n), ReceiptHandle }] : [],
      );
    const done = entries('delete');
    // What is not deleted now is shown again, and is then known.
    if (done.length > 0) await sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: done }));
    const later = entries('later').map((entry) => ({ ...entry, VisibilityTimeout: AGAIN_S }));
    if (later.length > 0) await sqs.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: later }));
  }

  async function fateOf({ Body = '', Attributes }: Message): Promise<Fate> {
    const now = clock.now();
    const sentAt = Number(Attributes?.SentTimestamp ?? now);
    const { text, topic } = contentOf(Body);
    if (topic !== null && topics.length > 0 && !topics.includes(topic)) {
      refused('sqs-topic');
      return 'delete';
    }
    const report = reportOfEvent(text, { source: 'sqs', now, last: now - sentAt > LAST_MS });
    if (report === null) return 'delete';
    try {
      if ((await take(report)) === 'recorded') return 'delete';
      refused('not-settled');
      return 'later';
    } catch (error) {
      failed('feedback', error);
      refused('store');
      return 'leave';
    }
  }

  function pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(ms, resolve);
    const end = () => {
      cancel();
      resolve();
    };
    stop.signal.addEventListener('abort', end, { once: true });
    return promise.finally(() => stop.signal.removeEventListener('abort', end));
  }

  return {
    async start() {
      const { SQSClient: Client } = await import('@aws-sdk/client-sqs');
      const url = new URL(QueueUrl);
      const sqs = new Client({ region: regionOf(url) ?? parts.region, endpoint: url.origin, maxAttempts: 1 });
      client = sqs;
      for (let n = 0; n < RECEIVERS; n += 1) running.push(receiver(sqs));
    },
    async close() {
      stop.abort();
      await Promise.allSettled(running);
      client?.destroy();
    },
  };
}

/** `sqs.eu-west-1.amazonaws.com` has its region in its name; a local one has not. */
function regionOf({ hostname }: URL): string | null {
  const [service, region, ...rest] = hostname.split('.');
  return service === 'sqs' && rest.join('.').startsWith('amazonaws.com') ? (region ?? null) : null;
}

/** SNS puts an envelope around the event unless raw delivery is on; the queue's own policy says who may fill it. */
function contentOf(body: string): { readonly text: string; readonly topic: string | null } {
  try {
    const envelope: unknown = JSON.parse(body);
    if (typeof envelope === 'object' && envelope !== null && 'Message' in envelope && 'TopicArn' in envelope) {
      const { Message: text, TopicArn: topic } = envelope;
      if (typeof text === 'string' && typeof topic === 'string') return { text, topic };
    }
  } catch {
    // No JSON: the report says so.
  }
  return { text: body, topic: null };
}
