/** The operations on the names of senders. */
import type { Static } from 'typebox';
import { createFault, createParseResult, quote } from '../config/units.ts';
import { formatAddrSpec, parseSenderAddress } from '../model/address.ts';
import { parseAddressPattern } from '../model/address-pattern.ts';
import { MAX_SENDERS, type SenderEntry as StoredEntry } from '../model/sender.ts';
import { createAccountNotFound, createInvalid, createNotFound, ok } from './errors.ts';
import { changes, defineOperation, reads } from './operation.ts';
import { AccountName, createParsed, Type } from './schemas.ts';

export const SenderEntry = Type.Object({
  account: Type.String(),
  sender: Type.String('The address, the domain (`@example.com`) or its subdomains (`@*.example.com`).'),
  name: Type.NullableString('The name in From; null: a less specific entry, or no name.'),
  replyTo: Type.NullableString('The address in Reply-To; null: a less specific entry, or no Reply-To.'),
});
export type SenderEntry = Static<typeof SenderEntry>;

export const RemovedSender = Type.Object({ account: Type.String(), sender: Type.String() });

const MAX_NAME_LENGTH = 128;
/** Line breaks and other controls, unpaired surrogates, and what changes the direction of text. */
const FORBIDDEN_IN_NAME = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

const Sender = createParsed(
  'The address of the sender, a domain such as `@example.com`, or its subdomains: `@*.example.com`.',
  parseAddressPattern,
);

export const setSender = defineOperation({
  name: 'sender.set',
  id: 'setSender',
  summary: 'Set the name and the Reply-To of a sender; omitted members do not change',
  ...changes('operator'),
  input: Type.Object({
    account: AccountName,
    sender: Sender,
    name: Type.OptionalParsed<string | null>(
      { minLength: 0, description: 'The name in From; an empty name removes it.' },
      (text) => {
        if (text === '') return createParseResult(null);
        if (FORBIDDEN_IN_NAME.test(text) || text.trim() !== text)
          return createFault(`${quote(text)} has a line break, another control character, or white space at an end`);
        return text.length > MAX_NAME_LENGTH
          ? createFault(`has ${text.length} characters; the maximum is ${MAX_NAME_LENGTH}`)
          : createParseResult(text);
      },
    ),
    replyTo: Type.OptionalParsed<string | null>(
      { minLength: 0, description: 'The address that receives replies; an empty address removes it.' },
      (text) => {
        if (text === '') return createParseResult(null);
        const address = parseSenderAddress(text);
        return address?.isAscii === true
          ? createParseResult(formatAddrSpec(address))
          : createFault(`${quote(text)} is not an address such as help@example.com`);
      },
    ),
  }),
  result: SenderEntry,
  errors: ['not-found'],
  async run({ account, sender, ...change }, { store }) {
    if (Object.keys(change).length === 0)
      return createInvalid('name', 'there is nothing to change; give a name or an address for replies');
    const result = await store.setSender(account, sender, change);
    switch (result.kind) {
      case 'done':
        return ok(toEntry(account, result.value));
      case 'missing':
        return createAccountNotFound(account);
      case 'full':
        return createInvalid('sender', `account ${account} has ${MAX_SENDERS} senders, the maximum; remove one first`);
    }
  },
});

export const listSenders = defineOperation({
  name: 'sender.list',
  id: 'listSenders',
  summary: 'List the senders with a name or a Reply-To',
  ...reads('viewer'),
  input: Type.Object({ account: Type.OptionalString('The name of the account; without it, of all accounts.') }),
  result: Type.Array(SenderEntry),
  errors: ['not-found'],
  async run({ account }, { store }) {
    const accounts = (await store.listAccounts()).filter(({ name }) => account === undefined || name === account);
    if (account !== undefined && accounts.length === 0) return createAccountNotFound(account);
    return ok(accounts.flatMap(({ name, senders }) => senders.map((entry) => toEntry(name, entry))));
  },
});

export const removeSender = defineOperation({
  name: 'sender.remove',
  id: 'removeSender',
  summary: 'Remove the name and the Reply-To of a sender',
  ...changes('operator'),
  input: Type.Object({ account: AccountName, sender: Sender }),
  result: RemovedSender,
  errors: ['not-found'],
  async run({ account, sender }, { store }) {
    const result = await store.removeSender(account, sender);
    if (result.kind === 'missing') return createAccountNotFound(account);
    return result.value
      ? ok({ account, sender })
      : createNotFound('sender', `account ${account} has no entry ${sender}; \`postrider sender list\` lists senders`);
  },
});

function toEntry(account: string, { pattern, name, replyTo }: StoredEntry): SenderEntry {
  return { account, sender: pattern, name, replyTo };
}
