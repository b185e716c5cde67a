/** The baseline for signed delivery: RSA-2048 signatures per second of `crypto.sign` with a callback, 8 at once. */
import { generateKeyPairSync, sign } from 'node:crypto';

const SECONDS = 3;
const AT_ONCE = 8;

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const data = Buffer.alloc(512, 'x');
const began = performance.now();
let signed = 0;

function next(): void {
  if (performance.now() - began >= SECONDS * 1000) return;
  sign('sha256', data, privateKey, () => {
    signed += 1;
    next();
  });
}

for (let n = 0; n < AT_ONCE; n += 1) next();
process.once('beforeExit', () => {
  console.log(JSON.stringify({ perSecond: Math.round(signed / ((performance.now() - began) / 1000)) }));
});
