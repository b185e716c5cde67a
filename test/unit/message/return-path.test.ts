import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createHmacSha256, createReturnPathToken, decodeReturnPath } from '../../../src/message/return-path.ts';
import { parseAddress } from '../../../src/model/address.ts';
import { createMessageIdAt } from '../../rig/messages.ts';

const key = Buffer.alloc(32, 7);
const DAY_MS = 86_400_000;
const time = fc.integer({ min: Date.UTC(2025, 1, 1), max: Date.UTC(2090, 0, 1) });

test('the message id and the day are read from a token in lower or upper case', () => {
  fc.assert(
    fc.property(time, fc.boolean(), (issuedAt, upper) => {
      const id = createMessageIdAt(issuedAt);
      const token = createReturnPathToken(key, id, issuedAt);
      expect(decodeReturnPath(key, upper ? token.toUpperCase() : token)).toEqual({
        id,
        day: Math.floor(issuedAt / DAY_MS) & 0xffff,
      });
    }),
  );
});

test('a token is a valid local part', () => {
  const token = createReturnPathToken(key, createMessageIdAt(DAY_MS * 21_000), DAY_MS * 21_000);
  expect(token).toMatch(/^b-[a-z2-7]{45}$/);
  expect(parseAddress(`${token}@bounces.example.com`)?.localPart).toBe(token);
});

test('a token with one changed character, a token that was created with another key, and any other text are not accepted', () => {
  const id = createMessageIdAt(DAY_MS * 21_000);
  const token = createReturnPathToken(key, id, DAY_MS * 21_000);
  for (let index = 2; index < token.length; index += 1) {
    const otherCharacter = token[index] === 'a' ? 'b' : 'a';
    expect(decodeReturnPath(key, token.slice(0, index) + otherCharacter + token.slice(index + 1))).toBeNull();
  }
  expect(decodeReturnPath(Buffer.alloc(32, 8), token)).toBeNull();
  fc.assert(fc.property(fc.string(), (text) => decodeReturnPath(key, text) === null));
  fc.assert(
    fc.property(fc.string({ minLength: 45, maxLength: 45 }), (text) => decodeReturnPath(key, `b-${text}`) === null),
  );
});

test('HMAC values equal the values of createHmac for keys and messages of any length', () => {
  const octets = fc.uint8Array({ maxLength: 200 });
  fc.assert(
    fc.property(octets, fc.array(octets, { minLength: 1, maxLength: 3 }), (key, messages) => {
      const hmac = createHmacSha256(key);
      for (const message of messages) {
        expect(hmac(message).toString('hex')).toBe(createHmac('sha256', key).update(message).digest('hex'));
      }
    }),
  );
});
