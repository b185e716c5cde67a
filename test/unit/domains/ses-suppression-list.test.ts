import { describe, expect, onTestFinished, test } from 'vitest';
import { openSesSuppressionList } from '../../../src/domains/ses-suppression-list.ts';
import { createErrorAnswer, startSesFake, stubCredentials } from '../../rig/ses-fake.ts';

stubCredentials();

async function startFixture() {
  const fake = await startSesFake();
  onTestFinished(() => fake.close());
  const list = await openSesSuppressionList({ region: 'eu-west-1', endpoint: fake.endpoint });
  onTestFinished(() => list.close());
  return { fake, list };
}

test('every entry of a list of several pages is read', async () => {
  const { fake, list } = await startFixture();
  for (let n = 0; n < 2_001; n += 1)
    fake.suppressionReasons.set(`a${n}@example.com`, n % 2 === 0 ? 'BOUNCE' : 'COMPLAINT');
  const entries = new Map<string, string>();
  let position: string | null = null;
  let pageCount = 0;
  do {
    const page = await list.readPage(position);
    if (page.kind === 'failed') throw new Error(page.failure.reason);
    for (const { address, reason } of page.value.entries) entries.set(address, reason);
    position = page.value.nextPosition;
    pageCount += 1;
  } while (position !== null);
  expect([pageCount, entries.size]).toEqual([3, 2_001]);
  expect(entries).toEqual(fake.suppressionReasons);
});

describe('a failure has a code and a remedy', () => {
  test.each([
    [createErrorAnswer(403, 'AccessDeniedException', 'User is not authorized'), 'not-permitted'],
    [createErrorAnswer(403, 'UnrecognizedClientException', 'The security token is invalid'), 'credentials-refused'],
    [createErrorAnswer(429, 'TooManyRequestsException', 'Rate exceeded'), 'throttled'],
    [createErrorAnswer(400, 'BadRequestException', 'Invalid address'), 'refused'],
    [createErrorAnswer(500, 'InternalFailure', 'internal'), 'unavailable'],
    ['disconnect', 'unavailable'],
  ] as const)('%j', async (behavior, code) => {
    const { fake, list } = await startFixture();
    fake.suppressionList = behavior;
    expect(await list.remove('ada@example.com')).toMatchObject({ kind: 'failed', failure: { code } });
    const result = await list.readPage(null);
    expect(result).toMatchObject({ kind: 'failed', failure: { code } });
    if (result.kind === 'failed') expect(result.failure.remedy).not.toBe('');
  });
});
