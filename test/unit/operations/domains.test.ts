import { createPrivateKey, createPublicKey } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { DomainDetails } from '../../../src/operations/domain-details.ts';
import {
  addDomain,
  listDomains,
  removeDomain,
  rotateDomain,
  setDomain,
  showDomain,
  verifyDomain,
} from '../../../src/operations/domains.ts';
import { perform } from '../../../src/operations/operation.ts';
import { createOperationRig, createRigWithDns, startSes } from './operation-rig.ts';

const domain = 'example.org';

test('a domain is added, verified, rotated, changed and removed, and each change is in the audit log once', async () => {
  const { rig, publishRecords } = await createRigWithDns();
  const addedDomain = await rig.performSuccessfully(addDomain, {
    account: 'acme',
    domain: 'Example.ORG.',
    subdomains: true,
  });
  expect(addedDomain).toMatchObject({ domain, account: 'acme', status: 'pending', subdomains: true, sends: false });
  expect(addedDomain.keys.map(({ algorithm, state }) => [algorithm, state])).toEqual([
    ['rsa', 'active'],
    ['ed25519', 'active'],
  ]);
  publishRecords(addedDomain);
  const verifiedDomain = await rig.performSuccessfully(verifyDomain, { domain });
  expect(verifiedDomain).toMatchObject({ status: 'authenticated', change: 'authenticated', fault: null, sends: true });
  const rotatedDomain = await rig.performSuccessfully(rotateDomain, { domain });
  expect([rotatedDomain.keys.length, rotatedDomain.removedRecords]).toEqual([4, []]);
  const cancelledRotation = await rig.performSuccessfully(rotateDomain, { domain, cancel: true });
  const stagedNames = rotatedDomain.records.filter(({ key }) => key === 'staged').map(({ name }) => name);
  expect([cancelledRotation.keys.length, cancelledRotation.removedRecords]).toEqual([2, stagedNames]);
  expect(await rig.performSuccessfully(setDomain, { domain, subdomains: false })).toMatchObject({ subdomains: false });
  const shownDomain = await rig.performSuccessfully(showDomain, { domain });
  expect(await rig.performSuccessfully(listDomains, {})).toEqual([shownDomain]);
  expect(shownDomain.records.map(({ found }) => found)).toEqual(['found', 'found', 'found', 'found']);
  const dkim = addedDomain.records.filter(({ purpose }) => purpose === 'dkim').map(({ name }) => name);
  expect(await rig.performSuccessfully(removeDomain, { domain })).toMatchObject({
    status: 'removed',
    removedRecords: dkim,
    keepRecordsUntil: null,
    remainingIdentity: null,
  });
  expect(await rig.performSuccessfully(listDomains, {})).toEqual([]);
  expect(await rig.listAudit()).toEqual(
    ['add', 'update', 'update', 'update', 'set', 'remove'].map((verb) => `cli:tester domain.${verb} ${domain}`),
  );
});

describe('a return path', () => {
  const LISTENER = {
    POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.host.example',
    POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:2525',
    POSTRIDER_TRANSPORT: 'smtp://mail.host.example',
  };
  const name = 'bounces.example.org';

  test('is refused with a reason if bounces would be lost, SPF would not align or the name is in use', async () => {
    const rig = await createOperationRig(LISTENER);
    await rig.performSuccessfully(addDomain, { account: 'acme', domain });
    await rig.performSuccessfully(addDomain, { account: 'acme', domain: 'shop.example.org' });
    const getFault = async (input: Readonly<Record<string, unknown>>, { perform: run } = rig) => {
      const performResult = (await run(setDomain, { domain, ...input })) as {
        readonly error?: { readonly code: string; readonly field: string | null; readonly message: string };
      };
      expect(performResult.error?.message).not.toContain('\n');
      return [performResult.error?.code, performResult.error?.field];
    };
    expect(await getFault({})).toEqual(['invalid', null]);
    expect(await getFault({ returnPath: 'bounces.example.net' })).toEqual(['invalid', 'returnPath']);
    expect(await getFault({ returnPath: domain })).toEqual(['invalid', 'returnPath']);
    expect(await getFault({ returnPath: 'shop.example.org' })).toEqual(['conflict', 'returnPath']);
    expect(await getFault({ domain: 'unknown.example', returnPath: 'b.unknown.example' })).toEqual([
      ...['not-found', 'domain'],
    ]);
    await rig.performSuccessfully(setDomain, { domain, returnPath: name });
    expect(await getFault({ domain: 'shop.example.org', returnPath: name })).toEqual(['conflict', 'returnPath']);
    expect(await rig.perform(addDomain, { account: 'acme', domain: name })).toMatchObject({
      error: { code: 'conflict', field: 'domain' },
    });
    const { POSTRIDER_FEEDBACK_LISTEN: _listen, ...withoutListener } = LISTENER;
    for (const settings of [withoutListener, { POSTRIDER_TRANSPORT: LISTENER.POSTRIDER_TRANSPORT }]) {
      const otherRig = await createOperationRig(settings);
      await otherRig.performSuccessfully(addDomain, { account: 'acme', domain });
      expect(await getFault({ returnPath: name }, otherRig)).toEqual(['conflict', 'returnPath']);
      expect(await otherRig.performSuccessfully(setDomain, { domain, returnPath: 'none' })).toMatchObject({
        returnPath: null,
      });
    }
  });

  test('causes a warning and needs no records if the provider replaces the envelope sender', async () => {
    const rig = await createOperationRig({ ...LISTENER, POSTRIDER_TRANSPORT: 'smtp://smtp.postmarkapp.com' });
    await rig.performSuccessfully(addDomain, { account: 'acme', domain });
    expect(await rig.perform(setDomain, { domain, returnPath: name })).toMatchObject({
      ok: true,
      warnings: [{ code: 'return-path-replaced', message: expect.stringContaining('Postmark replaces') }],
    });
    const domainDetails = await rig.performSuccessfully(showDomain, { domain });
    expect(domainDetails.returnPath).toMatchObject({ name, state: 'replaced' });
    // The provider sends from its own domain, so the domain needs no SPF record.
    expect(domainDetails.records.map(({ purpose }) => purpose)).toEqual(['dkim', 'dkim', 'dmarc']);
  });
});

describe('an operation that fails has a code and changes nothing', () => {
  test('adding fails for a public suffix, an unknown account, Easy DKIM without Amazon SES, and an existing domain', async () => {
    const rig = await createOperationRig();
    const getFault = async (input: Readonly<Record<string, unknown>>) => {
      const { error } = (await rig.perform(addDomain, { account: 'acme', domain, ...input })) as {
        readonly error?: { readonly code: string; readonly field: string | null };
      };
      return [error?.code, error?.field];
    };
    expect(await getFault({ domain: 'co.uk' })).toEqual(['invalid', 'domain']);
    expect(await getFault({ easyDkim: true })).toEqual(['invalid', 'easyDkim']);
    expect(await getFault({ account: 'unknown' })).toEqual(['not-found', 'account']);
    expect(await rig.listAudit()).toEqual([]);
    await rig.performSuccessfully(addDomain, { account: 'acme', domain, ed25519: false });
    expect(await getFault({})).toEqual(['conflict', 'domain']);
    expect(await rig.listAudit()).toEqual([`cli:tester domain.add ${domain}`]);
  });

  test('a concurrent change of a domain causes a conflict in a check or a rotation, but in no other operation', async () => {
    const { rig } = await createRigWithDns();
    await rig.performSuccessfully(addDomain, { account: 'acme', domain });
    const { store } = rig.context;
    let subdomains = false;
    const findDomain: typeof store.findDomain = async (name) => {
      const storedDomain = await store.findDomain(name);
      subdomains = !subdomains;
      await store.setDomain(name, { subdomains });
      return storedDomain;
    };
    const getErrorCode = async (operation: Parameters<typeof rig.perform>[0], input: object) => {
      const performResult = await perform(
        operation,
        { domain, ...input },
        { ...rig.context, store: { ...store, findDomain } },
      );
      if (performResult.ok) return 'ok';
      expect([...operation.errors, 'invalid', 'unavailable']).toContain(performResult.error.code);
      return performResult.error.code;
    };
    // A check stores the domain if DNS answers; a check without an answer stores nothing.
    expect(await getErrorCode(verifyDomain, {})).toBe('conflict');
    expect(await getErrorCode(rotateDomain, {})).toBe('conflict');
    expect(await getErrorCode(setDomain, { subdomains: true })).toBe('ok');
    expect(await getErrorCode(removeDomain, {})).toBe('ok');
    expect(await getErrorCode(removeDomain, {})).toBe('not-found');
  });

  test('a lost secret causes a conflict that states the remedy, and no key is created with a new secret', async () => {
    const rig = await createOperationRig();
    await rig.performSuccessfully(addDomain, { account: 'acme', domain });
    rmSync(join(rig.folder, 'secret'));
    const conflict = { error: { code: 'conflict', message: expect.stringContaining('restore it from a backup') } };
    expect(await rig.perform(addDomain, { account: 'acme', domain: 'example.net' })).toMatchObject(conflict);
    expect(await rig.perform(rotateDomain, { domain })).toMatchObject(conflict);
    expect(await rig.listAudit()).toEqual([`cli:tester domain.add ${domain}`]);
  });
});

describe('with Amazon SES', () => {
  async function withSes() {
    const ses = await startSes();
    return { ses, ...(await createRigWithDns({ POSTRIDER_TRANSPORT: `ses://eu-west-1?endpoint=${ses.endpoint}` })) };
  }

  test('the identity has the RSA key of the domain, its state is verified too, and a rotation replaces the key', async () => {
    const { ses, rig, dns, publishRecords } = await withSes();
    const findIdentityRecord = ({ records }: DomainDetails) => records.find(({ purpose }) => purpose === 'provider');
    const addedDomain = await rig.performSuccessfully(addDomain, { account: 'acme', domain });
    const identity = ses.identities.get(domain);
    const rsaRecord = addedDomain.records.find(({ value }) => value.includes('k=rsa'));
    expect(rsaRecord?.name).toBe(`${identity?.selector}._domainkey.${domain}`);
    const der = Buffer.from(identity?.privateKey ?? '', 'base64');
    const publicKey = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
    expect(rsaRecord?.value).toContain(publicKey.export({ format: 'der', type: 'spki' }).toString('base64'));
    publishRecords(addedDomain);
    const earlyResult = await rig.performSuccessfully(verifyDomain, { domain });
    expect([earlyResult.status, findIdentityRecord(earlyResult)?.found]).toEqual(['authenticated', 'wrong']);
    Object.assign(identity ?? {}, { isVerified: true, dkim: 'SUCCESS' });
    expect(findIdentityRecord(await rig.performSuccessfully(verifyDomain, { domain }))?.found).toBe('found');
    publishRecords(await rig.performSuccessfully(rotateDomain, { domain }));
    await rig.performSuccessfully(verifyDomain, { domain });
    const newSelector = ses.identities.get(domain)?.selector;
    expect(newSelector).not.toBe(identity?.selector);
    expect(dns.zone[`${newSelector}._domainkey.${domain}`]).toBeDefined();
  });

  test('an action that the provider did not perform causes a warning in the result', async () => {
    const { ses, rig } = await withSes();
    ses.identities.set(domain, {
      isVerified: true,
      dkim: 'SUCCESS',
      origin: 'EXTERNAL',
      tokens: ['corporate'],
      selector: 'corporate',
      privateKey: 'theirs',
    });
    const addResult = await rig.perform(addDomain, { account: 'acme', domain, easyDkim: true });
    expect(addResult).toMatchObject({ ok: true, warnings: [{ code: 'provider-key' }] });
    expect(await rig.performSuccessfully(removeDomain, { domain })).toMatchObject({ remainingIdentity: domain });
    const unreachableProvider = await createOperationRig({
      POSTRIDER_TRANSPORT: 'ses://eu-west-1?endpoint=http://127.0.0.1:1',
    });
    expect(await unreachableProvider.perform(addDomain, { account: 'acme', domain })).toMatchObject({
      ok: true,
      warnings: [{ code: 'provider-unknown' }],
    });
  });

  test('a look-alike name causes a warning in the result', async () => {
    const rig = await createOperationRig();
    expect(await rig.perform(addDomain, { account: 'acme', domain: 'pаypal.example' })).toMatchObject({
      ok: true,
      warnings: [{ code: 'look-alike' }],
    });
  });
});
