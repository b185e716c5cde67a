/**
 * Submits an ended message again as a new message. The new message is accepted like every message: the lock and the
 * limits of the account, the domain of the sender and the suppression lists apply. The new message has a new id, and
 * its age starts at zero. The histories of the ended message and of the new message refer to each other.
 */
import { parseAddress } from '../model/address.ts';
import { findSendingDomain, maySend } from '../model/domain.ts';
import type { ResendResult, ResentMessage, StoredMessage } from '../model/message.ts';
import { Type } from '../model/schema.ts';
import { createOperatorMessageId, requiresAuthenticatedSender } from '../model/submission.ts';
import type { OperationContext } from './context.ts';
import { createConflict, type ErrorResult, ok } from './errors.ts';
import { createMessageNotFound, parseMessageId } from './messages.ts';
import { defineOperation } from './operation.ts';
import { createStringEnum, MessageId } from './schemas.ts';

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
