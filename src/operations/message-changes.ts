/** Resends ended messages, and counts, retries, cancels or resends the messages that match a filter. */
import { parseAddress } from '../model/address.ts';
import { findSendingDomain, maySend } from '../model/domain.ts';
import {
  BULK_ACTIONS,
  type BulkOutcome,
  type ResendResult,
  type ResentMessage,
  type StoredMessage,
} from '../model/message.ts';
import { Type } from '../model/schema.ts';
import { createOperatorMessageId, requiresAuthenticatedSender } from '../model/submission.ts';
import { createConflict, createInvalidTemplate, type ErrorResult, ok } from './errors.ts';
import { decodeCursor, encodeCursor, filterMembers, listFilterMembers, readFilter } from './message-filter.ts';
import { createMessageNotFound, parseMessageId } from './messages.ts';
import { defineOperation, type OperationContext } from './operation.ts';
import { createNullable, createStringEnum, MessageId } from './schemas.ts';

export const ResendOutcome = Type.Object({
  id: Type.String({ format: 'uuid', description: 'The id of the new message.' }),
  resendOf: Type.String({ format: 'uuid', description: 'The id of the ended message.' }),
  state: createStringEnum(['queued', 'suppressed'], {
    description:
      'The state of the new message. `suppressed`: the recipient is on a suppression list, and nothing is sent.',
  }),
});

/** Submits an ended message again as a new message. */
export const resendMessage = defineOperation({
  name: 'message.resend',
  id: 'resendMessage',
  summary: 'Submit an ended message again as a new message',
  makesChange: true,
  role: 'support',
  readsContent: false,
  input: Type.Object({ id: MessageId }),
  result: ResendOutcome,
  errors: ['not-found', 'conflict'],
  async run({ id: idText }, context) {
    const { store, clock, random, warn } = context;
    const id = parseMessageId('id', idText);
    if (!id.ok) return id;
    const originalMessage = await store.findMessage(id.value);
    if (originalMessage === null) return createMessageNotFound(id.value);
    const now = clock.now();
    const isSenderAuthorized = await createSenderCheck(context);
    if (!isSenderAuthorized(originalMessage)) {
      return createConflict(
        'id',
        `the domain of the sender ${originalMessage.from} is not authenticated for the account; \`postrider domain list\` shows the domains`,
      );
    }
    const result = await store.resendMessage({ id: id.value, newId: createOperatorMessageId(now, random) }, now);
    if (result.kind !== 'done') {
      const account = (await store.listAccounts()).find(({ id: accountId }) => accountId === originalMessage.accountId);
      return toResendError(id.value, account?.name ?? 'NAME', result);
    }
    const { id: newId, state, to } = result.message;
    publishResent(result.message, context);
    if (state === 'suppressed') warn('suppressed', `${to} is on a suppression list, so message ${newId} was not sent`);
    return ok({ id: newId, resendOf: id.value, state });
  },
});

/** Publishes the acceptance of the new message after the commit. */
export function publishResent(
  { id, accountId, keyId, to, from, acceptedAt, state }: ResentMessage,
  { publish, clock }: Pick<OperationContext, 'publish' | 'clock'>,
): void {
  const at = clock.now();
  publish({
    type: 'message.accepted',
    at,
    id,
    accountId,
    keyId,
    to,
    from,
    state,
    acceptedAt,
    tookMs: Math.max(0, at - acceptedAt),
  });
  if (state === 'suppressed') publish({ type: 'message.suppressed', at, id, accountId, to });
}

/**
 * Reads the sending domains, and returns the function that checks whether the account may send from the domain of a
 * sender. The rule is the same as in the public interface.
 */
export async function createSenderCheck({
  store,
  settings,
}: Pick<OperationContext, 'store' | 'settings'>): Promise<
  (message: Pick<StoredMessage, 'accountId' | 'from'>) => boolean
> {
  if (!requiresAuthenticatedSender(settings)) return () => true;
  const domains = new Map((await store.listDomains()).map((listed) => [listed.name, listed]));
  return ({ accountId, from }) => {
    const domain = parseAddress(from)?.domain ?? null;
    if (domain === null) return false;
    const sendingDomain = findSendingDomain((name) => domains.get(name), accountId, domain);
    return sendingDomain !== null && maySend(sendingDomain);
  };
}

const REFUSAL_TEXTS = {
  'volume-exhausted': 'the volume of its account is exhausted',
  'volume-expired': 'the volume of its account has expired',
  'rate-limit-exceeded': 'the rate limit of its account is exceeded',
} as const;

function toResendError(id: string, account: string, result: Exclude<ResendResult, { kind: 'done' }>): ErrorResult {
  switch (result.kind) {
    case 'missing':
      return createMessageNotFound(id);
    case 'not-ended':
      return createConflict(
        'id',
        `message ${id} is ${result.state}; only an ended message can be sent again. Retry or cancel it instead`,
      );
    case 'erased':
      return createConflict(
        'id',
        `the body of message ${id} was erased (POSTRIDER_KEEP_BODY), so it cannot be sent again`,
      );
    case 'locked':
      return createConflict(
        'id',
        `account ${account} of message ${id} is locked; \`postrider account unlock ${account}\` unlocks it`,
      );
    case 'refused':
      return createConflict(
        'id',
        `message ${id} was not sent again: ${REFUSAL_TEXTS[result.reason]}; \`postrider account set ${account}\` changes it`,
      );
  }
}

/** The number of messages at which `message count` stops counting. */
const MAX_COUNTED_MESSAGES = 10_000;
const COUNT_PAGE_SIZE = 1_000;
const MAX_COUNT_MS = 2_000;
const MAX_STORE_CALL_MS = 500;
/** The maximum number of messages in one transaction. */
const MAX_BATCH_MESSAGES = 50;
/** The maximum length of a filter in the audit log. */
const MAX_FILTER_LENGTH = 500;

/** Counts at most 10,000 messages. After two seconds, it reads no further page. */
export const countMessages = defineOperation({
  name: 'message.count',
  id: 'countMessages',
  summary: 'Count the messages that match a filter, up to 10,000',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object(filterMembers),
  result: Type.Object({
    count: Type.Integer({ description: 'The number of messages that were counted.' }),
    isComplete: Type.Boolean({ description: 'False if there may be more messages than `count`.' }),
  }),
  errors: ['not-found'],
  async run(input, { store, clock }) {
    const startedAt = clock.now();
    const filter = await readFilter(input, await store.listAccounts(), startedAt, store);
    if (!filter.ok) return filter;
    let count = 0;
    let before: string | null = null;
    for (;;) {
      const limit = Math.min(COUNT_PAGE_SIZE, MAX_COUNTED_MESSAGES - count);
      const result = await store.searchMessages({ ...filter.value, before, limit }, MAX_STORE_CALL_MS);
      count += result.messages.length;
      if (result.searchedTo === null) return ok({ count, isComplete: true });
      if (count >= MAX_COUNTED_MESSAGES || clock.now() - startedAt >= MAX_COUNT_MS)
        return ok({ count, isComplete: false });
      before = result.searchedTo;
    }
  },
});

/** Performs one batch of an action on the messages that match a filter. */
export const changeMessages = defineOperation({
  name: 'message.change',
  id: 'changeMessages',
  summary: 'Retry, cancel or resend the messages that match a filter, one batch per call',
  makesChange: true,
  role: 'support',
  readsContent: false,
  input: Type.Object({
    action: createStringEnum(BULK_ACTIONS, {
      description: 'The action. `resend` submits each message at most once, even if several operators run it.',
    }),
    ...filterMembers,
    cursor: Type.Optional(
      Type.String({ description: '`next` of the previous batch; the action and the filters must be the same.' }),
    ),
  }),
  result: Type.Object({
    done: Type.Integer({ description: 'The number of messages of this batch that were changed.' }),
    refused: Type.Integer({ description: 'The number of messages of this batch that could not be changed.' }),
    reasons: Type.Array(Type.String(), {
      description: 'The distinct reasons why messages were refused, such as `wrong-state` or `already-resent`.',
    }),
    next: createNullable(Type.String({ description: 'The `cursor` of the next batch; null after the last batch.' })),
  }),
  errors: ['not-found'],
  async run({ action, cursor, ...input }, context) {
    const { store, clock } = context;
    const now = clock.now();
    const members = listFilterMembers(input);
    if (members.length === 0)
      return createInvalidTemplate(
        null,
        () => 'a change of many messages needs at least one filter, such as the state',
      );
    const filter = await readFilter(input, await store.listAccounts(), now, store);
    if (!filter.ok) return filter;
    const position = cursor === undefined ? { entry: null, before: null } : parsePosition(action, members, cursor);
    if (position === null)
      return createInvalidTemplate('cursor', () => 'the cursor belongs to another run; omit it to start a new run');
    const { entry, before } = position;
    const page = await store.searchMessages({ ...filter.value, before, limit: MAX_BATCH_MESSAGES }, MAX_STORE_CALL_MS);
    const isAuthorized = action === 'resend' ? await createSenderCheck(context) : () => true;
    const authorizedMessages = page.messages.filter(isAuthorized);
    const refusedCount = page.messages.length - authorizedMessages.length;
    const result = await store.changeMessages(
      {
        action,
        targets: authorizedMessages.map(({ id }) => ({ id, newId: createOperatorMessageId(now, context.random) })),
        filter: members
          .map(([name, value]) => `${name}=${value}`)
          .join(' ')
          .slice(0, MAX_FILTER_LENGTH),
        refused: refusedCount,
        entry,
        isLast: page.searchedTo === null,
      },
      now,
    );
    const recipients = new Map(page.messages.map(({ id, to }) => [id, to]));
    for (const outcome of result.outcomes) publishOutcome(action, outcome, recipients.get(outcome.id) ?? null, context);
    const doneCount = result.outcomes.filter(({ kind }) => kind === 'done').length;
    const reasons = new Set(
      result.outcomes.flatMap((outcome) => (outcome.kind === 'refused' ? [outcome.reason as string] : [])),
    );
    if (refusedCount > 0) reasons.add('sender-not-authenticated');
    return ok({
      done: doneCount,
      refused: page.messages.length - doneCount,
      reasons: [...reasons],
      next: page.searchedTo === null ? null : formatPosition(action, members, result.entry, page.searchedTo),
    });
  },
});

function publishOutcome(
  action: (typeof BULK_ACTIONS)[number],
  outcome: BulkOutcome,
  to: string | null,
  context: Pick<OperationContext, 'publish' | 'clock'>,
): void {
  if (outcome.kind === 'refused') return;
  const { id, resent } = outcome;
  const at = context.clock.now();
  switch (action) {
    case 'retry':
      context.publish({ type: 'message.retried', at, id });
      return;
    case 'cancel':
      context.publish({ type: 'message.cancelled', at, id, to });
      return;
    case 'resend':
      if (resent !== null) publishResent(resent, context);
      return;
  }
}

type FilterMemberList = ReturnType<typeof listFilterMembers>;

/**
 * Returns the cursor of the next batch. It contains the number of the audit log entry and a search cursor whose digest
 * includes the action and this number.
 */
function formatPosition(action: string, members: FilterMemberList, entry: number | null, searchedTo: string): string {
  const entryNumber = String(entry ?? 0);
  return `${entryNumber}.${encodeCursor([action, entryNumber, ...members.flat()], searchedTo)}`;
}

function parsePosition(
  action: string,
  members: FilterMemberList,
  cursor: string,
): { readonly entry: number | null; readonly before: string } | null {
  const [entryNumber = '', searchCursor = ''] = cursor.split('.', 2);
  const before = decodeCursor([action, entryNumber, ...members.flat()], searchCursor);
  const entry = Number(entryNumber);
  if (before === null || !Number.isSafeInteger(entry) || entry < 0) return null;
  return { entry: entry === 0 ? null : entry, before };
}
