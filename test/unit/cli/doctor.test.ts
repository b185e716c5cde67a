import { describe, expect, it, onTestFinished, test } from 'vitest';
import { formatFindings } from '../../../src/cli/installation.ts';
import { systemClock } from '../../../src/clock.ts';
import type { SmtpSetting } from '../../../src/transports/smtp/connection.ts';
import { probeRelay, type RelayProbe } from '../../../src/transports/smtp/probe.ts';
import { startDns } from '../../rig/dns.ts';
import { getCertificate } from '../../rig/smtp-certificate.ts';
import { createSmtpSetting } from '../../rig/smtp-message.ts';
import { type Script, type SmtpPeer, startSmtpPeer } from '../../rig/smtp-peer.ts';
import { startSmtpServer } from '../../rig/smtp-server.ts';
import { createCommandRig } from './command-rig.ts';

interface Finding {
  readonly check: string;
  readonly result: string;
  readonly detail: string;
  readonly remedy: string | null;
}

const getResultByCheck = (findings: readonly Finding[]) =>
  Object.fromEntries(findings.map(({ check, result }) => [check, result]));

describe('doctor', () => {
  it('checks relay, host name, return path and each domain, and names the failed checks', async () => {
    const dns = await startDns({
      'out.example.org': { A: ['192.0.2.7'] },
      '7.2.0.192.in-addr.arpa': { PTR: ['out.example.org'] },
      'bounces.example.org': { MX: [[10, 'in.example.org']] },
      'in.example.org': { A: ['192.0.2.8'] },
    });
    onTestFinished(() => dns.close());
    const relay = await startSmtpServer();
    onTestFinished(() => relay.close());
    const rig = await createCommandRig({
      POSTRIDER_DNS: `127.0.0.1:${dns.port}`,
      POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${relay.port}?name=out.example.org`,
      POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org',
    });
    await rig.runJson('domain', 'add', 'acme', 'example.org');
    const output = await rig.run('doctor', '--json');
    expect({ code: output.code, stderr: output.stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^1 of \d+ checks failed: domain example\.org$/),
    });
    expect(getResultByCheck(JSON.parse(output.stdout) as Finding[])).toMatchObject({
      transport: 'ok',
      'host name': 'ok',
      'return path': 'ok',
      'domain example.org': 'failure',
    });
    expect(relay.receivedMessages).toEqual([]);
  });

  it('prints one aligned line for each finding and its remedy on the next line, without color in a pipe', () => {
    const text = formatFindings([
      { check: 'clock', result: 'ok', detail: 'it runs', remedy: null },
      { check: 'transport', result: 'failure', detail: 'no\u001b[31m answer', remedy: 'retry' },
    ]);
    expect(text).toBe(
      [
        'ok       clock      it runs',
        'failure  transport  no\uFFFD[31m answer',
        '                    → retry',
        '',
        '2 checks: 1 ok, 0 warnings, 1 failure',
        '',
      ].join('\n'),
    );
  });
});

describe('the probe of the relay', () => {
  const createSetting = (port: number, change: Partial<SmtpSetting> = {}) =>
    createSmtpSetting(port, { tls: 'offered', ...change });

  async function runProbe(
    script: Script,
    change: Partial<SmtpSetting> = {},
    timeoutMs = 10_000,
  ): Promise<{ probe: RelayProbe; peer: SmtpPeer }> {
    const peer = await startSmtpPeer(script);
    onTestFinished(() => peer.close());
    return { probe: await probeRelay(createSetting(peer.port, change), systemClock, timeoutMs), peer };
  }

  test('sends EHLO, NOOP and QUIT, and returns the greeting', async () => {
    const probeRun = await runProbe(async (wire) => {
      await wire.greet();
      await wire.answerCommand('NOOP', '250 Ok');
      await wire.answerCommand('QUIT', '221 bye');
    });
    expect(probeRun.peer.commands).toEqual(['EHLO client.example', 'NOOP', 'QUIT']);
    expect(probeRun.probe.session).toMatchObject({
      kind: 'ready',
      secure: false,
      loopback: true,
      fellBackToClearText: false,
    });
    expect(probeRun.probe.greeting?.text).toBe('220 peer.example ESMTP');
  });

  test('uses STARTTLS and AUTH, and its transcript contains no password', async () => {
    const certificate = await getCertificate();
    const probeRun = await runProbe(
      async (wire) => {
        await wire.greet(['peer.example', 'STARTTLS']);
        await wire.answerCommand('STARTTLS', '220 go on');
        await wire.startTls(certificate);
        await wire.answerEhlo(['peer.example', 'AUTH PLAIN']);
        await wire.answerCommand('AUTH PLAIN', '535 5.7.8 no such user');
      },
      { tls: 'required', verifyCertificate: false, auth: { user: 'postrider', pass: 'secret-word' } },
    );
    expect(probeRun.probe.session).toEqual({
      kind: 'failed',
      stage: 'auth',
      code: 535,
      text: `127.0.0.1:${probeRun.peer.port} answered 535 5.7.8 no such user`,
    });
    expect(JSON.stringify(probeRun.probe)).not.toContain('secret-word');
  });

  test('falls back to clear text after a failed TLS handshake, as the transport does, and reports the fallback', async () => {
    const probeRun = await runProbe(async (wire, connection) => {
      await wire.greet(['peer.example', 'STARTTLS']);
      if (connection === 1) {
        await wire.answerCommand('STARTTLS', '220 go on');
        wire.write('this is not a TLS record\r\n');
        return wire.waitForClose();
      }
      await wire.answerCommand('NOOP', '250 Ok');
      await wire.answerCommand('QUIT', '221 bye');
    });
    expect(probeRun.probe.session).toMatchObject({ kind: 'ready', secure: false, fellBackToClearText: true });
  });

  test.each([
    ['rejects the client in its greeting', async (wire) => wire.writeLines('554 5.7.1 go away'), 'greeting'],
    ['sends nothing', (wire) => wire.waitForClose(), 'greeting'],
    [
      'ends the session in its reply to NOOP',
      async (wire) => {
        await wire.greet();
        await wire.answerCommand('NOOP', '421 4.3.2 shutting down');
      },
      'noop',
    ],
  ] satisfies [string, Script, string][])(
    'a session with a relay that %s fails within the time limit',
    async (_name, script, stage) => {
      const probeRun = await runProbe(script, {}, 1_000);
      expect(probeRun.probe.session).toMatchObject({ kind: 'failed', stage });
    },
  );
});
