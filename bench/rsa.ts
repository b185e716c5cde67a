/**
 * The baseline for signed delivery: the rate of RSA-2048 signatures of `crypto.sign` with a callback, 8 at the same
 * time.
 */
import { generateKeyPairSync, sign } from 'node:crypto';

const SECONDS = 3;
const CONCURRENCY = 8;

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const data = Buffer.alloc(512, 'x');
const startedAt = performance.now();
let signatures = 0;

function signNext(): void {
  if (performance.now() - startedAt >= SECONDS * 1000) return;
  sign('sha256', data, privateKey, () => {
    signatures += 1;
    signNext();
  });
}

for (let n = 0; n < CONCURRENCY; n += 1) signNext();
process.once('beforeExit', () => {
  console.log(JSON.stringify({ perSecond: Math.round(signatures / ((performance.now() - startedAt) / 1000)) }));
});
