/** Tests the client of the account-level suppression list of Amazon SES. */
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseTransport } from '../../../src/config/transport-url.ts';
import { getSesApiSetting, openSesSuppressionList } from '../../../src/domains/ses-suppression-list.ts';
import { CREDENTIALS, createAccountAnswer, createErrorAnswer, startSesFake } from '../../rig/ses-fake.ts';

beforeEach(() => {
  for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value);
  return () => vi.unstubAllEnvs();
});

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

test('the suppression reasons that the AWS account uses are read', async () => {
  const { fake, list } = await startFixture();
  const readReasons = async () => {
    const reasons = await list.readReasons();
    return reasons.kind === 'done' ? [...reasons.value] : reasons;
  };
  expect(await readReasons()).toEqual(['BOUNCE', 'COMPLAINT']);
  fake.account = createAccountAnswer({ SuppressionAttributes: { SuppressedReasons: ['COMPLAINT'] } });
  expect(await readReasons()).toEqual(['COMPLAINT']);
  fake.account = createAccountAnswer({ SuppressionAttributes: undefined });
  expect(await readReasons()).toEqual([]);
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

  test('an unknown region', async () => {
    for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION']) vi.stubEnv(name, undefined);
    for (const name of ['HOME', 'AWS_SHARED_CREDENTIALS_FILE', 'AWS_CONFIG_FILE']) vi.stubEnv(name, '/nonexistent');
    const list = await openSesSuppressionList({ region: null, endpoint: null });
    onTestFinished(() => list.close());
    expect(await list.readPage(null)).toMatchObject({ kind: 'failed', failure: { code: 'no-region' } });
  });
});

test.each([
  ['ses://eu-west-1', { region: 'eu-west-1', endpoint: null }],
  ['smtp://u:p@email-smtp.us-east-2.amazonaws.com:587', { region: 'us-east-2', endpoint: null }],
  ['smtp://u:p@email-smtp-fips.us-east-2.amazonaws.com:587', { region: 'us-east-2', endpoint: null }],
  ['smtp://u:p@vpce-1.email-smtp.eu-west-1.vpce.amazonaws.com:587', { region: 'eu-west-1', endpoint: null }],
  ['smtp://u:p@proxy.example.com:587?provider=ses', { region: null, endpoint: null }],
  ['smtp://u:p@smtp.postmarkapp.com:587', null],
  ['capture:', null],
])('the region of the API is derived from the transport %s', (text, setting) => {
  const transport = parseTransport(text);
  expect(transport.ok ? getSesApiSetting(transport.value) : transport).toEqual(setting);
});
