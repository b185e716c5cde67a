import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classify, raisesAlarm } from '../../../src/classify/classify.ts';
import { RULES } from '../../../src/classify/rules.ts';
import type { Outcome, Reply, Stage } from '../../../src/model/outcome.ts';
import { parseReplyLine } from '../../../src/transports/smtp/protocol.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const STAGES: readonly Stage[] = ['connect', 'greeting', 'ehlo', 'starttls', 'auth', 'mail', 'rcpt', 'data', 'content'];

function isStage(text: string): text is Stage {
  return (STAGES as readonly string[]).includes(text);
}

function parseReply(stage: string, line: string): Reply {
  if (!isStage(stage)) throw new Error(`unknown stage: ${stage}`);
  return parseReplyLine(stage, line);
}

function formatOutcome(outcome: Outcome): string {
  const alarm = raisesAlarm(outcome) ? 'alarm' : '-';
  switch (outcome.kind) {
    case 'delivered':
    case 'unanswered':
      return `${outcome.kind}  - ${alarm}`;
    case 'bounced':
      return `bounced ${outcome.reason} ${outcome.suppress ? 'suppress' : 'no-suppress'} ${alarm}`;
    case 'deferred':
      return `deferred ${outcome.reason} ${outcome.scope} ${alarm}`;
  }
}

const rulePhrases = fc.constantFrom(...RULES.flatMap((rule) => rule.phrases ?? []), 'user unknown', 'ok', '<a@b>', '<');
/** Arbitrary replies, including malformed replies. The texts of the replies contain phrases of the rules. */
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
  text: fc.array(fc.oneof(rulePhrases, fc.string({ maxLength: 10 })), { maxLength: 5 }).map((parts) => parts.join(' ')),
});

describe('replies of real servers', () => {
  const text = readFileSync(new URL('../../corpus/replies/replies.tsv', import.meta.url), 'utf8');
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [server, stage, reply, kind, reason, detail, alarm] = line.split('\t');
    test(`have the documented outcome: ${reply} (${server}, stage ${stage})`, () => {
      expect(formatOutcome(classify(parseReply(stage ?? '', reply ?? '')))).toBe(
        `${kind} ${reason} ${detail} ${alarm}`,
      );
    });
  }
});

describe('the classification', () => {
  test('a reply with a temporary, malformed or missing code never bounces a message', () => {
    fc.assert(
      fc.property(replies, (reply) => {
        const code = reply.code ?? 0;
        const isPermanentCode = (code >= 500 && code < 560) || code === 571;
        if (!isPermanentCode) expect(classify(reply).kind).not.toBe('bounced');
      }),
      { numRuns: selectCaseCount(100, 3_000) },
    );
  });

  test('a reply with an enhanced code that is not permanent never bounces a message', () => {
    fc.assert(
      fc.property(replies, (reply) => {
        if (reply.enhanced !== null && !reply.enhanced.startsWith('5.')) {
          expect(classify(reply).kind).not.toBe('bounced');
        }
      }),
      { numRuns: selectCaseCount(100, 3_000) },
    );
  });

  test('a reply suppresses a recipient only at the stages rcpt and content, and never with 5.7.x', () => {
    fc.assert(
      fc.property(replies, (reply) => {
        const outcome = classify(reply);
        if (outcome.kind !== 'bounced' || !outcome.suppress) return;
        expect(reply.enhanced ?? '').not.toMatch(/^5\.7\./);
        expect(['rcpt', 'content']).toContain(reply.stage);
      }),
      { numRuns: selectCaseCount(100, 5_000) },
    );
  });

  test('a reply about spam, blocking or reputation never suppresses a recipient, for any code', () => {
    const reputationPhrases = fc.constantFrom(
      'spam',
      'blocked',
      'reputation',
      'Blacklist',
      'policy',
      'DNSBL',
      'quota',
      'sender',
    );
    fc.assert(
      fc.property(replies, reputationPhrases, (reply, phrase) => {
        const outcome = classify({ ...reply, text: `${phrase} ${reply.text}` });
        expect(outcome.kind === 'bounced' && outcome.suppress).toBe(false);
      }),
      { numRuns: selectCaseCount(100, 3_000) },
    );
  });

  test('only a 2yz reply to the content yields the outcome delivered', () => {
    fc.assert(
      fc.property(replies, (reply) => {
        const isAccepted = reply.stage === 'content' && reply.code !== null && reply.code >= 200 && reply.code < 260;
        expect(classify(reply).kind === 'delivered').toBe(isAccepted);
      }),
    );
  });

  test('a missing reply is classified as a connection failure', () => {
    expect(formatOutcome(classify({ stage: 'mail', code: null, enhanced: null, text: 'connection lost' }))).toBe(
      'deferred connection route -',
    );
  });

  test('a phrase of a rule within a quoted address does not match the rule', () => {
    const reply = parseReplyLine('rcpt', '550 <"user unknown"@b.example> refused');
    expect(classify(reply)).toMatchObject({ kind: 'bounced', suppress: false });
  });
});
