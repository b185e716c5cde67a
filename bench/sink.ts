/**
 * An SMTP sink with PIPELINING that accepts and discards every message, like Postfix's smtp-sink. It prints its port. For each line of
 * standard input it prints the number of messages so far; it ends with its input.
 */
import { createServer } from 'node:net';

let taken = 0;
const END = Buffer.from('\r\n.\r\n');
const GREETING = '220 sink ESMTP\r\n';
const EHLO = '250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 SMTPUTF8\r\n';

const server = createServer({ noDelay: true }, (socket) => {
  let inContent = false;
  let buffered: Buffer | null = null;
  socket.write(GREETING);
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    let bytes = buffered === null ? chunk : Buffer.concat([buffered, chunk]);
    buffered = null;
    let answer = '';
    while (bytes.length > 0) {
      const at = inContent ? bytes.indexOf(END) : bytes.indexOf(10);
      if (at < 0) {
        buffered = bytes;
        break;
      }
      if (inContent) {
        inContent = false;
        taken += 1;
        answer += '250 2.0.0 Ok\r\n';
        bytes = bytes.subarray(at + END.length);
        continue;
      }
      const verb = bytes.toString('latin1', 0, 4).toUpperCase();
      bytes = bytes.subarray(at + 1);
      if (verb === 'EHLO' || verb === 'HELO') answer += EHLO;
      else if (verb === 'DATA') {
        inContent = true;
        answer += '354 go\r\n';
      } else if (verb === 'QUIT') {
        socket.end(`${answer}221 bye\r\n`);
        return;
      } else answer += '250 2.1.0 Ok\r\n';
    }
    if (answer !== '') socket.write(answer);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(JSON.stringify({ port: typeof address === 'object' && address !== null ? address.port : 0 }));
});
process.stdin.on('data', () => console.log(JSON.stringify({ taken })));
process.stdin.once('end', () => process.exit(0));
