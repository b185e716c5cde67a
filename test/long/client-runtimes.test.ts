import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { createTemporaryFolder } from '../rig/folder.ts';
import { installClient } from '../rig/installed-client.ts';
import { runNpm } from '../rig/installed-package.ts';
import { startProcess } from '../rig/service.ts';

const runFile = promisify(execFile);

const PROGRAM_TEXT = `
import { createClient, verifyWebhook } from 'postrider-client';
const { baseUrl, apiKey, silentUrl, secret, headers, body } = JSON.parse(globalThis.Deno?.args[0] ?? process.argv[2]);
const message = { to: 'ada@example.com', from: 'shop@example.org', subject: 's', message: 'm', idempotencyKey: 'receipt-1' };
const client = createClient({ baseUrl, apiKey });
const firstResult = await client.send(message);
const secondResult = await client.send({ ...message, cc: 'x' });
const describeOutcome = (sending) => sending.then(() => 'accepted', (error) => [error.name, error.kind, error.status, error.attempts]);
const bytes = new TextEncoder().encode(body);
console.log(JSON.stringify({
  isReplayed: secondResult.replayed && firstResult.id === secondResult.id,
  ignoredFields: secondResult.ignoredFields,
  invalid: await describeOutcome(client.send({ ...message, to: 'x', idempotencyKey: undefined })),
  wrongKey: await describeOutcome(createClient({ baseUrl, apiKey: 'pr_x' }).send(message)),
  timeout: await describeOutcome(createClient({ baseUrl: silentUrl, apiKey, timeoutMs: 200, maxAttempts: 2 }).send(message)),
  aborted: await describeOutcome(createClient({ baseUrl: silentUrl, apiKey }).send(message, { signal: AbortSignal.timeout(100) })),
  refused: await describeOutcome(createClient({ baseUrl: 'http://127.0.0.1:1', apiKey, maxAttempts: 2 }).send(message)),
  event: await verifyWebhook(bytes, new Headers(headers), secret),
  forged: await describeOutcome(verifyWebhook(body + ' ', headers, secret)),
}));
`;

test('on Deno and Bun, every part of the client library returns the same results as on Node', async () => {
  const folder = createTemporaryFolder();
  const installation = await installClient(folder);
  await runNpm(installation.folder, ['install', '--no-save', '--no-audit', '--no-fund', 'deno', 'bun']);
  const service = await startProcess(createTemporaryFolder());
  const silentServer = createServer((socket) => void socket.on('error', () => undefined));
  await new Promise<void>((resolve) => silentServer.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void silentServer.close());
  const address = silentServer.address();
  const silentUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const body = '{"type":"webhook.test","timestamp":"2026-01-01T00:00:00.000Z","data":{"id":"1"}}';
  writeFileSync(join(installation.folder, 'program.js'), PROGRAM_TEXT);
  const commands = {
    node: [process.execPath, 'program.js'],
    deno: ['node_modules/.bin/deno', 'run', '--allow-net', '--no-prompt', '--node-modules-dir=manual', 'program.js'],
    bun: ['node_modules/.bin/bun', 'run', 'program.js'],
  };
  for (const [runtime, [command = '', ...args]] of Object.entries(commands)) {
    const now = new Date();
    const headers = {
      'webhook-id': 'a',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign('a', now, body),
    };
    const argument = { baseUrl: service.publicUrl, apiKey: service.key, silentUrl, secret, headers, body };
    const { stdout } = await runFile(command, [...args, JSON.stringify(argument)], { cwd: installation.folder });
    expect([runtime, JSON.parse(stdout)]).toEqual([
      runtime,
      {
        isReplayed: true,
        ignoredFields: ['cc'],
        invalid: ['SendError', 'invalid-request', 400, 1],
        wrongKey: ['SendError', 'unauthorized', 401, 1],
        timeout: ['SendError', 'timeout', null, 2],
        aborted: ['SendError', 'aborted', null, 1],
        refused: ['SendError', 'network', null, 2],
        event: { ...(JSON.parse(body) as object), id: 'a' },
        forged: ['WebhookError', 'invalid-signature', null, null],
      },
    ]);
  }
});
