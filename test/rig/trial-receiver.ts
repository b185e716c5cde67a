/**
 * The program of a webhook receiver that follows docs/webhooks.md: the receiver verifies each request with the package
 * `standardwebhooks`, and stores the request before the response. The test may kill this process at any time.
 *
 * Arguments: the file that stores one JSON line for each verified request, and the port. The environment variable
 * WEBHOOK_SECRET is the signing secret. If the verification of a request fails, the receiver responds with 401 and
 * exits with code 1.
 */
import { openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const [file = '', port = ''] = process.argv.slice(2);
const webhook = new Webhook(process.env.WEBHOOK_SECRET ?? '');
const descriptor = openSync(file, 'a');

createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString();
  try {
    webhook.verify(body, request.headers as Record<string, string>);
  } catch (error) {
    process.stderr.write(`${String(error)}: ${body}\n`);
    response.writeHead(401).end(() => process.exit(1));
    return;
  }
  writeSync(descriptor, `${JSON.stringify({ id: request.headers['webhook-id'], body })}\n`);
  response.writeHead(204).end();
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('listening\n'));
