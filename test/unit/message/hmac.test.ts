import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hmacSha256 } from '../../../src/message/hmac.ts';

test('values equal those of createHmac for keys and messages of any length', () => {
  const octets = fc.uint8Array({ maxLength: 200 });
  fc.assert(
    fc.property(octets, fc.array(octets, { minLength: 1, maxLength: 3 }), (key, messages) => {
      const hmac = hmacSha256(key);
      for (const message of messages) {
        expect(hmac(message).toString('hex')).toBe(createHmac('sha256', key).update(message).digest('hex'));
      }
    }),
  );
});
