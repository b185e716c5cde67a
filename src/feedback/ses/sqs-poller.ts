/** For a service without an open port. A message is deleted only after the commit, so it can arrive more than once. */
import type { Message, SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../../clock.ts';
import type { PublishOf } from '../../model/events.ts';
import type { FeedbackReport } from '../../model/feedback.ts';
import type { RecordResult } from '../intake.ts';
import { toOneLine } from '../read/evidence.ts';
import { createUnknownReport, recordSesEvent } from './events.ts';

const WAIT_S = 20;
const MAX_BATCH_SIZE = 10;
/** So that the latency limits a busy queue less. */
const RECEIVER_COUNT = 4;
/** Until the outcome of the email message is recorded. */
const RETRY_VISIBILITY_S = 30;
const MAX_TOPIC_LENGTH = 300;
/** From this age, an event that cannot be applied yet is stored for the operator. */
const MAX_QUEUE_AGE_MS = 3_600_000;
const MIN_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** Then the connection may be lost. A receive request has the wait time in addition. */
const RESPONSE_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 10_000;

type SqsRefusal = 'sqs-topic' | 'not-settled' | 'store';

export interface SqsPollerParts {
  readonly queueUrl: string;
  /** If the URL of the queue contains none. */
  readonly region: string;
  readonly clock: Clock;
  readonly random: () => number;
  /** If empty, every topic is accepted. */
  readonly topics: readonly string[];
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  readonly publish: PublishOf<'report.refused'>;
  readonly onError: (operation: string, error: unknown) => void;
}

export interface SqsPoller {
  start(): Promise<void>;
  close(): Promise<void>;
}

type MessageResult = 'delete' | 'retry' | { readonly error: unknown };

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

  async function processBatch(
    sqs: SQSClient,
    messages: readonly Message[],
  ): Promise<{ readonly error: unknown } | null> {
    const results = await Promise.all(messages.map((message) => processMessage(message)));
    const { DeleteMessageBatchCommand, ChangeMessageVisibilityBatchCommand } = await import('@aws-sdk/client-sqs');
    const listEntries = (expected: MessageResult) =>
      messages.flatMap(({ ReceiptHandle }, index) =>
        results[index] === expected && ReceiptHandle !== undefined ? [{ Id: String(index), ReceiptHandle }] : [],
      );
    const deleteEntries = listEntries('delete');
    // Otherwise the queue delivers the message again, and the store ignores it.
    if (deleteEntries.length > 0) {
      const deleteCommand = new DeleteMessageBatchCommand({ QueueUrl, Entries: deleteEntries });
      await runWithTimeout(RESPONSE_TIMEOUT_MS, null, (abortSignal) => sqs.send(deleteCommand, { abortSignal }));
    }
    const retryEntries = listEntries('retry').map((entry) => ({ ...entry, VisibilityTimeout: RETRY_VISIBILITY_S }));
    if (retryEntries.length > 0) {
      const visibilityCommand = new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: retryEntries });
      await runWithTimeout(RESPONSE_TIMEOUT_MS, null, (abortSignal) => sqs.send(visibilityCommand, { abortSignal }));
    }
    return results.find((result) => typeof result !== 'string') ?? null;
  }

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
        // Otherwise a wrong topic in the settings would lose all events.
        const reason = `the topic is ${toOneLine(topic, MAX_TOPIC_LENGTH) ?? ''}, which is not in POSTRIDER_SES_TOPICS`;
        await recordReport(createUnknownReport(Body, reason, { source: 'sqs', now }));
        return 'delete';
      }
      const recordResult = await recordSesEvent(
        text,
        { source: 'sqs', now, isFinal: now - sentAt > MAX_QUEUE_AGE_MS },
        recordReport,
      );
      if (recordResult !== 'not-yet') return 'delete';
      publishRefusal('not-settled');
      return 'retry';
    } catch (error) {
      publishRefusal('store');
      return { error };
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

/** With or without a VPC endpoint before it, and the legacy `eu-west-1.queue.amazonaws.com`. Null without a region. */
export function findQueueRegion(host: string): string | null {
  const labels = host.split('.');
  const serviceIndex = labels.findIndex((label) => label === 'sqs' || label === 'sqs-fips');
  const region = serviceIndex >= 0 ? labels[serviceIndex + 1] : labels[1] === 'queue' ? labels[0] : undefined;
  return region?.includes('-') === true ? region : null;
}

/** Raw message delivery has no envelope. The policy of the queue decides who may send: no signature. */
function unwrapEnvelope(body: string): { readonly text: string; readonly topic: string | null } {
  try {
    const envelope: unknown = JSON.parse(body);
    if (typeof envelope === 'object' && envelope !== null && 'Message' in envelope && 'TopicArn' in envelope) {
      const { Message: text, TopicArn: topic } = envelope;
      if (typeof text === 'string' && typeof topic === 'string') return { text, topic };
    }
  } catch {}
  return { text: body, topic: null };
}
