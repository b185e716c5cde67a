import { describe, expect, test } from 'vitest';
import { formatAccount } from '../../../src/cli/account.ts';
import {
  createAccount,
  listAccounts,
  lockAccount,
  setAccount,
  toAccountDetails,
} from '../../../src/operations/accounts.ts';
import { listAudit } from '../../../src/operations/audit.ts';
import { createKey, importKey, listKeys, revokeKey, rotateKey } from '../../../src/operations/keys.ts';
import type { Operation } from '../../../src/operations/operation.ts';
import { removeSender, setSender } from '../../../src/operations/senders.ts';
import { createToken, listTokens, revokeToken } from '../../../src/operations/tokens.ts';
import { createAccount as createFakeAccount } from '../http/rig.ts';
import { createOperationRig, type OperationRig } from './operation-rig.ts';

async function performChecked(rig: OperationRig, operation: Operation, input: Readonly<Record<string, unknown>>) {
  const performResult = await rig.perform(operation, input);
  if (performResult.ok) return performResult.value;
  const { code, field } = performResult.error;
  return { code, field };
}

const NOW = Date.UTC(2030, 0, 1);
const ACCOUNT = createFakeAccount({
  name: 'acme',
  warning: '7 hard bounces of 100 messages in 7 days (7 %; the limit is 10 %)',
});

const NO_COUNTS = { emails: 0, bounces: 0, complaints: 0, provenBounces: 0, provenComplaints: 0 };

test('the warning of an account is computed from the current counts, not from those at the last bounce', () => {
  const readWarning = (emails: number) => {
    const details = toAccountDetails(ACCOUNT, NOW, { ...NO_COUNTS, emails, bounces: 7 });
    return { warning: details.warning, text: formatAccount(details, NOW) };
  };
  const laterWarning = readWarning(125);
  expect(laterWarning.warning).toContain('7 hard bounces of 125 messages');
  expect(laterWarning.text).toContain('7 hard bounces of 125 messages');
  expect(laterWarning.text).not.toContain('of 100 messages');
  expect(readWarning(10_000).warning).toBeNull();
  expect(readWarning(10_000).text).not.toContain('warning');
});

describe('accounts', () => {
  test('setting a configuration set succeeds with a warning if the transport is not Amazon SES', async () => {
    const setConfigurationSetWith = async (transport: string) => {
      const rig = await createOperationRig({ POSTRIDER_TRANSPORT: transport });
      return rig.perform(setAccount, { account: 'acme', sesConfigurationSet: 'news' });
    };
    expect(await setConfigurationSetWith('smtp://smtp.postmarkapp.com')).toMatchObject({
      ok: true,
      warnings: [{ code: 'configuration-set', message: expect.stringContaining('news has no effect') }],
    });
    expect(await setConfigurationSetWith('ses://eu-west-1')).toMatchObject({ ok: true, warnings: [] });
    expect(await setConfigurationSetWith('smtp://email-smtp.eu-west-1.amazonaws.com')).toMatchObject({
      ok: true,
      warnings: [],
    });
  });

  test.each([
    [createAccount, { name: '' }, 'invalid', 'name'],
    [createAccount, { name: '*' }, 'invalid', 'name'],
    [createAccount, { name: '-x' }, 'invalid', 'name'],
    [createAccount, { name: 'a\u202eb' }, 'invalid', 'name'],
    [createAccount, { name: 'x'.repeat(65) }, 'invalid', 'name'],
    [createAccount, { name: 'x', volume: 'ten' }, 'invalid', 'volume'],
    [createAccount, { name: 'x', maxBounces: '10%' }, 'invalid', null],
    [setAccount, { account: 'acme', volumeExpires: 'soon' }, 'invalid', 'volumeExpires'],
    [setAccount, { account: 'acme', rate: '10' }, 'invalid', 'rate'],
    [setAccount, { account: 'acme', throttle: '5/m' }, 'invalid', 'throttle'],
    [setAccount, { account: 'acme', maxBounces: '0%' }, 'invalid', 'maxBounces'],
    [setAccount, { account: 'acme', maxComplaints: '101%' }, 'invalid', 'maxComplaints'],
    [setAccount, { account: 'acme', sesConfigurationSet: 'a b' }, 'invalid', 'sesConfigurationSet'],
    [setAccount, { account: 'acme', sesConfigurationSet: 'x'.repeat(65) }, 'invalid', 'sesConfigurationSet'],
    [setAccount, { account: 'acme', sesConfigurationSet: 'x\r\nBcc: a' }, 'invalid', 'sesConfigurationSet'],
    [setAccount, { account: 'acme', maxAge: '0s' }, 'invalid', 'maxAge'],
    [setAccount, { account: 'acme', onlyTo: 'qa@example.org,staging' }, 'invalid', 'onlyTo'],
    [setAccount, { account: 'acme', onlyTo: ',' }, 'invalid', 'onlyTo'],
    [lockAccount, { account: 'acme', reason: ' ' }, 'invalid', 'reason'],
    [setSender, { account: 'acme', sender: 'acme.example', name: 'Acme' }, 'invalid', 'sender'],
    [setSender, { account: 'acme', sender: '@acme.example' }, 'invalid', 'name'],
    [setSender, { account: 'acme', sender: '@acme.example', name: 'Acme\r\nBcc: a@b.example' }, 'invalid', 'name'],
    [setSender, { account: 'acme', sender: '@acme.example', name: 'Acme \u202egro.emca' }, 'invalid', 'name'],
    [setSender, { account: 'acme', sender: '@acme.example', name: 'Acme\u0085' }, 'invalid', 'name'],
    [setSender, { account: 'acme', sender: '@acme.example', replyTo: 'Acme <a@b.example>' }, 'invalid', 'replyTo'],
    [removeSender, { account: 'acme', sender: '@acme.example' }, 'not-found', 'sender'],
  ] as const)(
    '$name %j is refused as %s, changes nothing and writes no entry',
    async (operation, input, code, field) => {
      const rig = await createOperationRig();
      const accountsBefore = await performChecked(rig, listAccounts, {});
      expect(await performChecked(rig, operation, input)).toEqual({ code, field });
      expect(await performChecked(rig, listAccounts, {})).toEqual(accountsBefore);
      expect(await performChecked(rig, listAudit, {})).toEqual([]);
    },
  );
});

const SUPPLIED_KEY = `pr_${'Az09_-'.repeat(7)}A`;

describe('keys', () => {
  test('an imported key cannot be imported again, and no list, error or audit log entry contains the key', async () => {
    const rig = await createOperationRig();
    const importedKey = await performChecked(rig, importKey, { account: 'acme', key: SUPPLIED_KEY, name: 'web' });
    expect(importedKey).toEqual({ id: 'key_1', prefix: SUPPLIED_KEY.slice(0, 10), expires: null });
    await performChecked(rig, revokeKey, { key: 'key_1' });
    await performChecked(rig, createAccount, { name: 'shop' });
    for (const account of ['acme', 'shop']) {
      expect(await performChecked(rig, importKey, { account, key: SUPPLIED_KEY })).toEqual({
        code: 'conflict',
        field: 'key',
      });
    }
    const listedKeys = await performChecked(rig, listKeys, { account: 'acme' });
    expect(listedKeys).toMatchObject([{ id: 'key_1', name: 'web', state: 'revoked' }]);
    expect(JSON.stringify([listedKeys, await performChecked(rig, listAudit, {})])).not.toContain(SUPPLIED_KEY);
  });

  test.each([
    [createKey, { account: 'acme', name: ' ' }, 'invalid', 'name'],
    [createKey, { account: 'acme', expires: 'soon' }, 'invalid', 'expires'],
    [importKey, { account: 'acme' }, 'invalid', 'key'],
    [importKey, { account: 'acme', key: '' }, 'invalid', 'key'],
    [importKey, { account: 'acme', key: 'secret' }, 'invalid', 'key'],
    [importKey, { account: 'acme', key: SUPPLIED_KEY.slice(0, -1) }, 'invalid', 'key'],
    [importKey, { account: 'acme', key: `${SUPPLIED_KEY}x` }, 'invalid', 'key'],
    [importKey, { account: 'acme', key: `po_${SUPPLIED_KEY.slice(3)}` }, 'invalid', 'key'],
    [importKey, { account: 'acme', key: `${SUPPLIED_KEY.slice(0, -1)}+` }, 'invalid', 'key'],
    [importKey, { account: 'acme', key: `${SUPPLIED_KEY}\n` }, 'invalid', 'key'],
    [importKey, { account: 'acme', key: SUPPLIED_KEY, expires: 'soon' }, 'invalid', 'expires'],
    [revokeKey, { key: 'pr_x' }, 'invalid', 'key'],
    [revokeKey, { key: 'key_0' }, 'invalid', 'key'],
    [rotateKey, { key: 'key_999', grace: '1' }, 'invalid', 'grace'],
  ] as const)('$name %j is refused as %s', async (operation, input, code, field) => {
    const rig = await createOperationRig();
    expect(await performChecked(rig, operation, input)).toEqual({ code, field });
    expect(await performChecked(rig, listAudit, {})).toEqual([]);
  });
});

describe('tokens and the audit log', () => {
  test('a token is created, listed without the secret, and revoked', async () => {
    const rig = await createOperationRig();
    const createdToken = await performChecked(rig, createToken, { name: 'ci' });
    expect(createdToken).toMatchObject({ id: 1, token: expect.stringMatching(/^po_/), expires: null });
    expect(await performChecked(rig, createToken, { name: 'ci' })).toEqual({ code: 'conflict', field: 'name' });
    for (const [scope, prefix] of [
      ['metrics', 'pom_'],
      ['read', 'por_'],
      ['content', 'poc_'],
    ] as const) {
      const token = await performChecked(rig, createToken, { name: scope, scope });
      expect(token).toMatchObject({ token: expect.stringMatching(new RegExp(`^${prefix}`)) });
    }
    const [entry] = (await performChecked(rig, listAudit, { limit: 1 })) as readonly { after: object }[];
    expect(entry?.after).toMatchObject({ scope: 'content' });
    expect(await performChecked(rig, revokeToken, { id: '1' })).toMatchObject({ id: 1, name: 'ci' });
    const listedTokens = await performChecked(rig, listTokens, {});
    expect(listedTokens).toMatchObject([
      { id: 1, name: 'ci', status: 'revoked', scope: 'full' },
      { id: 2, name: 'metrics', status: 'works', scope: 'metrics' },
      { id: 3, name: 'read', status: 'works', scope: 'read' },
      { id: 4, name: 'content', status: 'works', scope: 'content' },
    ]);
    expect(JSON.stringify(listedTokens)).not.toContain((createdToken as { token: string }).token);
  });
});
