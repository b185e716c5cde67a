/**
 * Receives provider events of Amazon SES from an SQS queue (POSTRIDER_SES_QUEUE), for a service without an open port. A
 * message is deleted only after the store has committed. Until then the queue can deliver it again, so messages can
 * arrive more than once and in any order. A message that is not an event is stored for the operator. After a failure or
 * a timeout the poller retries with exponential backoff and jitter.
 */
import type { Message, SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../../clock.ts';
import type { PublishOf } from '../../model/events.ts';
import type { FeedbackReport } from '../../model/feedback.ts';
import type { RecordResult } from '../intake.ts';
import { toOneLine } from '../read/evidence.ts';
import { createUnknownReport, recordSesEvent } from './report.ts';

/** Wait time of a receive request, and maximum number of messages per request. Both are the maximums of SQS. */
const WAIT_S = 20;
const MAX_BATCH_SIZE = 10;
/**
 * Number of concurrent receive requests. With several requests, the network latency limits the throughput of a busy
 * queue less than with one request.
 */
const RECEIVER_COUNT = 4;
/** The time after which the queue delivers an event again if the outcome of the email message is not recorded yet. */
const RETRY_VISIBILITY_S = 30;
const MAX_TOPIC_LENGTH = 300;
/** Age from which an event that cannot be applied yet is stored for the operator. */
const MAX_QUEUE_AGE_MS = 3_600_000;
const MIN_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/**
 * Time after which a request without a response is aborted, because the connection may be lost. For a receive request,
 * this time is added to the wait time.
 */
const RESPONSE_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 10_000;

type SqsRefusal = 'sqs-topic' | 'not-settled' | 'store';

export interface SqsPollerParts {
  readonly queueUrl: string;
  /** The region of the queue if its URL contains no region. */
  readonly region: string;
  readonly clock: Clock;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** The accepted topics of messages that SNS sends to the queue. If the list is empty, every topic is accepted. */
  readonly topics: readonly string[];
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused'>;
  readonly onError: (operation: string, error: unknown) => void;
}

export interface SqsPoller {
  /** Starts the receivers. Rejects if the queue URL is not a URL. */
  start(): Promise<void>;
  /** Aborts waiting receive requests, and resolves after all received messages have been processed. */
  close(): Promise<void>;
}

interface StoreFailure {
  readonly kind: 'store-failed';
  readonly error: unknown;
}

type MessageResult = { readonly kind: 'delete' } | { readonly kind: 'retry' } | StoreFailure;

/** Creates the poller of one queue. */
export function createSqsPoller(parts: SqsPollerParts): SqsPoller {
  const { queueUrl: QueueUrl, clock, topics, recordReport, publish, onError } = parts;
  const publishRefusal = (reason: SqsRefusal) => publish({ type: 'report.refused', at: clock.now(), reason });
  const stopController = new AbortController();
  const receivers: Promise<void>[] = [];
  let client: SQSClient | null = null;

  async function runReceiver(sqs: SQSClient): Promise<void> {
    const { ReceiveMessageCommand } = await import('@aws-sdk/client-sqs');
    let failureCount = 0;
    while (!stopController.signal.aborted) {
      try {
        const receiveCommand = new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: MAX_BATCH_SIZE,
          WaitTimeSeconds: WAIT_S,
          MessageSystemAttributeNames: ['SentTimestamp'],
        });
        const { Messages: messages = [] } = await runWithTimeout(
          WAIT_S * 1_000 + RESPONSE_TIMEOUT_MS,
          stopController.signal,
          (abortSignal) => sqs.send(receiveCommand, { abortSignal }),
        );
        const failure = await processBatch(sqs, messages);
        if (failure === null) {
          failureCount = 0;
          continue;
        }
        onError('feedback', failure.error);
      } catch (error) {
        if (stopController.signal.aborted) return;
        onError('sqs', error);
      }
      await wait(Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** failureCount) * (0.5 + parts.random() / 2));
      failureCount = Math.min(failureCount + 1, 10);
    }
  }

  /**
   * Processes a batch: deletes recorded messages, and delays messages that must be received again. Resolves to
   * null, or to a failure of the store. After a failure, the receiver must back off.
   */
  async function processBatch(sqs: SQSClient, messages: readonly Message[]): Promise<StoreFailure | null> {
    const results = await Promise.all(messages.map((message) => processMessage(message)));
    const { DeleteMessageBatchCommand, ChangeMessageVisibilityBatchCommand } = await import('@aws-sdk/client-sqs');
    const listEntries = (resultKind: MessageResult['kind']) =>
      messages.flatMap(({ ReceiptHandle }, index) =>
        results[index]?.kind === resultKind && ReceiptHandle !== undefined
          ? [{ Id: String(index), ReceiptHandle }]
          : [],
      );
    const deleteEntries = listEntries('delete');
    // After a failed deletion the queue delivers the message again, and the store ignores the duplicate.
    if (deleteEntries.length > 0) {
      const deleteCommand = new DeleteMessageBatchCommand({ QueueUrl, Entries: deleteEntries });
      await runWithTimeout(RESPONSE_TIMEOUT_MS, null, (abortSignal) => sqs.send(deleteCommand, { abortSignal }));
    }
    const retryEntries = listEntries('retry').map((entry) => ({ ...entry, VisibilityTimeout: RETRY_VISIBILITY_S }));
    if (retryEntries.length > 0) {
      const visibilityCommand = new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: retryEntries });
      await runWithTimeout(RESPONSE_TIMEOUT_MS, null, (abortSignal) => sqs.send(visibilityCommand, { abortSignal }));
    }
    return results.find((result) => result.kind === 'store-failed') ?? null;
  }

  /** Runs one request. Aborts the request after `timeoutMs`, or when `stopSignal` aborts. */
  async function runWithTimeout<T>(
    timeoutMs: number,
    stopSignal: AbortSignal | null,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const timeoutController = new AbortController();
    const cancel = clock.after(timeoutMs, () => timeoutController.abort());
    try {
      return await run(
        stopSignal === null ? timeoutController.signal : AbortSignal.any([stopSignal, timeoutController.signal]),
      );
    } catch (error) {
      throw timeoutController.signal.aborted
        ? new Error(`the queue did not respond within ${timeoutMs / 1_000} s`)
        : error;
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
        publishRefusal('sqs-topic');
        // The message is stored for the operator. Otherwise a wrong topic in the settings would cause the loss of all
        // events.
        const reason = `the topic is ${toOneLine(topic, MAX_TOPIC_LENGTH) ?? ''}, which is not in POSTRIDER_SES_TOPICS`;
        await recordReport(createUnknownReport(Body, reason, { source: 'sqs', now }));
        return { kind: 'delete' };
      }
      const recordResult = await recordSesEvent(
        text,
        { source: 'sqs', now, isFinal: now - sentAt > MAX_QUEUE_AGE_MS },
        recordReport,
      );
      if (recordResult !== 'not-yet') return { kind: 'delete' };
      publishRefusal('not-settled');
      return { kind: 'retry' };
    } catch (error) {
      publishRefusal('store');
      return { kind: 'store-failed', error };
    }
  }

  function wait(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(waitMs, resolve);
    const finishWait = () => {
      cancel();
      resolve();
    };
    stopController.signal.addEventListener('abort', finishWait, { once: true });
    if (stopController.signal.aborted) finishWait();
    return promise.finally(() => stopController.signal.removeEventListener('abort', finishWait));
  }

  return {
    async start() {
      const [{ SQSClient: Client }, { NodeHttpHandler }] = await Promise.all([
        import('@aws-sdk/client-sqs'),
        import('@smithy/node-http-handler'),
      ]);
      const url = new URL(QueueUrl);
      const sqs = new Client({
        region: findQueueRegion(url.hostname) ?? parts.region,
        endpoint: url.origin,
        maxAttempts: 1,
        requestHandler: new NodeHttpHandler({ connectionTimeout: CONNECT_TIMEOUT_MS }),
      });
      client = sqs;
      for (let receiverIndex = 0; receiverIndex < RECEIVER_COUNT; receiverIndex += 1) receivers.push(runReceiver(sqs));
    },
    async close() {
      stopController.abort();
      await Promise.allSettled(receivers);
      client?.destroy();
    },
  };
}

/**
 * Returns the region in the host name of a queue. Supported forms are `sqs.eu-west-1.amazonaws.com`, with or without
 * the name of a VPC endpoint before it, and the legacy form `eu-west-1.queue.amazonaws.com`. Returns null for a host
 * name without a region, such as `localhost`.
 */
export function findQueueRegion(host: string): string | null {
  const labels = host.split('.');
  const serviceIndex = labels.findIndex((label) => label === 'sqs' || label === 'sqs-fips');
  const region = serviceIndex >= 0 ? labels[serviceIndex + 1] : labels[1] === 'queue' ? labels[0] : undefined;
  return region?.includes('-') === true ? region : null;
}

/**
 * Removes the envelope of SNS. With raw message delivery, there is no envelope. No signature is checked, because the
 * policy of the queue determines who may send to the queue.
 */
function unwrapEnvelope(body: string): { readonly text: string; readonly topic: string | null } {
  try {
    const envelope: unknown = JSON.parse(body);
    if (typeof envelope === 'object' && envelope !== null && 'Message' in envelope && 'TopicArn' in envelope) {
      const { Message: text, TopicArn: topic } = envelope;
      if (typeof text === 'string' && typeof topic === 'string') return { text, topic };
    }
  } catch {
    // The body is not JSON. `readSesEvent` reports this fault.
  }
  return { text: body, topic: null };
}
