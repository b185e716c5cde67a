/** Plays inputs that were once judged wrongly, and checks the change that each causes to its message. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readFeedbackEvents } from '../../../src/feedback/read/read-feedback-events.ts';
import { decideFeedbackChange } from '../../../src/model/feedback.ts';

const FOLDER = join(import.meta.dirname, '../../corpus/cases');
const TO = 'vera@corp.example';
const MESSAGE = {
  state: 'delivered',
  to: TO,
  isTest: false,
  mayHaveBeenSent: true,
  isConfirmed: false,
  hasHardFailure: false,
  hasReportedBounce: false,
} as const;

/** The change that each report causes. Null: the message is no report. */
const REPORTS: Readonly<Record<string, object | null>> = {
  '01-auto-reply-quotes-subject.eml': { kind: 'history-entry', verb: 'auto-replied', suppress: null },
  '02-auto-reply-quotes-subject-suppresses.eml': { kind: 'history-entry', verb: 'auto-replied', suppress: null },
  '03-human-reply-quotes-subject.eml': null,
  '04-auto-reply-server-like-name.eml': { kind: 'history-entry', verb: 'auto-replied', suppress: null },
  '05-delay-notice-negated.eml': { kind: 'history-entry', verb: 'delay-reported', suppress: null },
};

function fill(text: string): string {
  return text.replaceAll('{TO}', TO).replaceAll('{EF}', 'b-key@bounces.example').replaceAll('{ID}', 'message-id');
}

/** Reads a report as the listener does: the sender of its envelope is in front of it. */
function decideReport(text: string, sender: string = '<>'): object | null {
  const events = readFeedbackEvents(Buffer.from(`Return-Path: ${sender}\r\n${text.replaceAll('\n', '\r\n')}`));
  return events.length === 0 ? null : decideFeedbackChange(MESSAGE, events);
}

test('every case has its right value', () => {
  expect(readdirSync(FOLDER).sort()).toEqual(Object.keys(REPORTS).sort());
});

test.each(Object.entries(REPORTS))('%s', (name, expected) => {
  const content = fill(readFileSync(join(FOLDER, name), 'utf8'));
  const separator = content.indexOf('---\n');
  const sender = /^Envelope-From: (.*)$/m.exec(content.slice(0, separator))?.[1];
  const change = decideReport(content.slice(separator + 4), sender);
  if (expected === null) expect(change).toBeNull();
  else expect(change).toMatchObject(expected);
});

/** Subjects of messages that an answer quotes. */
const SUBJECTS = [
  'Your parcel could not be delivered',
  'Your trial has expired',
  'Ihr Paket konnte nicht zugestellt werden',
  "Votre colis n'a pas pu être livré",
  'No se pudo entregar su paquete',
  'Il pacco non è stato consegnato',
  'Sua encomenda não foi entregue',
  'お荷物は配達できませんでした',
  '您的包裹无法投递',
];
const ANSWERS = [
  { prefix: 'Re: ', fields: 'Auto-Submitted: auto-replied', from: 'McAfee Support' },
  { prefix: '', fields: 'Auto-Submitted: auto-replied', from: 'Mail Gateway' },
  { prefix: 'Automatic reply: ', fields: 'X-Auto-Response-Suppress: All', from: 'System Administrator' },
  { prefix: '', fields: 'Auto-Submitted: auto-generated\nX-Auto-Response-Suppress: OOF', from: 'Vera' },
  { prefix: 'Abwesenheitsnotiz: ', fields: 'X-Mailer: a', from: 'Vera' },
  { prefix: 'AW: ', fields: 'In-Reply-To: <a@b.example>', from: 'Symantec User' },
  { prefix: '', fields: 'Precedence: auto_reply', from: 'Vera' },
];

test.each(SUBJECTS)('an automatic reply and an answer that quote "%s" are no failures', (subject) => {
  for (const { prefix, fields, from } of ANSWERS) {
    const create = (extraFields: string): string =>
      `From: ${from} <${TO}>\nSubject: ${prefix}${subject}\n${extraFields}\nContent-Type: text/plain; charset=utf-8\n\nThis mailbox no longer exists.\n\n> ${subject}\n`;
    expect(decideReport(create(fields)), `${fields} ${prefix}`).toMatchObject({ verb: 'auto-replied', suppress: null });
    expect(decideReport(create('In-Reply-To: <a@b.example>'), `<${TO}>`)).toSatisfy(
      (change: { verb?: string } | null) => change === null || change.verb === 'auto-replied',
    );
  }
});

test('the subject of the returned message, quoted in the text of a bounce, is no evidence', () => {
  const subject = 'User unknown: your account has been closed';
  const report = `From: Mail Delivery System <mailer-daemon@mx.example>\nSubject: Undelivered\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nYour message "${subject}" to ${TO} could not be delivered.\n--b\nContent-Type: message/rfc822\n\nTo: ${TO}\nSubject: ${subject}\n\nx\n--b--\n`;
  expect(decideReport(report)).toMatchObject({ to: 'bounced', suppress: null });
});

test.each([
  'Your message has not yet been delivered. If it cannot be delivered permanently, we will tell you.',
  'Your message is delayed. This is not a permanent failure.',
  'Die Nachricht wurde noch nicht zugestellt. Dies ist kein endgültiger Fehler.',
  'Weitere Zustellversuche folgen. Wenn die Zustellung endgültig fehlschlägt, erhalten Sie eine Nachricht.',
  "Votre message n'a pas encore été remis. Ce n'est pas un échec définitif.",
  'La remise est retardée. Si la remise échoue de manière définitive, vous serez averti.',
  'Aún no se ha entregado el mensaje. Esto no es un error permanente.',
  'Se ha retrasado la entrega. Si el error es permanente, recibirá otro aviso.',
  '配信が遅れています。これは永続的なエラーではありません。再試行します。',
  '配信が遅延しています。永続的に失敗した場合はお知らせします。',
])('the notice "%s" reports a delay', (text) => {
  const notice = `From: <postmaster@mx.example>\nSubject: Notice\nContent-Type: text/plain; charset=utf-8\n\n${TO}: ${text}\n`;
  expect(decideReport(notice)).toMatchObject({ kind: 'history-entry', verb: 'delay-reported', suppress: null });
});

test('a final failure beside words of a delay is a failure', () => {
  const notice = `From: <postmaster@mx.example>\nSubject: Notice\n\n${TO}: Your message was delayed. It failed permanently. If you have questions, write to us.\n`;
  expect(decideReport(notice)).toMatchObject({ to: 'bounced' });
});
