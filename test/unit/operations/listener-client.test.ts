import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createListenerClient } from '../../../src/operations/listener-client.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { getCertificate } from '../../rig/smtp-certificate.ts';

/** Responds with the request line, the Authorization header and the body of the request. */
const echoRequest: RequestListener = async (request, response) => {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  response.writeHead(201, { 'Postrider-Test': 'a' });
  response.end(`${request.method} ${request.url} ${request.headers.authorization} ${body}`);
};

async function startListening(server: Server, target: { port: number; host: string } | string): Promise<number> {
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  await new Promise<void>((resolve) => server.listen(target, resolve));
  return typeof target === 'string' ? 0 : (server.address() as AddressInfo).port;
}

const HEADERS = [{ name: 'Authorization', value: 'pr_x' }];
const EXPECTED_RESPONSE = { status: 201, body: 'POST /api/v1/send-mail pr_x {"a":"é"}' };

test('a request reaches a listener that listens on all addresses of this machine, and the headers of the response are returned', async () => {
  const port = await startListening(createServer(echoRequest), { port: 0, host: '0.0.0.0' });
  const client = createListenerClient(() => `http://0.0.0.0:${port}`, null);
  expect(client.getUrl()).toBe(`http://0.0.0.0:${port}/api/v1/send-mail`);
  const response = await client.post(HEADERS, '{"a":"é"}');
  expect(response).toMatchObject(EXPECTED_RESPONSE);
  expect(response.headers).toContainEqual({ name: 'Postrider-Test', value: 'a' });
});

test('a request reaches a listener on a unix socket', async () => {
  const path = join(createTemporaryFolder(), 'api.sock');
  await startListening(createServer(echoRequest), path);
  const client = createListenerClient(() => `unix:${path}`, null);
  expect(client.getUrl()).toBe(`unix:${path}`);
  expect(await client.post(HEADERS, '{"a":"é"}')).toMatchObject(EXPECTED_RESPONSE);
});

test('over TLS, only the certificate of the listener is accepted, for any host name', async () => {
  const folder = createTemporaryFolder();
  const [listenerCertificate, otherCertificate] = await Promise.all([
    getCertificate('mail.example'),
    getCertificate('other.example'),
  ]);
  const writeCertificate = (name: string, pem: string | Buffer) => {
    const certPath = join(folder, name);
    writeFileSync(certPath, pem);
    return { certPath, keyPath: certPath };
  };
  const port = await startListening(createTlsServer(listenerCertificate, echoRequest), { port: 0, host: '127.0.0.1' });
  const getUrl = () => `https://127.0.0.1:${port}`;
  const client = createListenerClient(getUrl, writeCertificate('used.pem', listenerCertificate.cert));
  expect(await client.post(HEADERS, '{"a":"é"}')).toMatchObject(EXPECTED_RESPONSE);
  const otherClient = createListenerClient(getUrl, writeCertificate('other.pem', otherCertificate.cert));
  await expect(otherClient.post(HEADERS, '{}')).rejects.toThrow();
});

test('without a listener there is no URL, and a request fails', async () => {
  const client = createListenerClient(() => null, null);
  expect(client.getUrl()).toBeNull();
  await expect(client.post([], '{}')).rejects.toThrow('this process has no public listener');
});
