import type { Static } from 'typebox';
import { listRoutesOf, readRouteFacts } from '../checks/routes.ts';
import type { RouteSetting, Settings } from '../config/settings.ts';
import { checkSecret, createSourceParts, listReplacedFields } from '../domains/setup.ts';
import { createPrepare, DomainCache } from '../domains/signing.ts';
import type { Account } from '../model/account.ts';
import { parseAddress, toCanonicalAddress } from '../model/address.ts';
import { findSendingDomain, getSigningKeys, maySend, type SendingDomain } from '../model/domain.ts';
import {
  BULK_ACTIONS,
  type BulkOutcome,
  type LeasedMessage,
  type OperatorChangeResult,
  type ResendResult,
  type ResentMessage,
  type StoredMessage,
} from '../model/message.ts';
import { DEFAULT_ROUTE } from '../model/route.ts';
import { createOperatorMessageId, requiresAuthenticatedSender } from '../model/submission.ts';
import { isCurrent, type ListedSuppression } from '../model/suppression.ts';
import type { OperatorStore } from '../store/contract.ts';
import { createConflict, createInvalidTemplate, createNotFound, type ErrorResult, ok, type Result } from './errors.ts';
import { findHoldOf } from './holds.ts';
import { Explanation, MessageDetails, toMessageDetails } from './message-details.ts';
import { buildExplanation } from './message-explanation.ts';
import {
  decodeCursor,
  encodeCursor,
  type FilterMembers,
  filterMembers,
  listFilterMembers,
  MAX_STORE_CALL_MS,
  readFilter,
} from './message-search.ts';
import { changes, defineOperation, type OperationContext, reads, readsContent } from './operation.ts';
import { MessageId, Type } from './schemas.ts';

export const showMessage = defineOperation({
  name: 'message.show',
  id: 'showMessage',
  summary: 'Show a message with its attempts and history',
  ...reads('viewer'),
  input: Type.Object({ id: MessageId }),
  result: MessageDetails,
  errors: ['not-found'],
  async run({ id }, { store, clock, scope }) {
    const found = await findMessageContext(store, id, clock.now());
    if (found === null) return createMessageNotFound(id);
    const { message, account, lists } = found;
    const keys = account === null ? null : await store.listKeys(account.name);
    const key = keys?.kind === 'done' ? keys.value.find((candidate) => candidate.id === message.keyId) : undefined;
    const hold = await findHoldOf(store, message, clock.now());
    const details = toMessageDetails(message, account, key?.name ?? null, lists, hold);
    return ok(scope === 'read' ? { ...details, message: null } : details);
  },
});

export const explainMessage = defineOperation({
  name: 'message.explain',
  id: 'explainMessage',
  summary: 'Explain what a message waits for, or how it reached its terminal state',
  ...reads('viewer'),
  input: Type.Object({ id: MessageId }),
  result: Explanation,
  errors: ['not-found'],
  async run({ id }, { store, clock, settings, status }) {
    const found = await findMessageContext(store, id, clock.now());
    if (found === null) return createMessageNotFound(id);
    const { maxAgeMs, keepBodyMs } = settings;
    const now = clock.now();
    const hold = await findHoldOf(store, found.message, now);
    const routes = listRoutesOf(await readRouteFacts(store, settings, status?.() ?? null, now), found.message);
    const explanation = buildExplanation({ ...found, hold, routes, now, maxAgeMs, keepBodyMs });
    return ok({ id, explanation: [...explanation] });
  },
});

interface MessageContext {
  readonly message: StoredMessage;
  readonly account: Account | null;
  readonly lists: readonly ListedSuppression[];
}

async function findMessageContext(store: OperatorStore, id: string, now: number): Promise<MessageContext | null> {
  const message = await store.findMessage(id);
  if (message === null) return null;
  const address = parseAddress(message.to);
  const entries = address === null ? [] : await store.findSuppression(toCanonicalAddress(address));
  const lists = entries.filter((entry) => isCurrent(entry, now));
  return { message, account: await findAccount(store, message), lists };
}

async function findAccount(
  store: Pick<OperatorStore, 'listAccounts'>,
  { accountId }: Pick<StoredMessage, 'accountId'>,
): Promise<Account | null> {
  return (await store.listAccounts()).find(({ id }) => id === accountId) ?? null;
}

export function createMessageNotFound(id: string): ErrorResult {
  return createNotFound('id', `there is no message ${id}; \`postrider message list\` lists messages`);
}

export const retryMessage = defineOperation({
  name: 'message.retry',
  id: 'retryMessage',
  summary: 'Make a queued message due now, or return an uncertain message to the queue',
  ...changes('support'),
  input: Type.Object({ id: MessageId }),
  result: Type.Object({ id: Type.Uuid(), state: Type.Enum(['queued']) }),
  errors: ['not-found', 'conflict'],
  async run({ id }, { store, clock, publish }) {
    const rejection = toRejection(id, await store.retryMessage(id, clock.now()), 'retried');
    if (rejection !== null) return rejection;
    publish({ type: 'message.retried', at: clock.now(), id });
    return ok({ id, state: 'queued' as const });
  },
});

export const cancelMessage = defineOperation({
  name: 'message.cancel',
  id: 'cancelMessage',
  summary: 'Cancel a queued or uncertain message',
  ...changes('support'),
  input: Type.Object({ id: MessageId }),
  result: Type.Object({ id: Type.Uuid(), state: Type.Enum(['cancelled']) }),
  errors: ['not-found', 'conflict'],
  async run({ id }, { store, clock, publish }) {
    const message = await store.findMessage(id);
    const rejection = toRejection(id, await store.cancelMessage(id, clock.now()), 'cancelled');
    if (rejection !== null) return rejection;
    publish({ type: 'message.cancelled', at: clock.now(), id, to: message?.to ?? null });
    return ok({ id, state: 'cancelled' as const });
  },
});

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

/** The new message is accepted like every message: lock, limits, sender domain and suppression lists apply. */
export const resendMessage = defineOperation({
  name: 'message.resend',
  id: 'resendMessage',
  summary: 'Submit an ended message again as a new message',
  ...changes('support'),
  input: Type.Object({ id: MessageId }),
  result: Type.Object({
    id: Type.Uuid('The id of the new message.'),
    resendOf: Type.Uuid('The id of the ended message.'),
    state: Type.Enum(
      ['queued', 'suppressed'],
      'The state of the new message. `suppressed`: the recipient is on a suppression list, and nothing is sent.',
    ),
  }),
  errors: ['not-found', 'conflict'],
  async run({ id }, context) {
    const { store, clock, random, warn } = context;
    const originalMessage = await store.findMessage(id);
    if (originalMessage === null) return createMessageNotFound(id);
    const now = clock.now();
    const isSenderAuthorized = await createSenderCheck(context);
    if (!isSenderAuthorized(originalMessage))
      return createConflict(
        'id',
        `the domain of the sender ${originalMessage.from} is not authenticated for the account; \`postrider domain list\` shows the domains`,
      );
    const result = await store.resendMessage({ id, newId: createOperatorMessageId(now, random) }, now);
    if (result.kind !== 'done')
      return toResendError(id, (await findAccount(store, originalMessage))?.name ?? 'NAME', result);
    const { id: newId, state, to } = result.message;
    publishResent(result.message, context);
    if (state === 'suppressed') warn('suppressed', `${to} is on a suppression list, so message ${newId} was not sent`);
    return ok({ id: newId, resendOf: id, state });
  },
});

const REFUSAL_TEXTS = {
  'volume-exhausted': 'the volume of its account is exhausted',
  'volume-expired': 'the volume of its account has expired',
  'rate-limit-exceeded': 'the rate limit of its account is exceeded',
} as const;

function toResendError(id: string, account: string, result: Exclude<ResendResult, { kind: 'done' }>): ErrorResult {
  return result.kind === 'missing'
    ? createMessageNotFound(id)
    : createConflict('id', describeResendFault(id, account, result));
}

function describeResendFault(
  id: string,
  account: string,
  result: Exclude<ResendResult, { kind: 'done' | 'missing' }>,
): string {
  switch (result.kind) {
    case 'not-ended':
      return `message ${id} is ${result.state}; only an ended message can be sent again. Retry or cancel it instead`;
    case 'erased':
      return `the body of message ${id} was erased (POSTRIDER_KEEP_BODY), so it cannot be sent again`;
    case 'locked':
      return `account ${account} of message ${id} is locked; \`postrider account unlock ${account}\` unlocks it`;
    case 'refused':
      return `message ${id} was not sent again: ${REFUSAL_TEXTS[result.reason]}; \`postrider account set ${account}\` changes it`;
  }
}

function publishResent(
  { id, accountId, keyId, to, from, acceptedAt, state }: ResentMessage,
  { publish, clock }: Pick<OperationContext, 'publish' | 'clock'>,
): void {
  const at = clock.now();
  const tookMs = Math.max(0, at - acceptedAt);
  publish({ type: 'message.accepted', at, id, accountId, keyId, to, from, state, acceptedAt, tookMs });
  if (state === 'suppressed') publish({ type: 'message.suppressed', at, id, accountId, to });
}

/** The rule is the same as in the public interface. */
async function createSenderCheck({
  store,
  settings,
}: Pick<OperationContext, 'store' | 'settings'>): Promise<
  (message: Pick<StoredMessage, 'accountId' | 'from'>) => boolean
> {
  if (!requiresAuthenticatedSender(settings)) return () => true;
  const domains = await store.listDomains();
  const domainsByName = new Map(domains.map((domain) => [domain.name, domain]));
  return (message) => {
    const domain = findDomainOfSender(message, domainsByName);
    return domain !== null && maySend(domain);
  };
}

function findDomainOfSender(
  { accountId, from }: Pick<StoredMessage, 'accountId' | 'from'>,
  domains: ReadonlyMap<string, SendingDomain>,
): SendingDomain | null {
  return findSendingDomain((name) => domains.get(name), accountId, parseAddress(from)?.domain ?? '');
}

const MessageSource = Type.Object({
  id: Type.Uuid(),
  source: Type.String('The message with its header fields, or only the header fields, with CRLF line ends.'),
  bytes: Type.Integer({ minimum: 0, description: 'The size of the whole message in bytes.' }),
  signature: Type.Enum(
    ['none', 'same-keys', 'other-keys'],
    'The DKIM signatures of the source. `none`: the source is not signed, because no key signs for the domain of the sender now. `same-keys`: no key was activated after the last attempt. `other-keys`: a key was activated after the last attempt, so the signatures differ from the transmitted ones.',
  ),
  replacedFields: Type.Array(
    Type.String(),
    'The header fields, in lower case, that the provider of the transport replaces after the transmission.',
  ),
});
export type MessageSource = Static<typeof MessageSource>;

/**
 * The service stores no source. The Date field is the time of acceptance, and every attempt has the same Message-ID.
 */
export const showMessageSource = defineOperation({
  name: 'message.source',
  id: 'showMessageSource',
  summary: 'Show the raw source of a message, composed with the current settings and keys',
  ...readsContent('support'),
  input: Type.Object({
    id: MessageId,
    headersOnly: Type.Flag('Only the header fields.'),
  }),
  result: MessageSource,
  errors: ['not-found'],
  async run({ id, headersOnly }, { store, settings, clock }) {
    const message = await store.findMessage(id);
    if (message === null) return createMessageNotFound(id);
    if (message.message === null)
      return createNotFound('id', `the body of message ${id} was erased (POSTRIDER_KEEP_BODY), so it has no source`);
    const domains = await store.listDomains();
    const account = await findAccount(store, message);
    const { transport } = findRouteOfMessage(settings, message);
    await checkSecret(settings, store);
    // Composes the message as the queue does. A message whose domain has no key gets no signature.
    const cache = new DomainCache({ clock, publish: () => undefined });
    cache.apply({ domains, removedDomains: [] });
    const prepare = createPrepare({
      ...createSourceParts({ ...settings, transport }),
      domains: cache,
      findConfigurationSet: () => account?.sesConfigurationSet ?? null,
      onError: () => undefined,
    });
    const source: Omit<LeasedMessage, 'heldMs' | 'attempts' | 'lease'> = { ...message, message: message.message };
    const { data } = await prepare(source);
    const text = data.toString('utf8');
    return ok({
      id,
      source: headersOnly ? text.slice(0, text.indexOf('\r\n\r\n') + 2) : text,
      bytes: data.length,
      signature: describeSignature(message, domains),
      replacedFields: [...listReplacedFields(transport)],
    });
  },
});

/** Of the last attempt. */
function findRouteOfMessage({ routes, transport }: Settings, { events }: StoredMessage): RouteSetting {
  const route = events.findLast(({ attempt }) => attempt !== null)?.attempt?.route ?? DEFAULT_ROUTE;
  return routes.find(({ name }) => name === route) ?? { name: DEFAULT_ROUTE, transport };
}

function describeSignature(message: StoredMessage, domains: readonly SendingDomain[]): MessageSource['signature'] {
  const domain = findDomainOfSender(message, new Map(domains.map((domain) => [domain.name, domain])));
  if (domain === null || domain.authenticatedAt === null) return 'none';
  const lastAttempt = message.events.findLast(({ attempt }) => attempt !== null)?.attempt ?? null;
  const startedAt = lastAttempt?.startedAt ?? Number.POSITIVE_INFINITY;
  const hasNewerKey = getSigningKeys(domain).some(
    ({ activatedAt, createdAt }) => (activatedAt ?? createdAt) > startedAt,
  );
  return hasNewerKey ? 'other-keys' : 'same-keys';
}

const MAX_BATCH_MESSAGES = 50;
const MAX_FILTER_LENGTH = 500;

/**
 * Performs one batch; the caller passes the returned cursor to the next. A run proceeds from the newest message, so
 * messages that arrive meanwhile are not changed. One audit log entry has the counts of all batches.
 */
export const changeMessages = defineOperation({
  name: 'message.change',
  id: 'changeMessages',
  summary: 'Retry, cancel or resend the messages that match a filter, one batch per call',
  ...changes('support'),
  input: Type.Object({
    action: Type.Enum(
      BULK_ACTIONS,
      'The action. `resend` submits each message at most once, even if several operators run it.',
    ),
    ...filterMembers,
    cursor: Type.OptionalString('`next` of the previous batch; the action and the filters must be the same.'),
  }),
  result: Type.Object({
    done: Type.Integer('The number of messages of this batch that were changed.'),
    refused: Type.Integer('The number of messages of this batch that could not be changed.'),
    reasons: Type.Array(
      Type.String(),
      'The distinct reasons why messages were refused, such as `wrong-state` or `already-resent`.',
    ),
    next: Type.NullableString('The `cursor` of the next batch; null after the last batch.'),
  }),
  errors: ['not-found'],
  async run({ action, cursor, ...input }, context) {
    const { store, clock, random } = context;
    const now = clock.now();
    const members = listFilterMembers(input);
    if (members.length === 0)
      return createInvalidTemplate(
        null,
        () => 'a change of many messages needs at least one filter, such as the state',
      );
    const filter = await readFilter(input, await store.listAccounts(), now, store);
    if (!filter.ok) return filter;
    const position = parsePosition(action, members, cursor);
    if (!position.ok) return position;
    const { entry, before } = position.value;
    const page = await store.searchMessages({ ...filter.value, before, limit: MAX_BATCH_MESSAGES }, MAX_STORE_CALL_MS);
    const isAuthorized = action === 'resend' ? await createSenderCheck(context) : () => true;
    const authorizedMessages = page.messages.filter(isAuthorized);
    const unauthorizedCount = page.messages.length - authorizedMessages.length;
    const filterText = members.map(([name, value]) => `${name}=${value}`).join(' ');
    const result = await store.changeMessages(
      {
        action,
        targets: authorizedMessages.map(({ id }) => ({ id, newId: createOperatorMessageId(now, random) })),
        filter: filterText.slice(0, MAX_FILTER_LENGTH),
        refused: unauthorizedCount,
        entry,
        isLast: page.searchedTo === null,
      },
      now,
    );
    const recipients = new Map(page.messages.map(({ id, to }) => [id, to]));
    const reasons = new Set<string>();
    let doneCount = 0;
    for (const outcome of result.outcomes) {
      if (outcome.kind === 'refused') reasons.add(outcome.reason);
      else {
        doneCount += 1;
        publishOutcome(action, outcome, recipients.get(outcome.id) ?? null, context);
      }
    }
    if (unauthorizedCount > 0) reasons.add('sender-not-authenticated');
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
  { id, resent }: Extract<BulkOutcome, { kind: 'done' }>,
  to: string | null,
  context: Pick<OperationContext, 'publish' | 'clock'>,
): void {
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

/** The number of the audit log entry, and a search cursor whose digest includes the action and this number. */
function formatPosition(action: string, members: FilterMembers, entry: number | null, searchedTo: string): string {
  const entryNumber = String(entry ?? 0);
  return `${entryNumber}.${encodeCursor([action, entryNumber, ...members.flat()], searchedTo)}`;
}

function parsePosition(
  action: string,
  members: FilterMembers,
  cursor: string | undefined,
): Result<{ readonly entry: number | null; readonly before: string | null }> {
  if (cursor === undefined) return ok({ entry: null, before: null });
  const [entryNumber = '', searchCursor = ''] = cursor.split('.', 2);
  const before = decodeCursor([action, entryNumber, ...members.flat()], searchCursor);
  const entry = Number(entryNumber);
  if (before === null || !Number.isSafeInteger(entry) || entry < 0)
    return createInvalidTemplate('cursor', () => 'the cursor belongs to another run; omit it to start a new run');
  return ok({ entry: entry === 0 ? null : entry, before });
}
