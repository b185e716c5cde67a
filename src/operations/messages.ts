/** The operations on messages: list, show, explain, retry and cancel. The search is in message-search.ts. */

import { quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import type { OperatorChangeResult, StoredMessage } from '../model/message.ts';
import { Type } from '../model/schema.ts';
import { isMessageId } from '../model/submission.ts';
import type { ListedSuppression } from '../model/suppression.ts';
import type { OperatorStore } from '../store/contract.ts';
import { foldText } from '../store/search/query.ts';
import { createConflict, createInvalid, createNotFound, type ErrorResult, ok, type Result } from './errors.ts';
import { Explanation, FoundMessage, MessageDetails, toFoundMessage, toMessageDetails } from './message-details.ts';
import { buildExplanation } from './message-explanation.ts';
import { attributeMembers, readFilter, readMatches } from './message-filter.ts';
import { defineOperation } from './operation.ts';
import { createPageSizeMember, createStringEnum, MessageId } from './schemas.ts';

const MAX_PAGE_SIZE = 100_000;

/** Lists the newest messages that match the filter. */
export const listMessages = defineOperation({
  name: 'message.list',
  id: 'listNewestMessages',
  summary: 'List messages, newest first',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({
    ...attributeMembers,
    to: Type.Optional(Type.String({ description: 'Messages to this recipient.' })),
    before: Type.Optional(
      Type.String({
        description:
          'The id of the last message of the previous page. The list contains only messages accepted before this message.',
      }),
    ),
    limit: createPageSizeMember(MAX_PAGE_SIZE),
  }),
  result: Type.Array(FoundMessage),
  errors: ['not-found'],
  async run({ to, before, limit, ...attributes }, { store, clock }) {
    const cursor = before === undefined ? null : parseMessageId('before', before);
    if (cursor?.ok === false) return cursor;
    const accounts = await store.listAccounts();
    const filter = await readFilter(attributes, accounts, clock.now(), store);
    if (!filter.ok) return filter;
    const recipientCriteria =
      to === undefined ? [] : [{ kind: 'address', text: foldText(to), prefix: false, fields: ['to'] } as const];
    const { messages } = await readMatches(store, {
      ...filter.value,
      criteria: [...filter.value.criteria, ...recipientCriteria],
      before: cursor?.value ?? null,
      limit,
    });
    const accountNames = new Map(accounts.map(({ id, name }) => [id, name]));
    return ok(messages.map((message) => toFoundMessage(message, accountNames.get(message.accountId) ?? null)));
  },
});

/** Shows a message with its attempts and history. */
export const showMessage = defineOperation({
  name: 'message.show',
  id: 'showMessage',
  summary: 'Show a message with its attempts and history',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({ id: MessageId }),
  result: MessageDetails,
  errors: ['not-found'],
  async run({ id }, { store, scope }) {
    const contextResult = await findMessageContext(store, id);
    if (!contextResult.ok) return contextResult;
    const { message, account, lists } = contextResult.value;
    const details = toMessageDetails(message, account, await findKeyName(store, contextResult.value), lists);
    return ok(scope === 'read' ? { ...details, message: null } : details);
  },
});

/** Explains in sentences what a message waits for, or how it reached its terminal state. */
export const explainMessage = defineOperation({
  name: 'message.explain',
  id: 'explainMessage',
  summary: 'Explain what a message waits for, or how it reached its terminal state',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({ id: MessageId }),
  result: Explanation,
  errors: ['not-found'],
  async run({ id }, { store, clock, settings, status }) {
    const contextResult = await findMessageContext(store, id);
    if (!contextResult.ok) return contextResult;
    const { maxAgeMs, keepBodyMs } = settings;
    const sentences = buildExplanation({
      ...contextResult.value,
      status: status?.() ?? null,
      now: clock.now(),
      maxAgeMs,
      keepBodyMs,
    });
    return ok({ id: contextResult.value.message.id, explanation: [...sentences] });
  },
});

/** Makes a queued message due now, or returns an uncertain message to the queue. */
export const retryMessage = defineOperation({
  name: 'message.retry',
  id: 'retryMessage',
  summary: 'Make a queued message due now, or return an uncertain message to the queue',
  makesChange: true,
  role: 'support',
  readsContent: false,
  input: Type.Object({ id: MessageId }),
  result: Type.Object({ id: Type.String({ format: 'uuid' }), state: createStringEnum(['queued']) }),
  errors: ['not-found', 'conflict'],
  async run({ id: idText }, { store, clock, publish }) {
    const id = parseMessageId('id', idText);
    if (!id.ok) return id;
    const rejection = toRejection(id.value, await store.retryMessage(id.value, clock.now()), 'retried');
    if (rejection !== null) return rejection;
    publish({ type: 'message.retried', at: clock.now(), id: id.value });
    return ok({ id: id.value, state: 'queued' as const });
  },
});

/** Cancels a queued or uncertain message. */
export const cancelMessage = defineOperation({
  name: 'message.cancel',
  id: 'cancelMessage',
  summary: 'Cancel a queued or uncertain message',
  makesChange: true,
  role: 'support',
  readsContent: false,
  input: Type.Object({ id: MessageId }),
  result: Type.Object({ id: Type.String({ format: 'uuid' }), state: createStringEnum(['cancelled']) }),
  errors: ['not-found', 'conflict'],
  async run({ id: idText }, { store, clock, publish }) {
    const id = parseMessageId('id', idText);
    if (!id.ok) return id;
    const message = await store.findMessage(id.value);
    const rejection = toRejection(id.value, await store.cancelMessage(id.value, clock.now()), 'cancelled');
    if (rejection !== null) return rejection;
    publish({ type: 'message.cancelled', at: clock.now(), id: id.value, to: message?.to ?? null });
    return ok({ id: id.value, state: 'cancelled' as const });
  },
});

/** Parses a message id in upper or lower case. `field` is the member of the input that contains the id. */
export function parseMessageId(field: string, text: string): Result<string> {
  const id = text.toLowerCase();
  if (isMessageId(id)) return ok(id);
  return createInvalid(field, `${quote(text)} is not a message id; \`postrider message list\` shows ids`);
}

interface MessageContext {
  readonly message: StoredMessage;
  /** The account of the message. Null if the account does not exist. */
  readonly account: Account | null;
  /** Every entry of the recipient on suppression lists, including the lists of other accounts. */
  readonly lists: readonly ListedSuppression[];
}

async function findMessageContext(store: OperatorStore, idText: string): Promise<Result<MessageContext>> {
  const id = parseMessageId('id', idText);
  if (!id.ok) return id;
  const message = await store.findMessage(id.value);
  if (message === null) return createMessageNotFound(id.value);
  const accounts = await store.listAccounts();
  const address = parseAddress(message.to);
  const lists = address === null ? [] : await store.findSuppression(toCanonicalAddress(address));
  return ok({ message, account: accounts.find(({ id: accountId }) => accountId === message.accountId) ?? null, lists });
}

/** Returns the name of the key with which a message was submitted, or null if the key does not exist. */
async function findKeyName(store: OperatorStore, { message, account }: MessageContext): Promise<string | null> {
  if (account === null) return null;
  const listResult = await store.listKeys(account.name);
  return listResult.kind === 'done' ? (listResult.value.find(({ id }) => id === message.keyId)?.name ?? null) : null;
}

export function createMessageNotFound(id: string): ErrorResult {
  return createNotFound('id', `there is no message ${id}; \`postrider message list\` lists messages`);
}

/** Returns the error for a refused change, or null for a change that was made. */
function toRejection(id: string, result: OperatorChangeResult, participle: string): ErrorResult | null {
  switch (result.kind) {
    case 'done':
      return null;
    case 'missing':
      return createMessageNotFound(id);
    case 'wrong-state':
      return createConflict(
        'id',
        `message ${id} is ${result.state}; only queued and uncertain messages can be ${participle}`,
      );
  }
}
