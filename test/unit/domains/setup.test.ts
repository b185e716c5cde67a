import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import { deriveKey, loadOrCreateSecret, seal } from '../../../src/domains/secret.ts';
import { checkSecret, getSendingSetup, listOtherRoutes } from '../../../src/domains/setup.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createDkimKey, createSendingDomain } from './sending-domain.ts';

function createInstallation() {
  const folder = createTemporaryFolder();
  const path = join(folder, 'secret');
  const database = { kind: 'sqlite', path: join(folder, 'postrider.db') } as const;
  const key = deriveKey(loadOrCreateSecret(path), 'dkim');
  const sealedKey = seal(key, Buffer.from('private'), 'dkim:example.org:s');
  const store = {
    listDomains: async () => [createSendingDomain({ keys: [createDkimKey({ selector: 's', sealed: sealedKey })] })],
  };
  return { path, database, store };
}

test('a lost secret is not replaced while keys are sealed with it, and the error contains the remedy', async () => {
  const { path, database, store } = createInstallation();
  await checkSecret({ secret: null, database }, store);
  rmSync(path);
  await expect(checkSecret({ secret: null, database }, store)).rejects.toThrow(
    /secret is missing.*restore it from a backup, or set POSTRIDER_SECRET.*domain remove/,
  );
  expect(existsSync(path)).toBe(false);
});

test('the error for a wrong secret names the file or the setting that contains the secret', async () => {
  const { path, database, store } = createInstallation();
  await expect(checkSecret({ secret: 'ab'.repeat(32), database }, store)).rejects.toThrow(
    /^POSTRIDER_SECRET is not the secret that the stored DKIM keys were encrypted with; restore/,
  );
  rmSync(path);
  loadOrCreateSecret(path);
  await expect(checkSecret({ secret: null, database }, store)).rejects.toThrow(`the secret file ${path} is not`);
});

test('without stored keys any secret is accepted, and no file is created', async () => {
  const { path, database } = createInstallation();
  rmSync(path);
  await checkSecret({ secret: null, database }, { listDomains: async () => [] });
  expect(existsSync(path)).toBe(false);
});

test('events of a provider are not about routes of another known provider, as long as a route has the provider', () => {
  const { routes } = loadSettings(
    {
      POSTRIDER_TRANSPORT: 'smtp://smtp.postmarkapp.com',
      POSTRIDER_ROUTE_A: 'smtp://smtp.mailgun.org',
      POSTRIDER_ROUTE_B: 'ses://eu-west-1',
      POSTRIDER_ROUTE_C: 'smtp://smarthost.example.org',
    },
    null,
  );
  expect(listOtherRoutes(routes, 'postmark')).toEqual(['a', 'b']);
  expect(listOtherRoutes(routes, 'sqs')).toEqual(['default', 'a']);
  expect(listOtherRoutes(routes, 'smtp')).toBeUndefined();
  // A route had it before its setting was changed.
  expect(listOtherRoutes(routes, 'sendgrid')).toBeUndefined();
});

test('the records of a domain suit every route that sends: one SPF record, and a return path unless each provider replaces it', () => {
  const readSetup = (...transports: readonly string[]) => {
    const routes = transports.map((transport, index) => [`POSTRIDER_ROUTE_R${index}`, transport]);
    const { spf, returnPath, replacedBy } = getSendingSetup(
      loadSettings({ POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org', ...Object.fromEntries(routes) }, null),
    );
    return { spf, returnPath, replacedBy };
  };
  const [mailgun, ses, postmark] = ['smtp://smtp.mailgun.org', 'ses://eu-west-1', 'smtp://smtp.postmarkapp.com'];
  const returnPath = 'bounces.example.org';
  expect(readSetup(mailgun, ses, mailgun)).toEqual({
    ...{ spf: 'v=spf1 include:mailgun.org include:amazonses.com ~all', returnPath, replacedBy: null },
  });
  expect(readSetup('smtp://mail.example.org', ses).spf).toBe('v=spf1 a:mail.example.org include:amazonses.com ?all');
  expect(readSetup(postmark)).toEqual({ spf: null, returnPath: null, replacedBy: 'Postmark' });
  expect(readSetup(postmark, ses)).toMatchObject({ returnPath: null, replacedBy: 'Postmark and Amazon SES' });
  expect(readSetup()).toEqual({ spf: 'v=spf1 ?all', returnPath, replacedBy: null });
});
