/** Tests `doctor` as a process: the exit code, the printed lines, and that it changes nothing. */
import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeDns, startDns } from '../rig/dns.ts';
import { runCommand } from '../rig/service.ts';
import { type RealSmtpServer, startSmtpServer } from '../rig/smtp-server.ts';
import { createScenario } from './running-service.ts';

const rig = createScenario();
let dns: FakeDns;
let relay: RealSmtpServer;
beforeAll(async () => {
  dns = await startDns({
    'out.example.org': { A: ['192.0.2.7'] },
    '7.2.0.192.in-addr.arpa': { PTR: ['out.example.org'] },
  });
  relay = await startSmtpServer();
});
afterAll(() => Promise.all([dns.close(), relay.close()]));

/** On a busy machine, a synced write of more than one second causes a warning. */
const SYNCED_WRITE = expect.stringMatching(/^(ok|warning)$/);

interface Finding {
  readonly check: string;
  readonly result: string;
}

function readResults(stdout: string): Record<string, string> {
  return Object.fromEntries((JSON.parse(stdout) as Finding[]).map(({ check, result }) => [check, result]));
}

test('before the first start, no check of doctor fails, and doctor creates no file', async () => {
  const folder = rig.createFolder();
  const { code, stdout, stderr } = await runCommand(folder, ['doctor', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(readResults(stdout)).toMatchObject({ database: SYNCED_WRITE, transport: 'ok' });
  expect(readdirSync(folder)).toEqual([]);
});

test('while the service runs, doctor runs every check and sends no message', async () => {
  const folder = rig.createFolder();
  const settings = {
    POSTRIDER_DNS: `127.0.0.1:${dns.port}`,
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?name=out.example.org`,
  };
  await rig.serve(folder, settings);
  const { code, stdout, stderr } = await runCommand(folder, ['doctor', '--json'], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(readResults(stdout)).toMatchObject({
    ...{ database: SYNCED_WRITE, clock: 'ok', transport: 'ok' },
    'host name': 'ok',
  });
  expect(relay.receivedMessages).toEqual([]);
});

test('if the relay does not answer, doctor prints the remedy in plain lines and ends with exit code 1', async () => {
  const settings = {
    POSTRIDER_TRANSPORT: 'smtp://postrider:secret-word@127.0.0.1:1',
    POSTRIDER_DNS: `127.0.0.1:${dns.port}`,
  };
  const { code, stdout, stderr } = await runCommand(rig.createFolder(), ['doctor'], settings);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^postrider: 1 of \d checks failed: transport\n$/);
  expect(stdout).toMatch(/^failure {2}transport +127.0.0.1:1 refused the connection/m);
  expect(stdout).toMatch(/^ +→ check 127.0.0.1:1 in POSTRIDER_TRANSPORT/m);
  for (const forbiddenText of ['\u001b', 'secret-word']) expect(stdout + stderr).not.toContain(forbiddenText);
});
