/**
 * The installation of a trial of webhooks: one or several nodes, a relay, an operator with a token, a provider, and a
 * receiver in a separate process. Nodes and the receiver can be killed with SIGKILL and started again.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { composeDeliveryStatus } from './bouncing-relay.ts';
import { createTemporaryFolder } from './folder.ts';
import { findFreePort } from './free-port.ts';
import { createEventBody, EVENT_SENDERS } from './provider-events.ts';
import { runJsonCommand, type ServiceProcess, startProcess, submit } from './service.ts';
import { connectSmtp } from './smtp-client.ts';
import { createTrialRecipient, decideRelayAction } from './trial-plan.ts';
import { startTrialRelay } from './trial-relay.ts';

const RECEIVER_PROGRAM = join(import.meta.dirname, 'trial-receiver.ts');
const REQUEST_TIMEOUT_MS = 10_000;
/** The delay before the repetition of a request that found no running node or was refused. */
const REPEAT_DELAY_MS = 20;

interface TrialNode extends ServiceProcess {
  readonly feedback: { readonly smtp: string | null; readonly http: string | null };
}

/** A verified webhook request, as the receiver stored it. */
export interface ReceivedWebhook {
  readonly id: string;
  readonly body: string;
}

export interface TrialInstallation {
  readonly nodeCount: number;
  killNode(index: number): Promise<void>;
  startNode(index: number): Promise<void>;
  killReceiver(): Promise<void>;
  startReceiver(): Promise<void>;
  readReceived(): ReceivedWebhook[];
  /** Submits a message, and repeats a failed request with the same idempotency key. Resolves to the message id. */
  submit(recipient: string, idempotencyKey: string): Promise<string>;
  /** Calls an operation of the operator API. @throws Error if `statuses` does not contain the response status */
  call<T>(method: 'GET' | 'POST', path: string, statuses?: readonly number[]): Promise<T>;
  runJson<T>(...args: readonly string[]): Promise<T>;
  /** Sends the provider event of a sample file, and repeats the request until the response is 200. */
  sendEvent(sample: string, message: { readonly id: string; readonly recipient: string }): Promise<void>;
  /**
   * Sends a delivery status notification about the last message that the relay accepted for the recipient. Repeats the
   * notification until the service accepts it.
   */
  sendReport(recipient: string): Promise<void>;
}

/**
 * Starts the installation. `settings` are the database settings. The webhook endpoint has the id `wh_1` and subscribes
 * to all event types.
 */
export async function startTrialInstallation(
  nodeCount: number,
  settings: Readonly<Record<string, string>>,
  maxAgeMs: number,
): Promise<TrialInstallation> {
  const [provider] = EVENT_SENDERS;
  if (provider?.name !== 'postmark') throw new Error('the first provider is not Postmark');
  const sender = provider.createSender();
  const folder = createTemporaryFolder();
  const storedFile = join(folder, 'received.jsonl');
  const relay = await startTrialRelay(decideRelayAction);
  onTestFinished(() => relay.close());
  const allSettings = {
    ...settings,
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?connections=4`,
    POSTRIDER_SENDERS: 'any',
    POSTRIDER_ON_UNCERTAIN: 'hold',
    POSTRIDER_MAX_AGE: `${maxAgeMs / 1_000}s`,
    POSTRIDER_WEBHOOK_TARGETS: 'any',
    POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
    POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
    POSTRIDER_FEEDBACK_HTTP_LISTEN: '127.0.0.1:0',
    POSTRIDER_EVENTS_POSTMARK: sender.secret,
  };
  const runJson = <T>(...args: readonly string[]) => runJsonCommand<T>(folder, args, allSettings);
  const nodes: (TrialNode | null)[] = [];
  let receiver: ChildProcess | null = null;
  let callIndex = 0;

  async function startNode(index: number): Promise<void> {
    const node = await startProcess(folder, allSettings);
    const { feedback } = JSON.parse(node.stdout().split('\n')[0] ?? '') as Pick<TrialNode, 'feedback'>;
    nodes[index] = { ...node, feedback };
  }

  async function startReceiver(): Promise<void> {
    const receiverProcess = spawn(process.execPath, [RECEIVER_PROGRAM, storedFile, String(receiverPort)], {
      env: { ...process.env, WEBHOOK_SECRET: secret },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void receiverProcess.kill('SIGKILL'));
    receiver = receiverProcess;
    await once(receiverProcess.stdout, 'data');
  }

  /** Calls `call` with each running node in turn, until a result is not null. */
  async function withNode<T>(call: (node: TrialNode) => Promise<T | null>): Promise<T> {
    for (;;) {
      const runningNodes = nodes.filter((node) => node !== null);
      callIndex += 1;
      const node = runningNodes[callIndex % Math.max(runningNodes.length, 1)];
      // The call fails if the node is killed.
      const result = node === undefined ? null : await call(node).catch(() => null);
      if (result !== null) return result;
      await new Promise((resolve) => setTimeout(resolve, REPEAT_DELAY_MS));
    }
  }

  await startNode(0);
  const key = nodes[0]?.key ?? '';
  const { token } = await runJson<{ token: string }>('token', 'create', 'trial');
  await runJson('account', 'set', 'default', '--max-bounces', '100%', '--max-complaints', '100%');
  await runJson('suppression', 'add', 'default', createTrialRecipient('suppressed', 0));
  const receiverPort = await findFreePort();
  const url = `http://127.0.0.1:${receiverPort}/webhooks`;
  const { secret } = await runJson<{ secret: string }>('webhook', 'create', url, '--events', 'all');
  await startReceiver();
  for (let index = 1; index < nodeCount; index += 1) await startNode(index);

  return {
    nodeCount,
    startNode,
    startReceiver,
    runJson,
    async killNode(index) {
      const node = nodes[index];
      nodes[index] = null;
      node?.kill('SIGKILL');
      await node?.exitPromise;
    },
    async killReceiver() {
      if (receiver === null || receiver.exitCode !== null) return;
      const exitPromise = once(receiver, 'exit');
      receiver.kill('SIGKILL');
      await exitPromise;
    },
    readReceived() {
      if (!existsSync(storedFile)) return [];
      const lines = readFileSync(storedFile, 'utf8').split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line) as ReceivedWebhook);
    },
    submit: (recipient, idempotencyKey) =>
      withNode(async ({ publicUrl }) => {
        const headers = { 'Idempotency-Key': idempotencyKey };
        const response = await submit(
          publicUrl,
          key,
          { to: recipient },
          headers,
          AbortSignal.timeout(REQUEST_TIMEOUT_MS),
        );
        const body = (await response.json()) as { result: { id: string } };
        return response.status === 201 ? body.result.id : null;
      }),
    async call<T>(method: 'GET' | 'POST', path: string, statuses: readonly number[] = [200]) {
      const answer = await withNode(async ({ operatorUrl }) => {
        const response = await fetch(`${operatorUrl}/api/v1${path}`, {
          method,
          headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          body: method === 'GET' ? null : '{}',
          signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
        });
        const body = (await response.json()) as T;
        // A node that is starting or stopping answers 503.
        return response.status >= 500 ? null : { status: response.status, body };
      });
      if (!statuses.includes(answer.status))
        throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body;
    },
    async sendEvent(sample, message) {
      const { headers, body } = sender.createRequest(createEventBody(provider, sample, message), '');
      await withNode(async ({ feedback }) => {
        const response = await fetch(`${new URL(feedback.http?.split(', ')[0] ?? '').origin}/events/postmark`, {
          method: 'POST',
          headers: { ...headers },
          body: new Uint8Array(body),
          signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
        });
        await response.body?.cancel();
        return response.status === 200 ? true : null;
      });
    },
    async sendReport(recipient) {
      const returnPath = relay.senders.get(recipient) ?? '';
      const diagnostic = 'smtp; 550 5.1.1 No such user here';
      const originalMessage = 'Subject: Your receipt\r\n';
      const report = composeDeliveryStatus(recipient, returnPath, originalMessage, 'failed', '5.1.1', diagnostic);
      await withNode(async ({ feedback }) => {
        const client = await connectSmtp(Number(feedback.smtp?.split(':').at(-1)));
        const reply = await client.send('', returnPath, report);
        client.close();
        return reply.startsWith('250') ? true : null;
      });
    },
  };
}
