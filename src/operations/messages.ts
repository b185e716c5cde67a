/** Messages: the newest by filters, one with its history, why it is where it is, retry and cancel. Search: message-search.ts. */

import { parseTimestamp, quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { canonicalAddress, parseAddress } from '../model/address.ts';
import { type OperatorChangeResult, STATES, type StoredMessage } from '../model/message.ts';
import { Type } from '../model/schema.ts';
import { isMessageId } from '../model/submission.ts';
import type { ListedSuppression } from '../model/suppression.ts';
import type { OperatorStore } from '../store/contract.ts';
import { accountNotFound, conflict, type Failed, invalid, notFound, ok, type Result } from './errors.ts';
import { explain } from './messages/explain.ts';
import { Explanation, MessageDetails, MessageSummary, toMessageDetails, toMessageSummary } from './messages/schemas.ts';
import { operation } from './operation.ts';
import { limit, MessageId, oneOf } from './schemas.ts';

const MAX_LISTED = 100_000;

/** The newest messages that match, without an index of words. */
export const listMessages = operation({
  name: 'message.list',
  id: 'listNewestMessages',
  summary: 'List messages, newest first',
  changes: false,
  input: Type.Object({
    account: Type.Optional(Type.String({ description: 'Of one account.' })),
    state: Type.Optional(oneOf(STATES, { description: 'In one state.' })),
    to: Type.Optional(Type.String({ description: 'To one recipient.' })),
    since: Type.Optional(Type.String({ description: 'Accepted since a date (UTC), or in the last `24h`.' })),
    before: Type.Optional(
      Type.String({ description: 'Accepted before this one: the id of the last message of the previous page.' }),
    ),
    limit: limit(MAX_LISTED),
  }),
  result: Type.Array(MessageSummary),
  errors: ['not-found'],
  async run({ account, state, to, since, before, limit: size }, { store, clock }) {
    const from = since === undefined ? null : parseTimestamp(since, clock.now(), 'back');
    if (from?.ok === false) return invalid('since', from.fault);
    const cursor = before === undefined ? null : idOf('before', before);
    if (cursor?.ok === false) return cursor;
    const accounts = account === undefined ? [] : await store.listAccounts();
    const found = accounts.find(({ name }) => name === account);
    if (account !== undefined && found === undefined) return accountNotFound(account);
    const mails = await store.listMessages({
      accountId: found?.id ?? null,
      state: state ?? null,
      to: to ?? null,
      since: from?.value ?? null,
      before: cursor?.value ?? null,
      limit: size,
    });
    return ok(mails.map(toMessageSummary));
  },
});

/** One with its attempts and its history. */
export const showMessage = operation({
  name: 'message.show',
  id: 'showMessage',
  summary: 'Show a message with its attempts and history',
  changes: false,
  input: Type.Object({ id: MessageId }),
  result: MessageDetails,
  errors: ['not-found'],
  async run({ id }, { store }) {
    const found = await find(store, id);
    if (!found.ok) return found;
    const { mail, account, lists } = found.value;
    return ok(toMessageDetails(mail, account, await nameOfKey(store, found.value), lists));
  },
});

/** What it waits for and what decided, in sentences. */
export const explainMessage = operation({
  name: 'message.explain',
  id: 'explainMessage',
  summary: 'Explain what a message waits for and what decided its state',
  changes: false,
  input: Type.Object({ id: MessageId }),
  result: Explanation,
  errors: ['not-found'],
  async run({ id }, { store, clock, settings, status }) {
    const found = await find(store, id);
    if (!found.ok) return found;
    const { maxAgeMs, keepBodyMs } = settings;
    const service = status?.() ?? null;
    const lines = explain({ ...found.value, service, now: clock.now(), maxAgeMs, keepBodyMs });
    return ok({ id: found.value.mail.id, explanation: [...lines] });
  },
});

/** Makes a queued message due now, and puts an uncertain one back into the queue. */
export const retryMessage = operation({
  name: 'message.retry',
  id: 'retryMessage',
  summary: 'Make a queued message due now, or put an uncertain one back into the queue',
  changes: true,
  input: Type.Object({ id: MessageId }),
  result: Type.Object({ id: Type.String({ format: 'uuid' }), state: oneOf(['queued']) }),
  errors: ['not-found', 'conflict'],
  async run({ id: written }, { store, clock, publish }) {
    const id = idOf('id', written);
    if (!id.ok) return id;
    const refused = refusalOf(id.value, await store.retryMessage(id.value, clock.now()), 'retried');
    if (refused !== null) return refused;
    publish({ type: 'message.retried', at: clock.now(), id: id.value });
    return ok({ id: id.value, state: 'queued' as const });
  },
});

/** Withdraws a queued or uncertain message. */
export const cancelMessage = operation({
  name: 'message.cancel',
  id: 'cancelMessage',
  summary: 'Withdraw a queued or uncertain message',
  changes: true,
  input: Type.Object({ id: MessageId }),
  result: Type.Object({ id: Type.String({ format: 'uuid' }), state: oneOf(['cancelled']) }),
  errors: ['not-found', 'conflict'],
  async run({ id: written }, { store, clock, publish }) {
    const id = idOf('id', written);
    if (!id.ok) return id;
    const refused = refusalOf(id.value, await store.cancelMessage(id.value, clock.now()), 'cancelled');
    if (refused !== null) return refused;
    publish({ type: 'message.cancelled', at: clock.now(), id: id.value });
    return ok({ id: id.value, state: 'cancelled' as const });
  },
});

/** The id in lower case; invalid where Postrider makes no such ids. `field` is the member that it was given as. */
function idOf(field: string, text: string): Result<string> {
  const id = text.toLowerCase();
  if (isMessageId(id)) return ok(id);
  return invalid(field, `${quote(text)} is not the id of a mail request; \`postrider message list\` shows them`);
}

interface Found {
  readonly mail: StoredMessage;
  /** Null where the account is gone. */
  readonly account: Account | null;
  /** Every suppression list that has the recipient now. */
  readonly lists: readonly ListedSuppression[];
}

async function find(store: OperatorStore, written: string): Promise<Result<Found>> {
  const id = idOf('id', written);
  if (!id.ok) return id;
  const mail = await store.findMessage(id.value);
  if (mail === null) return noMessage(id.value);
  const accounts = await store.listAccounts();
  const address = parseAddress(mail.to);
  const lists = address === null ? [] : await store.findSuppression(canonicalAddress(address));
  return ok({ mail, account: accounts.find(({ id: one }) => one === mail.accountId) ?? null, lists });
}

/** Null where the key is gone. */
async function nameOfKey(store: OperatorStore, { mail, account }: Found): Promise<string | null> {
  if (account === null) return null;
  const keys = await store.listKeys(account.name);
  return keys.kind === 'done' ? (keys.value.find(({ id }) => id === mail.keyId)?.name ?? null) : null;
}

function noMessage(id: string): Failed {
  return notFound('id', `there is no mail request ${id}; \`postrider message list\` shows them`);
}

/** Why the store did not do it, or null. */
function refusalOf(id: string, answer: OperatorChangeResult, done: string): Failed | null {
  switch (answer.kind) {
    case 'done':
      return null;
    case 'missing':
      return noMessage(id);
    case 'wrong-state':
      return conflict('id', `mail request ${id} is ${answer.state}; only a queued or uncertain one can be ${done}`);
  }
}
