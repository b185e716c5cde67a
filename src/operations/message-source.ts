/** The schema of the raw source of a message. */
import type { Static } from 'typebox';
import { checkSecret, createSourceParts, listReplacedFields } from '../domains/setup.ts';
import { createPrepare, DomainCache } from '../domains/signing.ts';
import type { Account } from '../model/account.ts';
import { parseAddress } from '../model/address.ts';
import { findSendingDomain, getSigningKeys, type SendingDomain } from '../model/domain.ts';
import type { LeasedMessage, StoredMessage } from '../model/message.ts';
import { Type } from '../model/schema.ts';
import { createNotFound, ok } from './errors.ts';
import { createMessageNotFound, parseMessageId } from './messages.ts';
import { defineOperation, type OperationContext } from './operation.ts';
import { createStringEnum, MessageId } from './schemas.ts';

const SIGNATURES = ['none', 'same-keys', 'other-keys'] as const;

export const MessageSource = Type.Object({
  id: Type.String({ format: 'uuid' }),
  source: Type.String({
    description: 'The message with its header fields, or only the header fields, with CRLF line ends.',
  }),
  bytes: Type.Integer({ minimum: 0, description: 'The size of the whole message in bytes.' }),
  signature: createStringEnum(SIGNATURES, {
    description:
      'The DKIM signatures of the source. `none`: the source is not signed, because no key signs for the domain of the sender now. `same-keys`: no key was activated after the last attempt. `other-keys`: a key was activated after the last attempt, so the signatures differ from the transmitted ones.',
  }),
  replacedFields: Type.Array(Type.String(), {
    description:
      'The header fields, in lower case, that the provider of the transport replaces after the transmission.',
  }),
});

export type MessageSource = Static<typeof MessageSource>;

/** Composes the raw source of a message. Fails with `not-found` after the erasure of its body. */
export const showMessageSource = defineOperation({
  name: 'message.source',
  id: 'showMessageSource',
  summary: 'Show the raw source of a message, composed with the current settings and keys',
  makesChange: false,
  role: 'support',
  readsContent: true,
  input: Type.Object({
    id: MessageId,
    headersOnly: Type.Boolean({ default: false, description: 'Only the header fields.' }),
  }),
  result: MessageSource,
  errors: ['not-found'],
  async run({ id: idText, headersOnly }, context) {
    const id = parseMessageId('id', idText);
    if (!id.ok) return id;
    const { store, settings } = context;
    const message = await store.findMessage(id.value);
    if (message === null) return createMessageNotFound(id.value);
    const { message: body } = message;
    if (body === null) {
      return createNotFound(
        'id',
        `the body of message ${id.value} was erased (POSTRIDER_KEEP_BODY), so it has no source`,
      );
    }
    const domains = await store.listDomains();
    const account = (await store.listAccounts()).find((candidate) => candidate.id === message.accountId) ?? null;
    await checkSecret(settings, store);
    const data = await composeSource({ ...message, message: body }, domains, account, context);
    const text = data.toString('utf8');
    return ok({
      id: id.value,
      source: headersOnly ? text.slice(0, text.indexOf(EMPTY_LINE) + LINE_END.length) : text,
      bytes: data.length,
      signature: describeSignature(message, domains),
      replacedFields: [...listReplacedFields(settings)],
    });
  },
});

const LINE_END = '\r\n';
const EMPTY_LINE = '\r\n\r\n';

/** Composes the message as the queue does. A message whose domain has no key is composed without a signature. */
async function composeSource(
  message: Omit<LeasedMessage, 'attempts' | 'lease'>,
  domains: readonly SendingDomain[],
  account: Account | null,
  { clock, settings }: Pick<OperationContext, 'clock' | 'settings'>,
): Promise<Buffer> {
  const cache = new DomainCache({ clock, publish: () => undefined });
  cache.apply({ domains, removedDomains: [] });
  const prepare = createPrepare({
    ...createSourceParts(settings),
    domains: cache,
    findConfigurationSet: () => account?.sesConfigurationSet ?? null,
    onError: () => undefined,
  });
  const { data } = await prepare(message);
  return data;
}

/** Returns the value of `signature`, which depends on the keys of the sender’s domain and on the last attempt. */
function describeSignature(
  { accountId, from, events }: StoredMessage,
  domains: readonly SendingDomain[],
): MessageSource['signature'] {
  const domainsByName = new Map(domains.map((domain) => [domain.name, domain]));
  const domain = findSendingDomain((name) => domainsByName.get(name), accountId, parseAddress(from)?.domain ?? '');
  if (domain === null || domain.authenticatedAt === null) return 'none';
  const lastAttempt = events.findLast(({ attempt }) => attempt !== null)?.attempt ?? null;
  const startedAt = lastAttempt?.startedAt ?? Number.POSITIVE_INFINITY;
  const hasNewerKey = getSigningKeys(domain).some(
    ({ activatedAt, createdAt }) => (activatedAt ?? createdAt) > startedAt,
  );
  return hasNewerKey ? 'other-keys' : 'same-keys';
}
