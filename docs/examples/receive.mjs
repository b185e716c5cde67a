// Receives webhooks. Usage: WEBHOOK_SECRET=whsec_… node receive.mjs PORT
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks'; // npm install standardwebhooks

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const processedIds = new Set(); // Use a table of your database.

async function readBody(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

createServer(async (request, response) => {
  const body = await readBody(request);
  let event;
  try {
    event = webhook.verify(body, request.headers);
  } catch {
    response.writeHead(401).end();
    return;
  }
  const id = request.headers['webhook-id'];
  if (!processedIds.has(id)) {
    console.log(event.type, event.data.id, event.data.state, event.data.sequence);
    processedIds.add(id);
  }
  response.writeHead(204).end();
}).listen(Number(process.argv[2]), '127.0.0.1');
