/** The SMTP listener, spoken to line by line: whom it takes mail for, when it says 250, and what it does to who misbehaves. */
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createIntake } from '../../../src/feedback/intake.ts';
import { createSmtpListener, type FeedbackRefusal, MOST_BYTES } from '../../../src/feedback/smtp-listener.ts';
import { bind } from '../../../src/http/bind.ts';
import { returnPathToken } from '../../../src/message/return-path.ts';
import type { FeedbackAnswer, FeedbackReport } from '../../../src/store/feedback.ts';
import { certificateFor } from '../../rig/smtp-certificate.ts';
import { type SmtpDialog, smtpDialog } from '../../rig/smtp-dialog.ts';

const DOMAIN = 'bounces.example.org';
const KEY = Buffer.alloc(32, 3);
const ID = '0192a3b4-c5d6-7e8f-9012-3456789abcde';
const tokenOf = (id = ID, key = KEY, at = Date.now()) => `${returnPathToken(key, id, at)}@${DOMAIN}`;
const changed = (): string => {
  const token = tokenOf();
  return token.slice(0, 20) + (token[20] === 'a' ? 'b' : 'a') + token.slice(21);
};
const CASE = (name: string) =>
  readFileSync(new URL(`../../corpus/bounces/${name}.eml`, import.meta.url), 'latin1').replaceAll('\n', '\r\n');
const DSN = CASE('01-postfix-no-such-user');

interface Rig {
  readonly dialog: () => Promise<SmtpDialog>;
  readonly reports: FeedbackReport[];
  readonly refusals: FeedbackRefusal[];
  readonly faults: string[];
  readonly close: () => Promise<void>;
}

async function rig(
  record: (report: FeedbackReport) => Promise<FeedbackAnswer> = async () => ({
    kind: 'noted',
    id: ID,
    verb: 'x',
    suppressed: false,
  }),
  certificate: Parameters<typeof createSmtpListener>[0]['certificate'] = null,
): Promise<Rig> {
  const [reports, refusals, faults]: [FeedbackReport[], FeedbackRefusal[], string[]] = [[], [], []];
  const intake = createIntake({
    clock: systemClock,
    record: (report) => {
      reports.push(report);
      return record(report);
    },
    recorded: () => undefined,
  });
  const listener = createSmtpListener({
    at: { host: '127.0.0.1', port: 0 },
    bind,
    clock: systemClock,
    returnPath: { domain: DOMAIN, key: KEY },
    name: DOMAIN,
    certificate,
    take: intake.take,
    refused: (reason) => refusals.push(reason),
    failed: (what, error) => faults.push(`${what}: ${String(error)}`),
  });
  const { port } = await listener.start();
  const dialogs: SmtpDialog[] = [];
  const close = async () => {
    intake.close();
    for (const dialog of dialogs) dialog.close();
    await listener.close();
  };
  onTestFinished(close);
  const dialog = async () => {
    const made = await smtpDialog(port);
    dialogs.push(made);
    return made;
  };
  return { dialog, reports, refusals, faults, close };
}

describe('who is taken mail for', () => {
  test('a return path of our own: the report names its mail request, and what was read in it', async () => {
    const { dialog, reports, refusals } = await rig();
    const peer = await dialog();
    expect(await peer.send('', tokenOf(), DSN)).toMatch(/^250 /);
    expect(reports).toMatchObject([
      {
        about: { id: ID },
        source: 'smtp',
        last: false,
        summary: 'from <>: Undelivered mail',
        notices: [{ kind: 'bounce', permanent: true, mailboxMissing: true, recipient: 'ada@example.com' }],
      },
    ]);
    expect(refusals).toEqual([]);
  });

  test.each([
    ['a token with one character changed', changed, 550, 'unknown-recipient'],
    ['another installation’s token', (): string => tokenOf(ID, Buffer.alloc(32, 9)), 550, 'unknown-recipient'],
    ['an expired token', (): string => tokenOf(ID, KEY, Date.now() - 60 * 86_400_000), 550, 'expired-return-path'],
    ['a stranger', (): string => `ada@${DOMAIN}`, 550, 'unknown-recipient'],
    ['another domain', (): string => 'ada@example.com', 550, 'relay'],
  ] as const)('%s is refused at RCPT, and counted', async (_, address, code, reason) => {
    const { dialog, reports, refusals } = await rig();
    const peer = await dialog();
    await peer.say('MAIL FROM:<>');
    expect(await peer.say(`RCPT TO:<${address()}>`)).toMatch(new RegExp(`^${code} 5\\.`));
    expect(await peer.say('DATA')).toMatch(/^503 /);
    expect(refusals).toEqual([reason]);
    expect(reports).toEqual([]);
  });

  test('postmaster and abuse reach the operator, whoever writes', async () => {
    const { dialog, reports } = await rig();
    for (const to of ['postmaster', `Postmaster@${DOMAIN}`, `abuse@${DOMAIN}`]) {
      const peer = await dialog();
      expect(await peer.send('somebody@example.com', to, 'Subject: Hello\r\n\r\nWho are you?')).toMatch(/^250 /);
    }
    expect(reports.map(({ about, summary }) => [about, summary])).toEqual(
      Array.from({ length: 3 }, () => [null, 'from <somebody@example.com>: Hello']),
    );
  });

  test('a complaint to abuse is about the one message whose return path stands in it', async () => {
    const { dialog, reports } = await rig();
    const peer = await dialog();
    const report = CASE('26-arf-abuse').replace('<shop@example.org>', `<${tokenOf()}>`);
    expect(await peer.send('feedback@isp.example', `abuse@${DOMAIN}`, report)).toMatch(/^250 /);
    expect(await peer.send('feedback@isp.example', `abuse@${DOMAIN}`, CASE('26-arf-abuse'))).toMatch(/^250 /);
    expect(reports.map(({ about }) => about)).toEqual([{ id: ID }, null]);
  });

  test('one recipient at a time', async () => {
    const { dialog } = await rig();
    const peer = await dialog();
    await peer.say('MAIL FROM:<>');
    expect(await peer.say(`RCPT TO:<${tokenOf()}>`)).toMatch(/^250 /);
    expect(await peer.say(`RCPT TO:<abuse@${DOMAIN}>`)).toMatch(/^452 /);
  });

  test('somebody who guesses is sent away', async () => {
    const { dialog, refusals } = await rig();
    const peer = await dialog();
    await peer.say('MAIL FROM:<>');
    const answers: string[] = [];
    for (let n = 0; n < 10; n += 1) answers.push((await peer.say(`RCPT TO:<guess${n}@${DOMAIN}>`)).slice(0, 3));
    expect(answers).toEqual([...Array.from({ length: 9 }, () => '550'), '421']);
    expect(refusals).toHaveLength(10);
  });
});

describe('when it says 250', () => {
  test('only after the store has the report; where the store fails the peer keeps it', async () => {
    let commit: (answer: FeedbackAnswer) => void = () => undefined;
    let fail: (error: Error) => void = () => undefined;
    const { dialog, reports, refusals, faults } = await rig(
      () =>
        new Promise((resolve, reject) => {
          commit = resolve;
          fail = reject;
        }),
    );
    const peer = await dialog();
    let answer: string | null = null;
    const sent = peer.send('', tokenOf(), DSN).then((text) => {
      answer = text;
    });
    await expect.poll(() => reports.length).toBe(1);
    expect(answer).toBeNull();
    commit({ kind: 'repeated' });
    await sent;
    expect(answer).toMatch(/^250 /);
    const again = peer.send('', tokenOf(), DSN);
    await expect.poll(() => reports.length).toBe(2);
    fail(new Error('disk full'));
    expect(await again).toMatch(/^451 /);
    expect(refusals).toEqual(['store']);
    expect(faults).toEqual(['feedback: Error: disk full']);
  });

  test('a bounce that is quicker than the settlement waits for it', async () => {
    let tries = 0;
    const { dialog } = await rig(async () => {
      tries += 1;
      return tries < 3 ? { kind: 'not-yet' } : { kind: 'noted', id: ID, verb: 'x', suppressed: false };
    });
    const peer = await dialog();
    expect(await peer.send('', tokenOf(), DSN)).toMatch(/^250 /);
    expect(tries).toBe(3);
  });

  test('where the settlement does not come the peer is asked to come again', async () => {
    const { dialog, refusals, close } = await rig(async () => ({ kind: 'not-yet' }));
    const peer = await dialog();
    const sent = peer.send('', tokenOf(), DSN);
    await expect.poll(() => refusals.length).toBe(1);
    expect(await sent).toMatch(/^451 .*still on its way/);
    expect(refusals).toEqual(['not-settled']);
    await close();
  });

  test('a message whose end never comes is none', async () => {
    const { dialog, reports } = await rig();
    const peer = await dialog();
    for (const line of ['MAIL FROM:<>', `RCPT TO:<${tokenOf()}>`, 'DATA']) await peer.say(line);
    peer.raw(DSN);
    peer.close();
    const other = await dialog();
    expect(await other.send('', tokenOf(), DSN)).toMatch(/^250 /);
    expect(reports).toHaveLength(1);
  });

  test('the same report has the same digest whatever header it comes with, and another mail request another', async () => {
    const { dialog, reports } = await rig();
    const peer = await dialog();
    await peer.send('', tokenOf(), DSN);
    await peer.send('', tokenOf(), `Received: from a by b\r\n${DSN}`);
    await peer.send('', tokenOf('0192a3b4-c5d6-7e8f-9012-3456789abcdf'), DSN);
    const digests = reports.map(({ digest }) => digest);
    expect(new Set(digests).size).toBe(2);
    expect(digests[0]).toBe(digests[1]);
    expect(digests[0]).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('who misbehaves', () => {
  test.each([
    ['a command that ends with LF alone', 'MAIL FROM:<>\n'],
    ['a CR alone in a command', 'MAIL FROM:<>\rRCPT TO:<x@y.example>\r\n'],
  ])('%s ends the session', async (_, bytes) => {
    const { dialog, refusals, reports } = await rig();
    const peer = await dialog();
    peer.raw(bytes);
    expect(await peer.reply()).toMatch(/^554 5\.6\.0 bare CR or LF/);
    expect(await peer.reply()).toBe('closed');
    expect(refusals).toEqual(['bare-line-end']);
    expect(reports).toEqual([]);
  });

  test.each(['\n.\n', '\r.\r', '\r\n.\n', '\n.\r\n', '\r\r\n.\r\n'])(
    'a message smuggled behind %j is never seen: the session ends, and nothing is recorded',
    async (end) => {
      const { dialog, refusals, reports } = await rig();
      const peer = await dialog();
      for (const line of ['MAIL FROM:<>', `RCPT TO:<${tokenOf()}>`, 'DATA']) await peer.say(line);
      peer.raw(`${DSN}${end}MAIL FROM:<>\r\nRCPT TO:<${tokenOf()}>\r\nDATA\r\n${DSN}\r\n.\r\n`);
      expect(await peer.reply()).toMatch(/^554 5\.6\.0/);
      expect(await peer.reply()).toBe('closed');
      expect(refusals).toEqual(['bare-line-end']);
      expect(reports).toEqual([]);
    },
  );

  test('thirty megabytes are refused, announced or not, and the next message is taken', async () => {
    const { dialog, refusals, reports } = await rig();
    const peer = await dialog();
    expect(await peer.say(`MAIL FROM:<> SIZE=${MOST_BYTES + 1}`)).toMatch(/^552 /);
    for (const line of ['MAIL FROM:<>', `RCPT TO:<${tokenOf()}>`, 'DATA']) await peer.say(line);
    const megabyte = Buffer.from(`${'x'.repeat(1_022)}\r\n`.repeat(1_024));
    peer.raw(DSN);
    for (let n = 0; n < 30; n += 1) peer.raw(megabyte);
    expect(await peer.say('\r\n.')).toMatch(/^552 /);
    expect(refusals).toEqual(['too-large']);
    expect(reports).toEqual([]);
    expect(await peer.send('', tokenOf(), DSN)).toMatch(/^250 /);
  });

  test('a large report is read at its beginning, and little of it is kept', async () => {
    const { dialog, reports } = await rig();
    const peer = await dialog();
    const large = Buffer.concat([Buffer.from(`${DSN}\r\n`), Buffer.from(`${'x'.repeat(1_022)}\r\n`.repeat(4_096))]);
    expect(await peer.send('', tokenOf(), large)).toMatch(/^250 /);
    expect(reports).toMatchObject([{ notices: [{ kind: 'bounce', recipient: 'ada@example.com' }] }]);
    expect(reports[0]?.raw.length).toBe(65_536);
  });

  test('too many connections of one address are told so', async () => {
    const { dialog, refusals } = await rig();
    for (let n = 0; n < 20; n += 1) await dialog();
    const one = await dialog();
    expect(await one.say('MAIL FROM:<>')).toBe('closed');
    expect(refusals).toEqual(['too-many-connections']);
  });

  test.each(['AUTH PLAIN AGEAYg==', 'WIZ', 'BDAT 10 LAST'])('%s is not known here', async (command) => {
    const { dialog } = await rig();
    expect(await (await dialog()).say(command)).toMatch(/^50[02] /);
  });
});

test('with a certificate it offers STARTTLS, and holds lines to CR LF there too', async () => {
  const { key, cert } = await certificateFor('localhost');
  const { dialog, reports, refusals } = await rig(undefined, { key: Buffer.from(key), cert: Buffer.from(cert) });
  const peer = await dialog();
  expect(await peer.say('EHLO peer.example')).toContain('STARTTLS');
  expect(await peer.say('STARTTLS')).toMatch(/^220 /);
  await peer.secure();
  await peer.say('EHLO peer.example');
  expect(await peer.send('', tokenOf(), DSN)).toMatch(/^250 /);
  expect(reports).toHaveLength(1);
  peer.raw('NOOP\n');
  expect(await peer.reply()).toMatch(/^554 5\.6\.0/);
  expect(refusals).toEqual(['bare-line-end']);
});

test('without a certificate STARTTLS is not offered', async () => {
  const { dialog } = await rig();
  expect(await (await dialog()).say('EHLO peer.example')).not.toContain('STARTTLS');
});
