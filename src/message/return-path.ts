/**
 * Without secrets and recipient data: base32 of 16 octets of the id, 2 of the day and 10 of HMAC-SHA256. Lower case,
 * because servers change the case. At most 64 octets (RFC 5321 section 4.5.3.1.1).
 */
import { hash, timingSafeEqual } from 'node:crypto';

const DAY_MS = 86_400_000;
const ID_OCTETS = 16;
const MAC_INPUT_OCTETS = ID_OCTETS + 2;
const MAC_OCTETS = 10;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
export const RETURN_PATH_TOKEN_PREFIX = 'b-';
export const RETURN_PATH_TOKEN_LENGTH = 47;

/** Never a token, so that a message to it bounces. */
const LOOP_LOCAL_PART = 'postrider-loop';

export function getLoopRecipient(domain: string | null): string | null {
  return domain === null ? null : `${LOOP_LOCAL_PART}@${domain}`;
}

interface ReturnPath {
  readonly id: string;
  readonly day: number;
}

/** The same on every attempt. */
export function createReturnPathToken(key: Buffer, id: string, acceptedAt: number): string {
  const octets = Buffer.alloc(MAC_INPUT_OCTETS + MAC_OCTETS);
  octets.write(id.replaceAll('-', ''), 0, 'hex');
  octets.writeUInt16BE(Math.floor(acceptedAt / DAY_MS) & 0xffff, ID_OCTETS);
  computeMac(key, octets).copy(octets, MAC_INPUT_OCTETS);
  return RETURN_PATH_TOKEN_PREFIX + toBase32(octets);
}

export function decodeReturnPath(key: Buffer, localPart: string): ReturnPath | null {
  const text = localPart.toLowerCase();
  if (!text.startsWith(RETURN_PATH_TOKEN_PREFIX)) return null;
  const octets = fromBase32(text.slice(RETURN_PATH_TOKEN_PREFIX.length));
  if (octets === null || !timingSafeEqual(octets.subarray(MAC_INPUT_OCTETS), computeMac(key, octets))) return null;
  const hex = octets.toString('hex', 0, ID_OCTETS);
  const id = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  return { id, day: octets.readUInt16BE(ID_OCTETS) };
}

const preparedKeys = new WeakMap<Buffer, Hmac>();

function computeMac(key: Buffer, octets: Buffer): Buffer {
  let hmac = preparedKeys.get(key);
  if (hmac === undefined) {
    hmac = createHmacSha256(key);
    preparedKeys.set(key, hmac);
  }
  return hmac(octets.subarray(0, MAC_INPUT_OCTETS)).subarray(0, MAC_OCTETS);
}

function toBase32(octets: Buffer): string {
  let text = '';
  let bitCount = 0;
  let pendingBits = 0;
  for (const octet of octets) {
    pendingBits = (pendingBits << 8) | octet;
    bitCount += 8;
    while (bitCount >= 5) {
      bitCount -= 5;
      text += ALPHABET[(pendingBits >> bitCount) & 31];
    }
    pendingBits &= (1 << bitCount) - 1;
  }
  return bitCount === 0 ? text : text + ALPHABET[(pendingBits << (5 - bitCount)) & 31];
}

function fromBase32(text: string): Buffer | null {
  if (text.length !== Math.ceil(((MAC_INPUT_OCTETS + MAC_OCTETS) * 8) / 5)) return null;
  const octets = Buffer.alloc(MAC_INPUT_OCTETS + MAC_OCTETS);
  let bitCount = 0;
  let pendingBits = 0;
  let offset = 0;
  for (const character of text) {
    const value = ALPHABET.indexOf(character);
    if (value < 0) return null;
    pendingBits = (pendingBits << 5) | value;
    bitCount += 5;
    if (bitCount < 8) continue;
    bitCount -= 8;
    octets[offset++] = (pendingBits >> bitCount) & 255;
    pendingBits &= (1 << bitCount) - 1;
  }
  // Otherwise two texts would decode to the same token.
  return pendingBits === 0 ? octets : null;
}

// RFC 2104. `createHmac` takes 13.7 µs for 18 octets, two one-shot hashes over prepared pads 2.3 µs.

const BLOCK_OCTETS = 64;
const DIGEST_OCTETS = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

type Hmac = (message: Uint8Array) => Buffer;

/** Later changes of `key` have no effect. */
export function createHmacSha256(key: Uint8Array): Hmac {
  const block = key.length > BLOCK_OCTETS ? hash('sha256', key, 'buffer') : key;
  const innerPad = padKey(block, INNER_PAD);
  const outerInput = Buffer.concat([padKey(block, OUTER_PAD), Buffer.alloc(DIGEST_OCTETS)]);
  return (message) => {
    hash('sha256', Buffer.concat([innerPad, message]), 'buffer').copy(outerInput, BLOCK_OCTETS);
    return hash('sha256', outerInput, 'buffer');
  };
}

function padKey(block: Uint8Array, pad: number): Buffer {
  const octets = Buffer.alloc(BLOCK_OCTETS, pad);
  for (const [index, octet] of block.entries()) octets[index] = octet ^ pad;
  return octets;
}
