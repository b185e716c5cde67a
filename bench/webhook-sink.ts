/**
 * A receiver of webhooks that counts every request and responds with 204. The receiver prints its port. For each line
 * of standard input, the receiver prints the number of received requests. The receiver ends when its standard input
 * ends.
 */
import { createServer } from 'node:net';

let receivedCount = 0;
const HEADER_END = Buffer.from('\r\n\r\n');
const RESPONSE = 'HTTP/1.1 204 No Content\r\n\r\n';

const server = createServer({ noDelay: true }, (socket) => {
  let bufferedBytes: Buffer | null = null;
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    let bytes = bufferedBytes === null ? chunk : Buffer.concat([bufferedBytes, chunk]);
    bufferedBytes = null;
    let responses = '';
    while (bytes.length > 0) {
      const end = bytes.indexOf(HEADER_END);
      const header = end < 0 ? '' : bytes.toString('latin1', 0, end).toLowerCase();
      const requestLength = end + 4 + Number(/content-length: (\d+)/.exec(header)?.[1] ?? 0);
      if (end < 0 || bytes.length < requestLength) {
        bufferedBytes = bytes;
        break;
      }
      bytes = bytes.subarray(requestLength);
      receivedCount += 1;
      responses += RESPONSE;
    }
    if (responses !== '') socket.write(responses);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(JSON.stringify({ port: typeof address === 'object' && address !== null ? address.port : 0 }));
});
process.stdin.on('data', () => console.log(JSON.stringify({ receivedCount })));
process.stdin.once('end', () => process.exit(0));
