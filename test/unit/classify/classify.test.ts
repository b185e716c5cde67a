/** Replies of remote servers become outcomes: every rule's samples, a corpus, and the promises no rule may break. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classify, isAlarming, ruleFor } from '../../../src/classify/classify.ts';
import { RULES } from '../../../src/classify/rules.ts';
import type { Outcome, Reply, Stage } from '../../../src/model/outcome.ts';
import { replyFromLine } from '../../../src/transports/smtp/protocol.ts';

const STAGES: readonly Stage[] = ['connect', 'greeting', 'ehlo', 'starttls', 'auth', 'mail', 'rcpt', 'data', 'content'];

function isStage(text: string): text is Stage {
  return (STAGES as readonly string[]).includes(text);
}

function parse(stage: string, line: string): Reply {
  if (!isStage(stage)) throw new Error(`no stage: ${stage}`);
  return replyFromLine(stage, line);
}

function inWords(outcome: Outcome): string {
  const alarm = isAlarming(outcome) ? 'alarm' : '-';
  switch (outcome.kind) {
    case 'delivered':
    case 'unanswered':
      return `${outcome.kind}  - ${alarm}`;
    case 'bounced':
      return `bounced ${outcome.reason} ${outcome.suppress ? 'suppress' : 'keep'} ${alarm}`;
    case 'deferred':
      return `deferred ${outcome.reason} ${outcome.scope} ${alarm}`;
  }
}

/** Replies as a hostile or odd server might make them, words of the rules included. */
const words = fc.constantFrom(...RULES.flatMap((rule) => rule.words ?? []), 'user unknown', 'ok', '<a@b>', '<');
const replies: fc.Arbitrary<Reply> = fc.record({
  stage: fc.constantFrom(...STAGES),
  code: fc.option(
    fc.oneof(
      fc.integer({ min: 0, max: 999 }),
      fc.constantFrom(421, 450, 451, 452, 550, 551, 552, 553, 554, 530, 535, 571),
    ),
  ),
  enhanced: fc.option(
    fc
      .tuple(
        fc.constantFrom('2', '4', '5'),
        fc.constantFrom('0', '1', '2', '3', '4', '5', '6', '7'),
        fc.integer({ min: 0, max: 30 }),
      )
      .map((parts) => parts.join('.')),
  ),
  text: fc.array(fc.oneof(words, fc.string({ maxLength: 10 })), { maxLength: 5 }).map((parts) => parts.join(' ')),
});

describe('rules', () => {
  for (const rule of RULES) {
    test(`${rule.name}: its samples come to it`, () => {
      expect(rule.samples.length).toBeGreaterThan(0);
      for (const sample of rule.samples) {
        const space = sample.indexOf(' ');
        const reply = parse(sample.slice(0, space), sample.slice(space + 1));
        expect({ sample, rule: ruleFor(reply)?.name }).toEqual({ sample, rule: rule.name });
        expect(classify(reply)).toMatchObject({ reason: rule.verdict.reason });
      }
    });
  }

  test('words are lower case and names are unique', () => {
    for (const rule of RULES) {
      for (const word of [...(rule.words ?? []), ...(rule.without ?? [])]) expect(word).toBe(word.toLowerCase());
    }
    expect(new Set(RULES.map((rule) => rule.name)).size).toBe(RULES.length);
  });
});

describe('replies of real servers', () => {
  const text = readFileSync(new URL('../../corpus/replies/replies.tsv', import.meta.url), 'utf8');
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [server, stage, reply, kind, reason, detail, alarm] = line.split('\t');
    test(`${server}, ${stage}: ${reply}`, () => {
      expect(inWords(classify(parse(stage ?? '', reply ?? '')))).toBe(`${kind} ${reason} ${detail} ${alarm}`);
    });
  }
});

describe('whatever a server says', () => {
  test('a temporary, malformed or missing code never bounces', () => {
    fc.assert(
      fc.property(replies, (reply) => {
        const code = reply.code ?? 0;
        const final = (code >= 500 && code < 560) || code === 571;
        if (!final) expect(classify(reply).kind).not.toBe('bounced');
      }),
      { numRuns: 3_000 },
    );
  });

  test('an enhanced code that is not final never bounces', () => {
    fc.assert(
      fc.property(replies, (reply) => {
        if (reply.enhanced !== null && !reply.enhanced.startsWith('5.')) {
          expect(classify(reply).kind).not.toBe('bounced');
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test('5.7.x never suppresses, and no stage but rcpt and content does', () => {
    fc.assert(
      fc.property(replies, (reply) => {
        const outcome = classify(reply);
        if (outcome.kind !== 'bounced' || !outcome.suppress) return;
        expect(reply.enhanced ?? '').not.toMatch(/^5\.7\./);
        expect(['rcpt', 'content']).toContain(reply.stage);
      }),
      { numRuns: 5_000 },
    );
  });

  test('words of spam, blocking or reputation never suppress, whatever the code', () => {
    const hostile = fc.constantFrom('spam', 'blocked', 'reputation', 'Blacklist', 'policy', 'DNSBL', 'quota', 'sender');
    fc.assert(
      fc.property(replies, hostile, (reply, word) => {
        const outcome = classify({ ...reply, text: `${word} ${reply.text}` });
        expect(outcome.kind === 'bounced' && outcome.suppress).toBe(false);
      }),
      { numRuns: 3_000 },
    );
  });

  test('only a 2yz reply to the content is delivered', () => {
    fc.assert(
      fc.property(replies, (reply) => {
        const taken = reply.stage === 'content' && reply.code !== null && reply.code >= 200 && reply.code < 260;
        expect(classify(reply).kind === 'delivered').toBe(taken);
      }),
    );
  });

  test('no reply is a fault of the connection', () => {
    expect(inWords(classify({ stage: 'mail', code: null, enhanced: null, text: 'gone' }))).toBe(
      'deferred connection transport -',
    );
  });

  test('the words of a quoted address are not taken for the server’s', () => {
    const reply = replyFromLine('rcpt', '550 <"user unknown"@b.example> refused');
    expect(classify(reply)).toMatchObject({ kind: 'bounced', suppress: false });
  });
});
