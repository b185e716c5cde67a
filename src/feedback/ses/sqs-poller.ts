/**
 * Receives provider events of Amazon SES from an SQS queue (POSTRIDER_SES_QUEUE), for a service without an open port. A message is
 * deleted only after the store has committed. Until then the queue delivers it again, so duplicates and any order are normal.
 * A message that is not an event is kept for the operator. After a failure or a timeout the poller retries with exponential
 * backoff and jitter.
 */
import type { Message, SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../../clock.ts';
import type { PublishOf } from '../../model/events.ts';
import type { FeedbackReport } from '../../model/feedback.ts';
import type { RecordResult } from '../intake.ts';
import { toOneLine } from '../read/evidence.ts';
import { createUnknownReport, recordSesEvent } from './report.ts';

/** The maximums of SQS. */
const WAIT_S = 20;
const MAX_BATCH = 10;
/** Number of concurrent receive requests. With several requests, network latency does not limit the throughput of a busy queue. */
const RECEIVERS = 4;
/** The queue delivers an event again after this time when the outcome of its message is not recorded yet. */
const RETRY_VISIBILITY_S = 30;
const MAX_TOPIC_LENGTH = 300;
/** From this age on, an event that cannot be applied yet is kept for the operator. */
const MAX_QUEUE_AGE_MS = 3_600_000;
const BACKOFF_MS = { initial: 1_000, max: 60_000 } as const;
/** A request is aborted after its wait time plus this time, because the connection may be dead. */
const RESPONSE_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 10_000;

type SqsRefusal = 'sqs-topic' | 'not-settled' | 'store';

export interface SqsPollerParts {
  readonly queueUrl: string;
  /** Used when the URL contains no region. */
  readonly region: string;
  readonly clock: Clock;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
  /** Accepted topics of messages that SNS puts into the queue; every topic when the list is empty. */
  readonly topics: readonly string[];
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused'>;
  readonly onError: (operation: string, error: unknown) => void;
}

export interface SqsPoller {
  start(): Promise<void>;
  /** Aborts waiting requests and waits for reports that are being recorded. */
  close(): Promise<void>;
}

interface StoreFailure {
  readonly kind: 'store-failed';
  readonly error: unknown;
}

type MessageResult = { readonly kind: 'delete' } | { readonly kind: 'retry' } | StoreFailure;

export function createSqsPoller(parts: SqsPollerParts): SqsPoller {
  const { queueUrl: QueueUrl, clock, topics, recordReport, publish, onError } = parts;
  const refused = (reason: SqsRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
  const stop = new AbortController();
  const running: Promise<void>[] = [];
  let client: SQSClient | null = null;

  async function runReceiver(sqs: SQSClient): Promise<void> {
    const { ReceiveMessageCommand } = await import('@aws-sdk/client-sqs');
    let failures = 0;
    while (!stop.signal.aborted) {
      try {
        const receive = new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: MAX_BATCH,
          WaitTimeSeconds: WAIT_S,
          MessageSystemAttributeNames: ['SentTimestamp'],
        });
        const { Messages: messages = [] } = await withTimeout(
          WAIT_S * 1_000 + RESPONSE_TIMEOUT_MS,
          stop.signal,
          (abortSignal) => sqs.send(receive, { abortSignal }),
        );
        const failure = await processBatch(sqs, messages);
        if (failure === null) {
          failures = 0;
          continue;
        }
        onError('feedback', failure.error);
      } catch (error) {
        if (stop.signal.aborted) return;
        onError('sqs', error);
      }
      await wait(Math.min(BACKOFF_MS.max, BACKOFF_MS.initial * 2 ** failures) * (0.5 + parts.random() / 2));
      failures = Math.min(failures + 1, 10);
    }
  }

  /**
   * Deletes recorded messages, and delays messages that must be received again. Resolves to the error of the store, after which
   * the receiver must back off.
   */
  async function processBatch(sqs: SQSClient, messages: readonly Message[]): Promise<StoreFailure | null> {
    const results = await Promise.all(messages.map((message) => processMessage(message)));
    const { DeleteMessageBatchCommand, ChangeMessageVisibilityBatchCommand } = await import('@aws-sdk/client-sqs');
    const entries = (result: MessageResult['kind']) =>
      messages.flatMap(({ ReceiptHandle }, n) =>
        results[n]?.kind === result && ReceiptHandle !== undefined ? [{ Id: String(n), ReceiptHandle }] : [],
      );
    const deletable = entries('delete');
    // After a failed deletion the queue delivers the message again, and the store ignores the duplicate.
    if (deletable.length > 0) {
      const deletion = new DeleteMessageBatchCommand({ QueueUrl, Entries: deletable });
      await withTimeout(RESPONSE_TIMEOUT_MS, null, (abortSignal) => sqs.send(deletion, { abortSignal }));
    }
    const delayed = entries('retry').map((entry) => ({ ...entry, VisibilityTimeout: RETRY_VISIBILITY_S }));
    if (delayed.length > 0) {
      const change = new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: delayed });
      await withTimeout(RESPONSE_TIMEOUT_MS, null, (abortSignal) => sqs.send(change, { abortSignal }));
    }
    return results.find((result) => result.kind === 'store-failed') ?? null;
  }

  /** Runs one request. Aborts it after `ms`, or when `stopSignal` aborts. */
  async function withTimeout<T>(
    ms: number,
    stopSignal: AbortSignal | null,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const timeout = new AbortController();
    const cancel = clock.after(ms, () => timeout.abort());
    try {
      return await run(stopSignal === null ? timeout.signal : AbortSignal.any([stopSignal, timeout.signal]));
    } catch (error) {
      throw timeout.signal.aborted ? new Error(`the queue did not answer within ${ms / 1_000} s`) : error;
    } finally {
      cancel();
    }
  }

  async function processMessage({ Body = '', Attributes }: Message): Promise<MessageResult> {
    const now = clock.now();
    const sentAt = Number(Attributes?.SentTimestamp ?? now);
    const { text, topic } = unwrapEnvelope(Body);
    try {
      if (topic !== null && topics.length > 0 && !topics.includes(topic)) {
        refused('sqs-topic');
        // The message is stored. Otherwise all events would be lost if the settings contain a wrong topic.
        const reason = `the topic is ${toOneLine(topic, MAX_TOPIC_LENGTH) ?? ''}, which is not in POSTRIDER_SES_TOPICS`;
        await recordReport(createUnknownReport(Body, reason, { source: 'sqs', now }));
        return { kind: 'delete' };
      }
      const recorded = await recordSesEvent(
        text,
        { source: 'sqs', now, isFinal: now - sentAt > MAX_QUEUE_AGE_MS },
        recordReport,
      );
      if (recorded === 'recorded') return { kind: 'delete' };
      refused('not-settled');
      return { kind: 'retry' };
    } catch (error) {
      refused('store');
      return { kind: 'store-failed', error };
    }
  }

  function wait(ms: number): Promise<void> {
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
        requestHandler: new NodeHttpHandler({ connectionTimeout: CONNECT_TIMEOUT_MS }),
      });
      client = sqs;
      for (let n = 0; n < RECEIVERS; n += 1) running.push(runReceiver(sqs));
    },
    async close() {
      stop.abort();
      await Promise.allSettled(running);
      client?.destroy();
    },
  };
}

/**
 * Returns the region in a queue's host name: `sqs.eu-west-1.amazonaws.com`, also below the name of a VPC endpoint, or the
 * legacy `eu-west-1.queue.amazonaws.com`. Returns null for a host name without a region, such as `localhost`.
 */
export function queueRegion(host: string): string | null {
  const labels = host.split('.');
  const service = labels.findIndex((label) => label === 'sqs' || label === 'sqs-fips');
  const region = service >= 0 ? labels[service + 1] : labels[1] === 'queue' ? labels[0] : undefined;
  return region?.includes('-') === true ? region : null;
}

/** Unwraps the envelope of SNS, which is missing with raw message delivery. The queue's policy decides who may send to it. */
function unwrapEnvelope(body: string): { readonly text: string; readonly topic: string | null } {
  try {
    const envelope: unknown = JSON.parse(body);
    if (typeof envelope === 'object' && envelope !== null && 'Message' in envelope && 'TopicArn' in envelope) {
      const { Message: text, TopicArn: topic } = envelope;
      if (typeof text === 'string' && typeof topic === 'string') return { text, topic };
    }
  } catch {
    // Not JSON. Reading the event reports this.
  }
  return { text: body, topic: null };
}
