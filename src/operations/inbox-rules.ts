/** The operations on the rules that answer delivery attempts in place of the transport `capture:`. */
import type { Static } from 'typebox';
import { classify, classifyOutcome } from '../classify/classify.ts';
import {
  createFault,
  createParseResult,
  type ParseResult,
  parseDuration,
  parseTimestamp,
  quote,
} from '../config/units.ts';
import { parseAddress, parseHost, toCanonicalAddress } from '../model/address.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../model/failure.ts';
import {
  formatInboxAnswer,
  getInboxRuleStatus,
  INBOX_ANSWER_KINDS,
  type InboxRule,
  type InboxRuleAnswer,
  MAX_ACTIVE_INBOX_RULES,
  toReply,
} from '../model/inbox.ts';
import { type Outcome, SIMULATOR_DOMAIN } from '../model/outcome.ts';
import { formatIsoTime } from '../printing/text.ts';
import type { OperatorStore } from '../store/contract.ts';
import { createConflict, createInvalid, createNotFound, ok, type Result, toMemberResult } from './errors.ts';
import { changes, defineOperation, reads } from './operation.ts';
import { createParsed, createRowNumber, parseVisibleText, Time, Type } from './schemas.ts';

export const RULE_OUTCOMES = ['delivered', 'deferred', 'bounced', 'unanswered'] as const;

export const InboxRuleEntry = Type.Object({
  id: Type.Integer('The number of the rule.'),
  match: Type.String('The address, or the domain, whose delivery attempts the rule answers.'),
  answer: Type.Object({
    kind: Type.Enum(INBOX_ANSWER_KINDS),
    summary: Type.String('The answer on one line, such as `451 4.3.0 Try again later`.'),
    code: Type.NullableInteger('The SMTP reply code; null without a reply.'),
    enhanced: Type.NullableString('The enhanced status code; null if the reply has none.'),
    text: Type.NullableString('The text of the reply; null without a reply.'),
    delayMs: Type.NullableInteger('The delay in milliseconds; null without a delay.'),
  }),
  effect: Type.Object(
    {
      outcome: Type.Enum(RULE_OUTCOMES, 'The outcome of the attempt.'),
      class: Type.Nullable(Type.Enum(FAILURE_CLASSES)),
      category: Type.Nullable(Type.Enum(FAILURE_CATEGORIES)),
      suppresses: Type.Boolean('True if the outcome adds the recipient to the suppression list.'),
    },
    'The outcome of an attempt that receives this answer, by the classification of replies.',
  ),
  status: Type.Enum(['active', 'used', 'expired'], '`used`: the rule has answered all its attempts.'),
  times: Type.Integer('The number of delivery attempts that the rule answers.'),
  used: Type.Integer('The number of delivery attempts that the rule has answered.'),
  created: Time,
  expires: Time,
  lastUse: Type.Nullable(
    Type.Object({
      message: Type.Uuid(),
      recipient: Type.String('The canonical address of the recipient.'),
      at: Time,
      suppressed: Type.Array(
        Type.String(),
        'The accounts on whose suppression list the recipient is now; `*` for the whole service.',
      ),
    }),
  ),
});
export type InboxRuleEntry = Static<typeof InboxRuleEntry>;

export const RemovedInboxRule = Type.Object({ id: Type.Integer(), match: Type.String() });

const MAX_TIMES = 1_000;
const DAY_MS = 86_400_000;
const MAX_LIFETIME_MS = 30 * DAY_MS;
/** Shorter than the timeouts of SMTP clients (RFC 5321 section 4.5.3.2). */
const MAX_DELAY_MS = 5 * 60_000;
const MAX_TEXT_LENGTH = 200;
const DEFAULT_TEXT = 'Answered by a rule';

const AddInput = Type.Object({
  match: createParsed('An address, or a domain without its subdomains.', parseMatch),
  answer: Type.Enum(INBOX_ANSWER_KINDS, {
    default: 'reply',
    description:
      '`reply` needs `code`. `delay` needs `delay`. `disconnect`: the connection is lost before the end of the message. `unanswered`: the connection is lost after the final dot.',
  }),
  code: Type.Optional(
    Type.Integer({
      minimum: 400,
      maximum: 559,
      description: 'The SMTP reply code, 400 to 559.',
      errorMessage: 'is not a reply code from 400 to 559',
    }),
  ),
  enhanced: Type.OptionalString('The enhanced status code, such as `4.3.0`.'),
  text: Type.OptionalString(
    `The text of the reply, at most ${MAX_TEXT_LENGTH} characters; the default is \`${DEFAULT_TEXT}\`.`,
  ),
  delay: Type.OptionalString('The delay before the reply 250, such as `5s`; at most `5m`.'),
  times: Type.Integer({
    minimum: 1,
    maximum: MAX_TIMES,
    default: 1,
    description: `The number of delivery attempts that the rule answers, 1 to ${MAX_TIMES}; the default is 1.`,
  }),
  expires: createParsed(
    { default: '24h', description: 'The end of the rule: a date (UTC) or a duration of at most `30d`.' },
    (text, now) => {
      const expiresAt = parseTimestamp(text, now, 'ahead');
      if (!expiresAt.ok) return expiresAt;
      if (expiresAt.value <= now) return createFault('is not in the future');
      return expiresAt.value - now > MAX_LIFETIME_MS ? createFault('is more than 30 days ahead') : expiresAt;
    },
  ),
});

export const addInboxRule = defineOperation({
  name: 'inbox.add-rule',
  id: 'addInboxRule',
  summary: 'Add a rule that answers the next delivery attempts to an address or a domain',
  ...changes('operator'),
  input: AddInput,
  result: InboxRuleEntry,
  errors: ['conflict'],
  async run(input, { store, clock, settings }) {
    if (settings.transport.kind !== 'capture')
      return createConflict(
        null,
        `a rule answers delivery attempts in place of capture:, but POSTRIDER_TRANSPORT is ${settings.transport.kind}:; add rules only where the transport is capture:`,
      );
    const answer = parseAnswer(input);
    if (!answer.ok) return answer;
    const now = clock.now();
    const { match, times, expires: expiresAt } = input;
    const result = await store.addInboxRule({ match, answer: answer.value, times, expiresAt }, now);
    switch (result.kind) {
      case 'full':
        return createConflict(
          null,
          `${MAX_ACTIVE_INBOX_RULES} rules are active, the maximum; remove one of them first`,
        );
      case 'added':
        return ok(toEntry(result.rule, now, []));
    }
  },
});

export const listInboxRules = defineOperation({
  name: 'inbox.list-rules',
  id: 'listInboxRules',
  summary: 'List the rules of the inbox with their uses, newest first',
  ...reads('viewer'),
  input: Type.Object({}),
  result: Type.Array(InboxRuleEntry),
  async run(_input, { store, clock }) {
    const rules = await store.listInboxRules();
    const listsByRecipient = await findSuppressionLists(store, rules);
    const now = clock.now();
    return ok(rules.map((rule) => toEntry(rule, now, listsByRecipient.get(rule.lastUse?.recipient ?? '') ?? [])));
  },
});

export const removeInboxRule = defineOperation({
  name: 'inbox.remove-rule',
  id: 'removeInboxRule',
  summary: 'Remove a rule of the inbox',
  ...changes('operator'),
  input: Type.Object({
    id: createRowNumber(
      'The number of the rule.',
      'is not the number of a rule; `postrider inbox rule list` lists rules',
    ),
  }),
  result: RemovedInboxRule,
  errors: ['not-found'],
  async run({ id }, { store }) {
    const removeResult = await store.removeInboxRule(id);
    if (removeResult.kind === 'missing')
      return createNotFound('id', `there is no rule ${id}; \`postrider inbox rule list\` lists rules`);
    return ok({ id, match: removeResult.value.match });
  },
});

async function findSuppressionLists(
  store: Pick<OperatorStore, 'findSuppressed' | 'findSuppression'>,
  rules: readonly InboxRule[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const recipients = [...new Set(rules.flatMap(({ lastUse }) => (lastUse === null ? [] : [lastUse.recipient])))];
  if (recipients.length === 0) return new Map();
  const suppressedRecipients = await store.findSuppressed(recipients);
  return new Map(
    await Promise.all(
      suppressedRecipients.map(async (recipient) => {
        const entries = await store.findSuppression(recipient);
        return [recipient, entries.map(({ list }) => list)] as const;
      }),
    ),
  );
}

function parseMatch(text: string): ParseResult<string> {
  const trimmedText = text.trim();
  const address = trimmedText.includes('@') && !trimmedText.startsWith('@') ? parseAddress(trimmedText) : null;
  const domain = address?.domain ?? parseHost(trimmedText, trimmedText.startsWith('@') ? 1 : 0);
  if (domain === null || (address === null && trimmedText.lastIndexOf('@') > 0))
    return createFault(`${quote(text)} is neither an address nor a domain such as example.com`);
  if (domain === SIMULATOR_DOMAIN)
    return createFault(`the simulator answers messages to ${SIMULATOR_DOMAIN}; give another address or domain`);
  return createParseResult(address === null ? domain : toCanonicalAddress(address));
}

type AnswerInput = Pick<Static<typeof AddInput>, 'answer' | 'code' | 'enhanced' | 'text' | 'delay'>;

function parseAnswer(input: AnswerInput): Result<InboxRuleAnswer> {
  const allowedMembers: readonly string[] =
    input.answer === 'reply' ? ['code', 'enhanced', 'text'] : input.answer === 'delay' ? ['delay'] : [];
  for (const member of ['code', 'enhanced', 'text', 'delay'] as const) {
    if (input[member] !== undefined && !allowedMembers.includes(member))
      return createInvalid(member, `does not apply to the answer ${input.answer}; omit it`);
  }
  switch (input.answer) {
    case 'reply':
      return parseReply(input);
    case 'delay':
      return parseDelay(input.delay);
    case 'disconnect':
    case 'unanswered':
      return ok({ kind: input.answer });
  }
}

function parseReply({ code, enhanced: enhancedText, text: replyText }: AnswerInput): Result<InboxRuleAnswer> {
  if (code === undefined) return createInvalid('code', 'is missing; give a reply code such as 451 or 550');
  // RFC 5321 section 4.2: the second digit of a reply code is 0 to 5.
  if (code % 100 > 59) return createInvalid('code', `${code} is not a reply code; its second digit must be 0 to 5`);
  const enhanced = enhancedText === undefined || enhancedText === '' ? null : enhancedText;
  if (enhanced !== null && !/^[45]\.\d{1,3}\.\d{1,3}$/.test(enhanced))
    return createInvalid('enhanced', `${quote(enhanced)} is not an enhanced status code such as 4.3.0`);
  // RFC 3463 section 2: the enhanced status code and the reply code have the same class.
  if (enhanced !== null && enhanced[0] !== String(code)[0])
    return createInvalid(
      'enhanced',
      `${enhanced} and the reply code ${code} have different classes; give codes with the same first digit`,
    );
  const text =
    replyText === undefined || replyText === ''
      ? ok(DEFAULT_TEXT)
      : toMemberResult('text', parseVisibleText(replyText, MAX_TEXT_LENGTH));
  return text.ok ? ok({ kind: 'reply', code, enhanced, text: text.value }) : text;
}

function parseDelay(text: string | undefined): Result<InboxRuleAnswer> {
  if (text === undefined) return createInvalid('delay', 'is missing; give a duration such as 5s');
  const delayMs = toMemberResult('delay', parseDuration(text));
  if (!delayMs.ok) return delayMs;
  if (delayMs.value < 1 || delayMs.value > MAX_DELAY_MS)
    return createInvalid('delay', `${quote(text)} is not a duration from 1ms to 5m`);
  return ok({ kind: 'delay', delayMs: delayMs.value });
}

function toEntry(rule: InboxRule, now: number, suppressed: readonly string[]): InboxRuleEntry {
  const { id, match, answer, times, used, createdAt, expiresAt, lastUse } = rule;
  const reply = answer.kind === 'reply' ? answer : null;
  return {
    id,
    match,
    answer: {
      kind: answer.kind,
      summary: formatInboxAnswer(answer),
      code: reply?.code ?? null,
      enhanced: reply?.enhanced ?? null,
      text: reply?.text ?? null,
      delayMs: answer.kind === 'delay' ? answer.delayMs : null,
    },
    effect: describeEffect(answer),
    status: getInboxRuleStatus(rule, now),
    times,
    used,
    created: formatIsoTime(createdAt),
    expires: formatIsoTime(expiresAt),
    lastUse:
      lastUse === null
        ? null
        : {
            message: lastUse.messageId,
            recipient: lastUse.recipient,
            at: formatIsoTime(lastUse.at),
            suppressed: [...suppressed],
          },
  };
}

function describeEffect(answer: InboxRuleAnswer): InboxRuleEntry['effect'] {
  switch (answer.kind) {
    case 'reply': {
      const outcome = classify(toReply(answer));
      const suppresses = outcome.kind === 'bounced' && outcome.suppress;
      return { outcome: outcome.kind, ...describeFailure(outcome), suppresses };
    }
    case 'delay':
      return { outcome: 'delivered', class: null, category: null, suppresses: false };
    case 'disconnect': {
      const reply = { stage: 'rcpt', code: null, enhanced: null, text: '' } as const;
      const outcome = { kind: 'deferred', reply, reason: 'connection', scope: 'message' } as const;
      return { outcome: 'deferred', ...describeFailure(outcome), suppresses: false };
    }
    case 'unanswered':
      return { outcome: 'unanswered', class: null, category: null, suppresses: false };
  }
}

function describeFailure(outcome: Outcome): Pick<InboxRuleEntry['effect'], 'class' | 'category'> {
  const failure = classifyOutcome(outcome);
  return { class: failure?.class ?? null, category: failure?.category ?? null };
}
