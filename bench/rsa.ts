/**
 * The baseline for the delivery rate of signed messages: the rate at which `crypto.sign` with a callback creates
 * RSA-2048 signatures. Eight calls are in progress at the same time.
 */
import { generateKeyPairSync, sign } from 'node:crypto';

const DURATION_SECONDS = 3;
const CONCURRENCY = 8;

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const signedBytes = Buffer.alloc(512, 'x');
const startedAt = performance.now();
let signatureCount = 0;

function signNext(): void {
  if (performance.now() - startedAt >= DURATION_SECONDS * 1000) return;
  sign('sha256', signedBytes, privateKey, () => {
    signatureCount += 1;
    signNext();
  });
}

for (let n = 0; n < CONCURRENCY; n += 1) signNext();
process.once('beforeExit', () => {
  console.log(JSON.stringify({ perSecond: Math.round(signatureCount / ((performance.now() - startedAt) / 1000)) }));
});
