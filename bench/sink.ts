/**
 * An SMTP sink with PIPELINING that accepts and discards every message, like Postfix's smtp-sink. The sink prints its
 * port. For each line of standard input, the sink prints the number of received messages. The sink ends when its
 * standard input ends.
 */
import { createServer } from 'node:net';

let receivedCount = 0;
const CONTENT_END = Buffer.from('\r\n.\r\n');
const GREETING = '220 sink ESMTP\r\n';
const EHLO_REPLY = '250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 SMTPUTF8\r\n';

const server = createServer({ noDelay: true }, (socket) => {
  let isInContent = false;
  let bufferedBytes: Buffer | null = null;
  socket.write(GREETING);
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    let bytes = bufferedBytes === null ? chunk : Buffer.concat([bufferedBytes, chunk]);
    bufferedBytes = null;
    let reply = '';
    while (bytes.length > 0) {
      const end = isInContent ? bytes.indexOf(CONTENT_END) : bytes.indexOf(10);
      if (end < 0) {
        bufferedBytes = bytes;
        break;
      }
      if (isInContent) {
        isInContent = false;
        receivedCount += 1;
        reply += '250 2.0.0 Ok\r\n';
        bytes = bytes.subarray(end + CONTENT_END.length);
        continue;
      }
      const command = bytes.toString('latin1', 0, 4).toUpperCase();
      bytes = bytes.subarray(end + 1);
      if (command === 'EHLO' || command === 'HELO') reply += EHLO_REPLY;
      else if (command === 'DATA') {
        isInContent = true;
        reply += '354 End data with <CR><LF>.<CR><LF>\r\n';
      } else if (command === 'QUIT') {
        socket.end(`${reply}221 bye\r\n`);
        return;
      } else reply += '250 2.1.0 Ok\r\n';
    }
    if (reply !== '') socket.write(reply);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(JSON.stringify({ port: typeof address === 'object' && address !== null ? address.port : 0 }));
});
process.stdin.on('data', () => console.log(JSON.stringify({ receivedCount })));
process.stdin.once('end', () => process.exit(0));
