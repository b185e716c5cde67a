import { describe, expect, test, vi } from 'vitest';
import { addSuppression, removeSuppression } from '../../../src/operations/suppressions.ts';
import { createErrorAnswer, type SesFake } from '../../rig/ses-fake.ts';
import { createOperationRig, startSes } from './operation-rig.ts';

const SUPPRESSION = { account: 'acme', address: 'ada@example.com' };

async function startFixture(getTransport = ({ endpoint }: SesFake) => `ses://eu-west-1?endpoint=${endpoint}`) {
  const fake = await startSes();
  const rig = await createOperationRig({ POSTRIDER_TRANSPORT: getTransport(fake) });
  const remove = (change: object = {}) => rig.perform(removeSuppression, { ...SUPPRESSION, provider: true, ...change });
  const isListed = async () => (await rig.store.findSuppression(SUPPRESSION.address)).length > 0;
  return { fake, rig, remove, isListed };
}

describe('a removal with `provider: true`', () => {
  test('removes the address from both lists, and one audit log entry states both', async () => {
    const { fake, rig, remove, isListed } = await startFixture();
    await rig.performSuccessfully(addSuppression, SUPPRESSION);
    fake.suppressionReasons.set(SUPPRESSION.address, 'BOUNCE').set('other@example.com', 'BOUNCE');
    expect(await remove()).toMatchObject({ ok: true, value: { removed: true, provider: 'removed' } });
    expect([await isListed(), [...fake.suppressionReasons.keys()]]).toEqual([false, ['other@example.com']]);
    const [entry] = await rig.store.listAudit(null, 1);
    expect(entry).toMatchObject({ action: 'suppression.remove', target: 'acme' });
    expect(JSON.parse(entry?.before ?? '')).toEqual({ address: SUPPRESSION.address, provider: 'ses' });
  });

  test('removes the address from the list of the provider in the letter case in which the operator entered it', async () => {
    const { fake, remove } = await startFixture();
    fake.suppressionReasons.set('Ada.Lovelace@example.com', 'BOUNCE');
    const result = await remove({ address: 'Ada.Lovelace@Example.com' });
    expect(result).toMatchObject({ ok: true, value: { address: 'ada.lovelace@example.com', provider: 'removed' } });
    expect(fake.suppressionReasons.size).toBe(0);
  });

  test('if the provider fails, the address stays on both lists, and a repetition completes the removal', async () => {
    const { fake, rig, remove, isListed } = await startFixture();
    await rig.performSuccessfully(addSuppression, SUPPRESSION);
    fake.suppressionReasons.set(SUPPRESSION.address, 'BOUNCE');
    fake.suppressionList = 'disconnect';
    expect(await remove()).toMatchObject({ ok: false, error: { code: 'unavailable' } });
    expect(await isListed()).toBe(true);
    fake.suppressionList = 'accept';
    expect(await remove()).toMatchObject({ ok: true, value: { removed: true, provider: 'removed' } });
    expect(await isListed()).toBe(false);
  });

  test('if the store fails after the removal at the provider, a repetition completes the removal with its audit log entry', async () => {
    const { fake, rig, remove, isListed } = await startFixture();
    await rig.performSuccessfully(addSuppression, SUPPRESSION);
    fake.suppressionReasons.set(SUPPRESSION.address, 'BOUNCE');
    const { store } = rig.context;
    const failure = vi.spyOn(store, 'removeSuppression').mockImplementationOnce(async () => {
      throw Object.assign(new Error('the database does not answer'), { name: 'StoreError' });
    });
    expect(await remove()).toMatchObject({ ok: false, error: { code: 'unavailable' } });
    expect([await isListed(), fake.suppressionReasons.size]).toEqual([true, 0]);
    failure.mockRestore();
    expect(await remove()).toMatchObject({ ok: true, value: { removed: true, provider: 'absent' } });
    expect(await rig.listAudit()).toContain('cli:tester suppression.remove acme');
    expect(await isListed()).toBe(false);
  });

  test('a missing permission is a conflict that names the permission', async () => {
    const { fake, rig, remove, isListed } = await startFixture();
    await rig.performSuccessfully(addSuppression, SUPPRESSION);
    fake.suppressionList = createErrorAnswer(403, 'AccessDeniedException', 'User is not authorized');
    const result = await remove();
    expect(result).toMatchObject({ ok: false, error: { code: 'conflict' } });
    expect(JSON.stringify(result)).toContain('ses:DeleteSuppressedDestination');
    expect(await isListed()).toBe(true);
  });
});

describe('the SMTP interface of Amazon SES', () => {
  const RELAY = 'smtp://user:password@email-smtp.eu-west-1.amazonaws.com:587?tls=required';

  test('without credentials of the API, the removal is a conflict and nothing changes', async () => {
    const { rig, remove, isListed } = await startFixture(() => RELAY);
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, undefined);
    for (const name of ['HOME', 'AWS_SHARED_CREDENTIALS_FILE', 'AWS_CONFIG_FILE']) vi.stubEnv(name, '/nonexistent');
    await rig.performSuccessfully(addSuppression, SUPPRESSION);
    expect(await remove()).toMatchObject({ ok: false, error: { code: 'conflict' } });
    expect(await isListed()).toBe(true);
  });
});
