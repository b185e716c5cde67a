import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ListenerOptions } from '../../../src/http/listener-options.ts';
import { watchCertificate } from '../../../src/http/tls.ts';
import { KEY, MAIL, type Rig, startRig, until } from './rig.ts';

let folder: string;
let rig: Rig | null = null;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postrider-tls-'));
});
afterEach(async () => {
  await rig?.listener.close();
  rig = null;
  rmSync(folder, { recursive: true, force: true });
});

async function writePair(name: string): Promise<void> {
  const pair = await generate([{ name: 'commonName', value: name }], { keySize: 2048 });
  writeFileSync(join(folder, 'cert.pem'), pair.cert);
  writeFileSync(join(folder, 'key.pem'), pair.private);
}

const options = (): Partial<ListenerOptions> => ({
  settings: {
    listen: { host: '127.0.0.1', port: 0 },
    tls: { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') },
    senders: 'any',
    transport: { kind: 'capture' },
    maxRequestBytes: 10_000,
    trustedProxies: [],
  },
  limits: { certificatePollMs: 10 },
});

/** The name on the certificate that a new connection gets, or the error that ended it. */
function presented(port: number, maxVersion: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.3'): Promise<string> {
  return new Promise((resolve) => {
    const socket: TLSSocket = connect(
      {
        port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
        minVersion: 'TLSv1.1',
        maxVersion,
        ciphers: 'DEFAULT@SECLEVEL=0',
      },
      () => {
        resolve(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      },
    );
    socket.on('error', (error) => resolve(error.message));
  });
}

function postOver(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const req = httpsRequest(
      {
        port,
        host: '127.0.0.1',
        path: '/api/v1/send-mail',
        method: 'POST',
        rejectUnauthorized: false,
        agent: false,
        headers: { Authorization: KEY, 'Content-Type': 'application/json' },
      },
      (res) => {
        res.resume();
        resolve(res.statusCode ?? 0);
      },
    );
    req.on('error', reject);
    req.end(JSON.stringify(MAIL));
  });
}

test('speaks HTTPS, TLS 1.2 and later; a new pair is taken over, a broken one is reported and the old one kept', async () => {
  await writePair('first');
  rig = await startRig(options());
  const { at, seen } = rig;
  expect(at.url).toBe(`https://127.0.0.1:${at.port}`);
  expect(await postOver(at.port)).toBe(201);
  expect(await presented(at.port)).toBe('first');
  expect(await presented(at.port, 'TLSv1.2')).toBe('first');
  expect(await presented(at.port, 'TLSv1.1')).not.toBe('first');

  await writePair('second');
  await until(() => seen.certificates.length > 0);
  expect(seen.certificates).toEqual([null]);
  expect(await presented(at.port)).toBe('second');
  expect(await presented(at.port, 'TLSv1.1')).not.toBe('second');

  writeFileSync(join(folder, 'key.pem'), 'no key');
  await until(() => seen.certificates.length > 1);
  expect(seen.certificates[1]).toMatch(/^POSTRIDER_TLS_KEY .*key\.pem: no usable PEM private key/);
  expect(await presented(at.port)).toBe('second');
  expect(await postOver(at.port)).toBe(201);

  rmSync(join(folder, 'cert.pem'));
  await until(() => seen.certificates.length > 2);
  expect(seen.certificates[2]).toMatch(/^POSTRIDER_TLS_CERT: cannot read /);

  await writePair('third');
  await until(() => seen.certificates.at(-1) === null);
  expect(await presented(at.port)).toBe('third');
});

test('a path that cannot be looked at is reported once and the old pair kept, until it can be again', async () => {
  await writePair('first');
  rig = await startRig(options());
  const { at, seen } = rig;
  rmSync(join(folder, 'cert.pem'));
  symlinkSync('cert.pem', join(folder, 'cert.pem'));
  await until(() => seen.certificates.length > 0);
  expect(seen.certificates[0]).toMatch(/^POSTRIDER_TLS_CERT: cannot read .*cert\.pem \(ELOOP/);
  expect(await presented(at.port)).toBe('first');
  expect(await postOver(at.port)).toBe(201);
  expect(seen.certificates).toHaveLength(1);
  rmSync(join(folder, 'cert.pem'));
  await writePair('second');
  await until(() => seen.certificates.at(-1) === null);
  expect(await presented(at.port)).toBe('second');
});

test('a pair that does not work stops the start with one clear line', async () => {
  await expect(startRig(options())).rejects.toThrow(/^POSTRIDER_TLS_CERT: cannot read .*cert\.pem \(ENOENT/);
  await writePair('one');
  writeFileSync(join(folder, 'cert.pem'), 'no certificate');
  await expect(startRig(options())).rejects.toThrow(/^POSTRIDER_TLS_CERT .*cert\.pem: no usable PEM certificate/);
  await writePair('one');
  const other = await generate([{ name: 'commonName', value: 'other' }], { keySize: 2048 });
  writeFileSync(join(folder, 'key.pem'), other.private);
  await expect(startRig(options())).rejects.toThrow(/^POSTRIDER_TLS_KEY .*: no usable PEM private key for .*cert\.pem/);
});

test('half a renewal is never loaded: files are taken when they have been quiet for one look', async () => {
  await writePair('first');
  const paths = { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') };
  let look = (): void => {};
  const told: string[] = [];
  const stop = watchCertificate(
    paths,
    1000,
    {
      now: () => 0,
      after: (_delayMs, run) => {
        look = run;
        return () => told.push('stopped');
      },
    },
    () => told.push('pair'),
    (fault) => told.push(fault),
  );
  const next = await generate([{ name: 'commonName', value: 'second' }], { keySize: 2048 });
  writeFileSync(paths.certPath, next.cert);
  look();
  writeFileSync(paths.keyPath, next.private);
  look();
  expect(told).toEqual([]);
  look();
  look();
  expect(told).toEqual(['pair']);
  stop();
  expect(told).toEqual(['pair', 'stopped']);
});
