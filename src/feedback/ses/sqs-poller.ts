/**
 * Amazon SES's notices from an SQS queue (POSTRIDER_SES_QUEUE), for a service that exposes nothing. A message is deleted only
 * once the store has committed; until then the queue keeps it and shows it again, so duplicates and any order are normal.
 * What is no notice is kept for the operator instead. A queue that fails or is silent is asked again, with pauses that grow.
 */
import type { Message, SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../../clock.ts';
import type { PublishOf } from '../../model/events.ts';
import type { FeedbackReport } from '../../model/feedback.ts';
import type { RecordResult } from '../intake.ts';
import { toOneLine } from '../read/evidence.ts';
import { createUnknownReport, recordSesEvent } from './report.ts';

/** SQS's own bounds. */
const WAIT_S = 20;
const AT_ONCE = 10;
/** Receives under way together: a busy queue is not held up by the way to it. */
const RECEIVERS = 4;
/** When a notice that is too early is shown again. */
const AGAIN_S = 30;
const LONGEST_TOPIC = 300;
/** After so long in the queue what cannot be applied is kept for the operator instead. */
const LAST_MS = 3_600_000;
const BACKOFF_MS = { first: 1_000, most: 60_000 } as const;
/** An answer that takes longer than its wait and this is given up: a connection may be half dead. */
const ANSWER_MS = 15_000;
const CONNECT_MS = 10_000;

type SqsRefusal = 'sqs-topic' | 'not-settled' | 'store';

export interface SqsPollerParts {
  readonly queueUrl: string;
  /** Where the URL does not name it. */
  readonly region: string;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Believed topics of messages that SNS puts into the queue; any where it is empty. */
  readonly topics: readonly string[];
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused'>;
  readonly failed: (what: string, error: unknown) => void;
}

export interface SqsPoller {
  start(): Promise<void>;
  /** Ends what waits at once, and waits for what is being recorded. */
  close(): Promise<void>;
}

interface StoreFault {
  readonly kind: 'leave';
  readonly error: unknown;
}

type Fate = { readonly kind: 'delete' } | { readonly kind: 'later' } | StoreFault;

export function createSqsPoller(parts: SqsPollerParts): SqsPoller {
  const { queueUrl: QueueUrl, clock, topics, recordReport: take, publish, failed } = parts;
  const refused = (reason: SqsRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
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
        const { Messages: messages = [] } = await inTime(WAIT_S * 1_000 + ANSWER_MS, stop.signal, (abortSignal) =>
          sqs.send(asked, { abortSignal }),
        );
        const fault = await settle(sqs, messages);
        if (fault === null) {
          faults = 0;
          continue;
        }
        failed('feedback', fault.error);
      } catch (error) {
        if (stop.signal.aborted) return;
        failed('sqs', error);
      }
      await pause(Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** faults) * (0.5 + parts.random() / 2));
      faults = Math.min(faults + 1, 10);
    }
  }

  /** Resolves to what the store said where it failed: nothing more is asked for then for a while, or a whole queue would pass by. */
  async function settle(sqs: SQSClient, messages: readonly Message[]): Promise<StoreFault | null> {
    const fates = await Promise.all(messages.map((message) => fateOf(message)));
    const { DeleteMessageBatchCommand, ChangeMessageVisibilityBatchCommand } = await import('@aws-sdk/client-sqs');
    const entries = (fate: Fate['kind']) =>
      messages.flatMap(({ ReceiptHandle }, n) =>
        fates[n]?.kind === fate && ReceiptHandle !== undefined ? [{ Id: String(n), ReceiptHandle }] : [],
      );
    const done = entries('delete');
    // What is not deleted now is shown again, and is then known.
    if (done.length > 0) {
      const deletion = new DeleteMessageBatchCommand({ QueueUrl, Entries: done });
      await inTime(ANSWER_MS, null, (abortSignal) => sqs.send(deletion, { abortSignal }));
    }
    const later = entries('later').map((entry) => ({ ...entry, VisibilityTimeout: AGAIN_S }));
    if (later.length > 0) {
      const change = new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: later });
      await inTime(ANSWER_MS, null, (abortSignal) => sqs.send(change, { abortSignal }));
    }
    return fates.find((fate) => fate.kind === 'leave') ?? null;
  }

  /** Runs one request, and aborts it when its time is over or `early` is. */
  async function inTime<T>(
    ms: number,
    early: AbortSignal | null,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = new AbortController();
    const cancel = clock.after(ms, () => late.abort());
    try {
      return await run(early === null ? late.signal : AbortSignal.any([early, late.signal]));
    } catch (error) {
      throw late.signal.aborted ? new Error(`the queue did not answer within ${ms / 1_000} s`) : error;
    } finally {
      cancel();
    }
  }

  async function fateOf({ Body = '', Attributes }: Message): Promise<Fate> {
    const now = clock.now();
    const sentAt = Number(Attributes?.SentTimestamp ?? now);
    const { text, topic } = contentOf(Body);
    try {
      if (topic !== null && topics.length > 0 && !topics.includes(topic)) {
        refused('sqs-topic');
        // Kept, not thrown away: a mistyped topic in the settings would otherwise cost every notice.
        const why = `it is of the topic ${toOneLine(topic, LONGEST_TOPIC) ?? ''}, which is not in POSTRIDER_SES_TOPICS`;
        await take(createUnknownReport(Body, why, { source: 'sqs', now }));
        return { kind: 'delete' };
      }
      const taken = await recordSesEvent(text, { source: 'sqs', now, isFinal: now - sentAt > LAST_MS }, take);
      if (taken === 'recorded') return { kind: 'delete' };
      refused('not-settled');
      return { kind: 'later' };
    } catch (error) {
      refused('store');
      return { kind: 'leave', error };
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
    if (stop.signal.aborted) end();
    return promise.finally(() => stop.signal.removeEventListener('abort', end));
  }

  return {
    async start() {
      const [{ SQSClient: Client }, { NodeHttpHandler }] = await Promise.all([
        import('@aws-sdk/client-sqs'),
        import('@smithy/node-http-handler'),
      ]);
      const url = new URL(QueueUrl);
      const sqs = new Client({
        region: queueRegion(url.hostname) ?? parts.region,
        endpoint: url.origin,
        maxAttempts: 1,
        requestHandler: new NodeHttpHandler({ connectionTimeout: CONNECT_MS }),
      });
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

/**
 * The region in a queue's host: `sqs.eu-west-1.amazonaws.com`, also behind an endpoint of a private network, and the old
 * `eu-west-1.queue.amazonaws.com`. Null where it has none, as a local one may.
 */
export function queueRegion(host: string): string | null {
  const labels = host.split('.');
  const service = labels.findIndex((label) => label === 'sqs' || label === 'sqs-fips');
  const named = service >= 0 ? labels[service + 1] : labels[1] === 'queue' ? labels[0] : undefined;
  return named?.includes('-') === true ? named : null;
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
