/** The schemas of the rules of the inbox in the operator API. */
import type { Static } from 'typebox';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../../model/failure.ts';
import { INBOX_ANSWER_KINDS } from '../../model/inbox-rule.ts';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

export const RULE_OUTCOMES = ['delivered', 'deferred', 'bounced', 'unanswered'] as const;

export const InboxRuleEntry = Type.Object({
  id: Type.Integer({ description: 'The number of the rule.' }),
  match: Type.String({ description: 'The address, or the domain, whose delivery attempts the rule answers.' }),
  answer: Type.Object({
    kind: createStringEnum(INBOX_ANSWER_KINDS),
    summary: Type.String({ description: 'The answer on one line, such as `451 4.3.0 Try again later`.' }),
    code: createNullable(Type.Integer({ description: 'The SMTP reply code; null without a reply.' })),
    enhanced: createNullable(Type.String({ description: 'The enhanced status code; null if the reply has none.' })),
    text: createNullable(Type.String({ description: 'The text of the reply; null without a reply.' })),
    delayMs: createNullable(Type.Integer({ description: 'The delay in milliseconds; null without a delay.' })),
  }),
  effect: Type.Object(
    {
      outcome: createStringEnum(RULE_OUTCOMES, { description: 'The outcome of the attempt.' }),
      class: createNullable(createStringEnum(FAILURE_CLASSES)),
      category: createNullable(createStringEnum(FAILURE_CATEGORIES)),
      suppresses: Type.Boolean({ description: 'True if the outcome adds the recipient to the suppression list.' }),
    },
    { description: 'The outcome of an attempt that receives this answer, by the classification of replies.' },
  ),
  status: createStringEnum(['active', 'used', 'expired'], {
    description: '`used`: the rule has answered all its attempts.',
  }),
  times: Type.Integer({ description: 'The number of delivery attempts that the rule answers.' }),
  used: Type.Integer({ description: 'The number of delivery attempts that the rule has answered.' }),
  created: Time,
  expires: Time,
  lastUse: createNullable(
    Type.Object({
      message: Type.String({ format: 'uuid' }),
      recipient: Type.String({ description: 'The canonical address of the recipient.' }),
      at: Time,
      suppressed: Type.Array(Type.String(), {
        description: 'The accounts on whose suppression list the recipient is now; `*` for the whole service.',
      }),
    }),
  ),
});
export type InboxRuleEntry = Static<typeof InboxRuleEntry>;

export const RemovedInboxRule = Type.Object({ id: Type.Integer(), match: Type.String() });
