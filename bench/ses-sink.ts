/**
 * A fake of the SESv2 API that accepts and discards every message, in a separate process. The maximum send rate of the
 * simulated account is so high that it does not limit Postrider. The sink prints its port. For each line of standard
 * input, the sink prints the number of received messages and the number of connections. The sink ends when its standard
 * input ends.
 *
 * node bench/ses-sink.ts 50      answers each message after 50 ms
 */
import { createServer, type ServerResponse } from 'node:http';

const latencyMs = Number(process.argv[2] ?? 0);
const ACCOUNT_RESPONSE = JSON.stringify({
  SendingEnabled: true,
  ProductionAccessEnabled: true,
  EnforcementStatus: 'HEALTHY',
  SendQuota: { Max24HourSend: -1, MaxSendRate: 100_000, SentLast24Hours: 0 },
});
let receivedCount = 0;
let connectionCount = 0;

const server = createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (request, response) => {
  if (request.url !== '/v2/email/outbound-emails') return sendResponse(response, ACCOUNT_RESPONSE);
  request.resume();
  request.once('end', () => {
    receivedCount += 1;
    const body = `{"MessageId":"0102018f${receivedCount.toString(16).padStart(8, '0')}-bench-000000"}`;
    if (latencyMs === 0) sendResponse(response, body);
    else setTimeout(sendResponse, latencyMs, response, body);
  });
});
server.on('connection', () => {
  connectionCount += 1;
});

function sendResponse(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(JSON.stringify({ port: typeof address === 'object' && address !== null ? address.port : 0 }));
});
process.stdin.on('data', () => console.log(JSON.stringify({ receivedCount, connectionCount })));
process.stdin.once('end', () => process.exit(0));
