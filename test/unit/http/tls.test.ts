import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ListenerOptions } from '../../../src/http/listener.ts';
import { watchCertificate } from '../../../src/http/tls.ts';
import { KEY, LISTENER_SETTINGS, MESSAGE, type Rig, startRig, waitUntil } from './rig.ts';

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

const createOptions = (): Partial<ListenerOptions> => ({
  settings: { ...LISTENER_SETTINGS, tls: { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') } },
  limits: { certificatePollMs: 10 },
});

function readCertificateName(port: number, maxVersion: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.3'): Promise<string> {
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

function postOverHttps(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const clientRequest = httpsRequest(
      {
        port,
        host: '127.0.0.1',
        path: '/api/v1/send-mail',
        method: 'POST',
        rejectUnauthorized: false,
        agent: false,
        headers: { Authorization: KEY, 'Content-Type': 'application/json' },
      },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    clientRequest.on('error', reject);
    clientRequest.end(JSON.stringify(MESSAGE));
  });
}

test('the listener supports TLS 1.2 and later, loads a new certificate, and keeps the previous one while the new one is invalid or unreadable, which is reported once', async () => {
  await writePair('first');
  rig = await startRig(createOptions());
  const { address: listenAddress, recordedEvents } = rig;
  expect(listenAddress.url).toBe(`https://127.0.0.1:${listenAddress.port}`);
  expect(await postOverHttps(listenAddress.port)).toBe(201);
  expect(await readCertificateName(listenAddress.port)).toBe('first');
  expect(await readCertificateName(listenAddress.port, 'TLSv1.2')).toBe('first');
  expect(await readCertificateName(listenAddress.port, 'TLSv1.1')).not.toBe('first');

  await writePair('second');
  await waitUntil(() => recordedEvents.certificateFaults.length > 0);
  expect(recordedEvents.certificateFaults).toEqual([null]);
  expect(await readCertificateName(listenAddress.port)).toBe('second');
  expect(await readCertificateName(listenAddress.port, 'TLSv1.1')).not.toBe('second');

  writeFileSync(join(folder, 'key.pem'), 'no key');
  await waitUntil(() => recordedEvents.certificateFaults.length > 1);
  expect(recordedEvents.certificateFaults[1]).toMatch(/^POSTRIDER_TLS_KEY .*key\.pem: not a valid PEM private key/);
  expect(await readCertificateName(listenAddress.port)).toBe('second');
  expect(await postOverHttps(listenAddress.port)).toBe(201);

  rmSync(join(folder, 'cert.pem'));
  symlinkSync('cert.pem', join(folder, 'cert.pem'));
  await waitUntil(() => recordedEvents.certificateFaults.length > 2);
  expect(recordedEvents.certificateFaults[2]).toMatch(/^POSTRIDER_TLS_CERT: cannot read .*cert\.pem \(ELOOP/);
  expect(await postOverHttps(listenAddress.port)).toBe(201);
  expect(recordedEvents.certificateFaults).toHaveLength(3);
  rmSync(join(folder, 'cert.pem'));

  await writePair('third');
  await waitUntil(() => recordedEvents.certificateFaults.at(-1) === null);
  expect(await readCertificateName(listenAddress.port)).toBe('third');
});

test('an invalid certificate or key causes a one-line error at start', async () => {
  await expect(startRig(createOptions())).rejects.toThrow(/^POSTRIDER_TLS_CERT: cannot read .*cert\.pem \(ENOENT/);
  await writePair('one');
  writeFileSync(join(folder, 'cert.pem'), 'no certificate');
  await expect(startRig(createOptions())).rejects.toThrow(
    /^POSTRIDER_TLS_CERT .*cert\.pem: not a valid PEM certificate/,
  );
  await writePair('one');
  const otherPair = await generate([{ name: 'commonName', value: 'other' }], { keySize: 2048 });
  writeFileSync(join(folder, 'key.pem'), otherPair.private);
  await expect(startRig(createOptions())).rejects.toThrow(
    /^POSTRIDER_TLS_KEY .*: not a valid PEM private key for .*cert\.pem/,
  );
});

test('a partial renewal is never loaded: changed files are loaded only after a check that finds no further change', async () => {
  await writePair('first');
  const paths = { certPath: join(folder, 'cert.pem'), keyPath: join(folder, 'key.pem') };
  let runCheck = (): void => {};
  const calls: string[] = [];
  const stopWatching = watchCertificate(
    paths,
    1000,
    {
      now: () => 0,
      after: (_delayMs, run) => {
        runCheck = run;
        return () => calls.push('stopped');
      },
    },
    () => calls.push('pair'),
    (fault) => calls.push(fault),
  );
  const secondPair = await generate([{ name: 'commonName', value: 'second' }], { keySize: 2048 });
  writeFileSync(paths.certPath, secondPair.cert);
  runCheck();
  writeFileSync(paths.keyPath, secondPair.private);
  runCheck();
  expect(calls).toEqual([]);
  runCheck();
  runCheck();
  expect(calls).toEqual(['pair']);
  stopWatching();
  expect(calls).toEqual(['pair', 'stopped']);
});

test('a connection with an incomplete TLS handshake does not delay the drain of the listener', async () => {
  await writePair('old.example');
  const { address, listener } = await startRig(createOptions());
  const socket = connectTcp(address.port, '127.0.0.1');
  socket.on('error', () => undefined);
  const closeEvent = once(socket, 'close');
  // The first bytes of a TLS record; the handshake remains incomplete.
  await new Promise<void>((resolve) => socket.write(Buffer.from('1603010200', 'hex'), () => resolve()));
  // The handshake of a second connection shows that the listener has accepted the first connection.
  expect(await readCertificateName(address.port)).toBe('old.example');
  const startedAt = performance.now();
  await listener.drain(0);
  // Without the drain, the handshake would time out after `headersTimeoutMs`, 10 s.
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  await closeEvent;
});
