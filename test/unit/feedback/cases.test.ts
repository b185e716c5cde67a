import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { classify, classifyOutcome } from '../../../src/classify/classify.ts';
import { createEventReports } from '../../../src/feedback/provider/body.ts';
import { readFeedbackEvents } from '../../../src/feedback/read/read-feedback-events.ts';
import { readSesEvent } from '../../../src/feedback/ses/events.ts';
import { decideFeedbackChange, type FeedbackEvent } from '../../../src/model/feedback.ts';
import type { Stage } from '../../../src/model/outcome.ts';
import { findProvider } from '../../../src/providers/providers.ts';
import { ReplyParser, type ServerReply, toReply } from '../../../src/transports/smtp/protocol.ts';

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

const REPORTS: Readonly<Record<string, object | null>> = {
  '01-auto-reply-quotes-subject.eml': { kind: 'history-entry', verb: 'auto-replied', suppress: null },
  '02-auto-reply-quotes-subject-suppresses.eml': { kind: 'history-entry', verb: 'auto-replied', suppress: null },
  '03-human-reply-quotes-subject.eml': null,
  '04-auto-reply-server-like-name.eml': { kind: 'history-entry', verb: 'auto-replied', suppress: null },
  '05-delay-notice-negated.eml': { kind: 'history-entry', verb: 'delay-reported', suppress: null },
  '06-dsn-sender-does-not-exist.eml': {
    to: 'bounced',
    suppress: null,
    failure: { class: 'block', category: 'policy' },
  },
  '09-dsn-forward-target-unknown.eml': { to: 'bounced', suppress: null },
};

const EVENTS: Readonly<Record<string, object>> = {
  '10-mailgun-permanent-blocked.json': { to: 'bounced', suppress: null, failure: { category: 'reputation' } },
  '12-mailgun-legacy-bounced-blocked.form.json': { to: 'bounced', suppress: null, failure: { category: 'reputation' } },
  '13-resend-permanent-blocked.json': { to: 'bounced', suppress: null, failure: { category: 'reputation' } },
  '14-sparkpost-rejection-content.json': { to: 'bounced', suppress: null, failure: { category: 'content' } },
  '15-mandrill-reject-unsigned.json': { to: 'bounced', suppress: null, failure: { class: 'block', category: 'auth' } },
  '16-postmark-smtpapierror-inactive.json': { to: 'bounced', suppress: 'provider', countsForReputation: false },
  '17-ses-complaint-on-account-list.json': { to: 'bounced', suppress: 'provider', countsForReputation: false },
};

const REPLIES: Readonly<Record<string, { stage: Stage; outcome: object; failure: object }>> = {
  '18-reply-to-rcpt-mailbox-disabled.txt': {
    stage: 'rcpt',
    outcome: { kind: 'bounced', suppress: true },
    failure: { class: 'hard', category: 'mailbox-disabled' },
  },
  '19-reply-to-message-two-codes-refused.txt': {
    stage: 'content',
    outcome: { kind: 'bounced', suppress: false },
    failure: { class: 'block', category: 'policy' },
  },
};

function fill(text: string): string {
  return text.replaceAll('{TO}', TO).replaceAll('{EF}', 'b-key@bounces.example').replaceAll('{ID}', 'message-id');
}

function decideReport(text: string, sender: string = '<>'): object | null {
  const events = readFeedbackEvents(Buffer.from(`Return-Path: ${sender}\r\n${text.replaceAll('\n', '\r\n')}`));
  return events.length === 0 ? null : decideFeedbackChange(MESSAGE, events);
}

test('every case has its right value', () => {
  expect(readdirSync(FOLDER).sort()).toEqual(Object.keys({ ...REPORTS, ...EVENTS, ...REPLIES }).sort());
});

test.each(Object.entries(REPORTS))('%s', (name, expected) => {
  const content = fill(readFileSync(join(FOLDER, name), 'utf8'));
  const separator = content.indexOf('---\n');
  const sender = /^Envelope-From: (.*)$/m.exec(content.slice(0, separator))?.[1];
  const change = decideReport(content.slice(separator + 4), sender);
  if (expected === null) expect(change).toBeNull();
  else expect(change).toMatchObject(expected);
});

function readProviderEvents(name: string, text: string): readonly FeedbackEvent[] {
  const providerName = name.split('-')[1] ?? '';
  if (providerName === 'ses') {
    const event = readSesEvent(text);
    return event.kind === 'feedback' ? event.events : [];
  }
  const provider = findProvider(providerName);
  if (provider === null || provider.events === null || provider.name === 'ses') throw new Error(`no events of ${name}`);
  const { contentType, body } = createBody(name, providerName, JSON.parse(text));
  const headers = { 'content-type': contentType };
  const result = provider.events.read({ method: 'POST', headers, body: Buffer.from(body), url: null });
  if (result.kind === 'broken') throw new Error(result.reason);
  const options = { provider: provider.name, now: 0, usesReferences: false, signsKeyOnly: false };
  return createEventReports(result.events, options).flatMap(({ events }) => events);
}

function createBody(name: string, provider: string, content: Readonly<Record<string, string>>) {
  const signature = { timestamp: '1795879000', token: 'token', signature: 'a' };
  const form = 'application/x-www-form-urlencoded';
  if (name.endsWith('.form.json'))
    return { contentType: form, body: new URLSearchParams({ ...content, ...signature }).toString() };
  if (provider === 'mandrill')
    return { contentType: form, body: new URLSearchParams({ mandrill_events: JSON.stringify(content) }).toString() };
  const body = JSON.stringify(provider === 'mailgun' ? { signature, 'event-data': content } : content);
  return { contentType: 'application/json', body };
}

test.each(Object.entries(EVENTS))('%s', (name, expected) => {
  const events = readProviderEvents(name, fill(readFileSync(join(FOLDER, name), 'utf8')));
  expect(decideFeedbackChange(MESSAGE, events, true)).toMatchObject(expected);
});

test.each(Object.entries(REPLIES))('%s', (name, { stage, outcome, failure }) => {
  const replies: ServerReply[] = [];
  const parser = new ReplyParser((reply) => replies.push(reply));
  expect(parser.push(Buffer.from(`${fill(readFileSync(join(FOLDER, name), 'utf8')).trimEnd()}\n`))).toBeNull();
  const [reply] = replies;
  if (reply === undefined) throw new Error('no reply');
  const result = classify(toReply(stage, reply));
  expect(result).toMatchObject(outcome);
  expect(classifyOutcome(result)).toEqual(failure);
});

test.each([
  ['{"RecordType":"Unheard"}', { ignored: 1, broken: 0 }],
  ['{"MessageID":"a","FromFull":{"Email":"a@b.example"}}', { ignored: 1, broken: 0 }],
  ['{"MessageID":"a"}', { ignored: 0, broken: 1 }],
])('the event %s of an unknown type is acknowledged and counted', (body, counts) => {
  const request = { method: 'POST', headers: {}, body: Buffer.from(body), url: null } as const;
  expect(findProvider('postmark')?.events?.read(request)).toMatchObject({ kind: 'events', events: [], ...counts });
});

const FAULTLESS_DIAGNOSTICS = [
  '550 5.7.1 Rejected by local policy',
  '550 5.7.1 client host blocked using Spamhaus',
  '554 5.6.0 message content rejected',
  '552 5.3.4 message size exceeds the maximum size',
  '452 4.2.2 mailbox full',
  '550 over quota',
  '550 5.7.26 This mail is unauthenticated',
  '550 too many messages too quickly',
  '550 5.1.1 Sender does not exist',
];

test.each(FAULTLESS_DIAGNOSTICS)('a hard bounce, a drop or a rejection with "%s" suppresses nobody', (diagnostic) => {
  const diagnosis = { status: null, diagnostic, host: null };
  const members = { type: 't', key: 'k', messageId: 'm', reference: null, recipient: TO, hasListReason: false };
  for (const meaning of ['hard', 'provider-suppressed'] as const) {
    const event = { ...members, meaning, diagnosis };
    const [report] = createEventReports([event], {
      provider: 'mailjet',
      now: 0,
      usesReferences: false,
      signsKeyOnly: false,
    });
    expect(decideFeedbackChange(MESSAGE, report?.events ?? [], true)).toMatchObject({ to: 'bounced', suppress: null });
  }
});

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

test.each([
  ['Adres bulunamadı. İletiniz teslim edilemedi çünkü adres bulunamadı veya posta alamıyor.', 'hard'],
  ['주소를 찾을 수 없음. 주소를 찾을 수 없거나 메일을 수신할 수 없으므로 메일이 전송되지 않았습니다.', 'hard'],
  ['找不到地址。您的邮件未送达，因为系统找不到该地址，或者该地址无法接收邮件。', 'hard'],
  ['找不到地址。系統找不到這個地址，因此無法傳送您的郵件。', 'hard'],
  ['受信トレイがいっぱいのため、メールを配信できませんでした。', 'soft'],
])('the text "%s" reports a %s failure', (text, failureClass) => {
  const notice = `From: <mailer-daemon@googlemail.com>\nSubject: Notice\nContent-Type: text/plain; charset=utf-8\n\n${TO}: ${text}\n`;
  expect(decideReport(notice)).toMatchObject({ failure: { class: failureClass } });
});

test('each address before a colon at the beginning of a line has the failure of its line', () => {
  const notice =
    'From: Mailer Daemon <MAILER-DAEMON@mx.example>\nSubject: Delivery status notification: error\n\nAn error has occurred while attempting to deliver a message for\nthe following list of recipients:\n\nfull@corp.example: 550 5.2.2 Mailbox Full\nvera@corp.example: 550 5.1.1 User Unknown\n';
  expect(readFeedbackEvents(Buffer.from(notice))).toMatchObject([
    { recipient: 'full@corp.example', failure: { class: 'soft', category: 'mailbox-full' } },
    { recipient: TO, failure: { class: 'hard', category: 'mailbox-unknown' } },
  ]);
});

test.each([
  'グループが存在しないか、投稿する権限がない可能性があります。',
  "Il se peut que le groupe n'existe pas ou que vous ne soyez pas autorisé à lui écrire.",
  'Die Gruppe existiert nicht, oder Sie sind nicht berechtigt, dorthin zu schreiben.',
])('a group that may not exist, or may refuse the sender, suppresses nobody: %s', (text) => {
  const notice = `From: <mailer-daemon@googlemail.com>\nSubject: Notice\nContent-Type: text/plain; charset=utf-8\n\n${TO}: ${text}\n`;
  expect(decideReport(notice)).toMatchObject({ suppress: null, failure: { category: 'policy' } });
});

test('a final failure beside words of a delay is a failure', () => {
  const notice = `From: <postmaster@mx.example>\nSubject: Notice\n\n${TO}: Your message was delayed. It failed permanently. If you have questions, write to us.\n`;
  expect(decideReport(notice)).toMatchObject({ to: 'bounced' });
});
