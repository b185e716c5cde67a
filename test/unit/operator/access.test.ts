/** Tests which addresses count as one peer in the limits for wrong passwords. */
import { expect, test } from 'vitest';
import { MAX_FAILURES } from '../../../src/http/failure-counts.ts';
import { AccessControl } from '../../../src/operator/access.ts';

const createBasicHeader = (password: string) => `Basic ${Buffer.from(`any:${password}`).toString('base64')}`;
const createCheck = (access: AccessControl) => (address: string, password: string, now: number) =>
  access.check(address, 'h', createBasicHeader(password), now);

test('all addresses of an IPv6 /64 network count as one peer', () => {
  const checkPassword = createCheck(new AccessControl('right'));
  for (let n = 0; n < MAX_FAILURES; n += 1)
    expect(checkPassword(`2001:db8:0:7::${n + 1}`, 'wrong', 0).kind).toBe('challenge');
  expect(checkPassword('2001:db8:0:7:ffff::1', 'wrong', 0).kind).toBe('limited');
  expect(checkPassword('2001:db8:0:8::1', 'wrong', 0).kind).toBe('challenge');
  expect(checkPassword('2001:db8:0:8::1', 'right', 0).kind).toBe('granted');
});
