/** Tests HTTPS with certificate files: a renewed certificate is used without a restart. */
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { getCertificate } from '../rig/smtp-certificate.ts';
import { createScenario, readMessageId } from './running-service.ts';

const rig = createScenario();

async function renewCertificate(folder: string, name: string): Promise<void> {
  const { cert, key } = await getCertificate(name);
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 });
}

function postMessage(url: string, key: string): Promise<{ status: number; text: string }> {
  const options = {
    method: 'POST',
    agent: false,
    rejectUnauthorized: false,
    headers: { Authorization: key, 'Content-Type': 'application/json' },
  };
  return new Promise((resolve, reject) => {
    const outgoingRequest = request(`${url}/api/v1/send-mail`, options, (incoming) => {
      let text = '';
      incoming.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }));
    });
    outgoingRequest.on('error', reject);
    outgoingRequest.end(JSON.stringify({ to: 'a@example.com', from: 'b@example.org', subject: 's', message: 'm' }));
  });
}

function readCommonName(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

test('the public listener uses HTTPS, `serve` prints a curl command with an HTTPS URL, and a new certificate is used without a restart', async () => {
  const folder = rig.createFolder();
  await renewCertificate(folder, 'first.example');
  const service = await rig.serveWithBanner(folder, { POSTRIDER_TLS_CERT: 'cert.pem', POSTRIDER_TLS_KEY: 'key.pem' });
  expect(service.banner).toMatch(/curl -ik https:\/\/127\.0\.0\.1:\d+\/api\/v1\/send-mail /);
  const answer = await postMessage(service.publicUrl, service.key);
  expect(answer.status).toBe(201);
  readMessageId(answer.text);
  await expect(fetch(service.publicUrl.replace('https:', 'http:'))).rejects.toThrow();
  expect(await readCommonName(service.publicUrl)).toBe('first.example');
  await renewCertificate(folder, 'second.example');
  await expect.poll(() => readCommonName(service.publicUrl), { interval: 100 }).toBe('second.example');
  expect((await postMessage(service.publicUrl, service.key)).status).toBe(201);
  expect(await service.stop()).toBe(0);
});
