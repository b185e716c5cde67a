import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { classify, classifyOutcome, judge } from '../../../src/classify/classify.ts';
import { RULES } from '../../../src/classify/rules.ts';
import { createEventReports } from '../../../src/feedback/provider/body.ts';
import { diagnose } from '../../../src/feedback/read/diagnosis.ts';
import { readFeedbackEvents } from '../../../src/feedback/read/read-feedback-events.ts';
import { readSesEvent } from '../../../src/feedback/ses/events.ts';
import type { FeedbackEvent } from '../../../src/model/feedback.ts';
import type { Reply, Stage } from '../../../src/model/outcome.ts';
import type { EventProviderName } from '../../../src/providers/provider.ts';
import { PROVIDERS } from '../../../src/providers/providers.ts';
import { parseReplyLine } from '../../../src/transports/smtp/protocol.ts';
import { listSamples } from '../../rig/rule-samples.ts';

const SAMPLE = /^(connect|greeting|ehlo|starttls|auth|mail|rcpt|data|content) (\d{3}.*)$/;

/** Returns the reply of a sample, or null if the sample is prose. */
function parseSample(sample: string): { readonly reply: Reply; readonly line: string } | null {
  const [, stage, line] = SAMPLE.exec(sample) ?? [];
  return stage === undefined || line === undefined ? null : { reply: parseReplyLine(stage as Stage, line), line };
}

const rows = RULES.flatMap((rule) => listSamples('servers', rule.name).map((sample) => [sample, rule] as const));

test.each(rows)('the sample matches its rule: %s', (sample, rule) => {
  const reply = parseSample(sample)?.reply ?? { stage: null, code: null, enhanced: null, text: sample };
  expect(judge(reply)).toMatchObject({ verdict: rule.verdict, rule: { name: rule.name } });
});

test('phrases are in lower case, names are unique, and every rule has a sample', () => {
  for (const { name, phrases = [], exceptPhrases = [] } of RULES) {
    for (const phrase of [...phrases, ...exceptPhrases]) expect(phrase).toBe(phrase.toLowerCase());
    expect(listSamples('servers', name), name).not.toEqual([]);
  }
  expect(new Set(RULES.map(({ name }) => name)).size).toBe(RULES.length);
});

const TO = 'anna@kunde.example';
const EVENT_PROVIDERS = PROVIDERS.filter(({ events }) => events !== null).map(({ name }) => name as EventProviderName);

function report(text: string): Readonly<Record<string, readonly FeedbackEvent[]>> {
  const notification = `From: MAILER-DAEMON@mx.example\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; ${TO}\nAction: failed\nDiagnostic-Code: smtp; ${text}\n`;
  const bounce = {
    bounceType: 'Permanent',
    bounceSubType: 'General',
    bouncedRecipients: [{ emailAddress: TO, action: 'failed', diagnosticCode: `smtp; ${text}` }],
  };
  const sesEvent = readSesEvent(JSON.stringify({ eventType: 'Bounce', bounce, mail: { messageId: 'a' } }));
  const diagnosis = { status: null, diagnostic: text, host: null };
  const members = { type: 't', key: 'k', messageId: 'm', reference: null, recipient: TO };
  const event = { ...members, meaning: 'by-text', hasListReason: false, diagnosis } as const;
  const options = { now: 0, usesReferences: false, signsKeyOnly: false };
  return {
    dsn: readFeedbackEvents(Buffer.from(notification)),
    ses: sesEvent.kind === 'feedback' ? sesEvent.events : [],
    ...Object.fromEntries(
      EVENT_PROVIDERS.map((name) => [
        name,
        createEventReports([event], { provider: name, ...options }).flatMap(({ events }) => events),
      ]),
    ),
  };
}

const CORPUS = readFileSync(new URL('../../corpus/replies/replies.tsv', import.meta.url), 'utf8');
/** Replies that a report can contain, and prose. An enhanced code 2.Y.Z is no code in a report. */
const texts = [
  ...rows.map(([sample]) => sample),
  ...CORPUS.split('\n').map((row) => row.split('\t').slice(1, 3).join(' ')),
].filter((sample) => !/^(greeting|ehlo|starttls|auth|mail|\S+ [236]\d\d|\S+ 5\d\d 2\.|#|$)/.test(sample));

describe('a text has one judgement', () => {
  test.each(texts)('as a reply, in a report, at Amazon SES and at every provider: %s', (sample) => {
    const parsed = parseSample(sample);
    const text = parsed?.line ?? sample;
    const { scope, ...failure } = judge(parsed?.reply ?? { stage: null, code: null, enhanced: null, text }).verdict;
    expect(diagnose(text, null)).toMatchObject({ failure, scope });
    if (parsed !== null) {
      const outcome = classify(parsed.reply);
      expect(classifyOutcome(outcome)).toEqual(failure);
      expect(outcome.kind === 'bounced' && outcome.suppress).toBe(failure.class === 'hard');
    }
    for (const [source, events] of Object.entries(report(text)))
      expect(events, source).toMatchObject([{ kind: 'bounce', recipient: TO, failure }]);
  });
});
