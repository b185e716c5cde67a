/** `postrider message …`: finds, shows, explains, retries and cancels mail requests. */
import type { Command } from 'commander';
import { isoTime, parseCount, parseMoment, quote } from '../config/units.ts';
import type { Account } from '../model/account.ts';
import { canonicalAddress, parseAddress } from '../model/address.ts';
import type { MailDetails, MailEvent, OperatorAnswer } from '../model/message.ts';
import { isMailId } from '../model/message-id.ts';
import type { Attempt } from '../model/outcome.ts';
import type { ListedSuppression } from '../model/suppression.ts';
import { attemptsOf, explain, LOCAL_FAULT_REMEDY, localFault } from '../operations/messages/explain.ts';
import { printable } from '../printing/escape.ts';
import { time, timeOr } from '../printing/text.ts';
import type { Store } from '../store/contract.ts';
import { type Context, findAccount } from './context.ts';
import { CommandFailure, flagValue } from './failure.ts';
import { mailTable, parseState, summaryJson } from './mail-lines.ts';
import { addSearchCommand } from './message-search.ts';
import { pairs, stateCell, styled } from './text.ts';

const MOST_LISTED = 100_000;

interface ListFlags {
  readonly account?: string;
  readonly state?: string;
  readonly to?: string;
  readonly since?: string;
  readonly before?: string;
  readonly limit: string;
  readonly json?: boolean;
}

/** Adds the commands. */
export function addMessageCommands(program: Command, context: Context): void {
  const group = program.command('message').description('mail requests').helpCommand(false);
  const list = group.command('list').description('list mail requests, newest first');
  list
    .option('--account <name>', 'of one account')
    .option('--state <state>', 'in one state')
    .option('--to <address>', 'to one recipient');
  list
    .option('--since <when>', 'accepted since a date (UTC), or in the last 24h')
    .option('--before <id>', 'accepted before this one: the last of the page before')
    .option('--limit <n>', 'at most so many', '50');
  list.option('--json', 'for machines');
  list.action((flags: ListFlags) => listMail(context, flags));

  addSearchCommand(group, context);

  const show = group
    .command('show <id>')
    .description('show one with its attempts and events')
    .option('--json', 'for machines');
  show.action(async (id: string, flags: { json?: boolean }) => {
    const { keyName, ...found } = await context.withStore(async (store) => {
      const found = await find(store, id);
      return { ...found, keyName: await nameOfKey(store, found) };
    });
    if (flags.json) context.json(detailsJson(found, keyName));
    else context.out(detailsText(found.mail, found.account));
  });

  const why = group
    .command('explain <id>')
    .description('say what it waits for and what decided')
    .option('--json', 'for machines');
  why.action(async (id: string, flags: { json?: boolean }) => {
    const lines = await context.withStore(async (store, settings) => {
      const { maxAgeMs, keepBodyMs } = settings;
      return explain({
        ...(await find(store, id)),
        service: context.service?.() ?? null,
        now: context.clock.now(),
        maxAgeMs,
        keepBodyMs,
      });
    });
    if (flags.json) context.json({ id: id.toLowerCase(), explanation: lines });
    else context.out(`${lines.map(printable).join('\n')}\n`);
  });

  const retry = group
    .command('retry <id>')
    .description('try a queued one now; put an uncertain one back')
    .option('--json', 'for machines');
  retry.action(async (id: string, flags: { json?: boolean }) => {
    await act(context, id, 'only a queued or uncertain one can be retried', (store, now) =>
      store.retryMail(mailId(id), now),
    );
    if (flags.json) context.json({ id: mailId(id), state: 'queued' });
    else context.out(`mail request ${mailId(id)} is due now\n`);
  });

  const cancel = group
    .command('cancel <id>')
    .description('withdraw a queued or uncertain one')
    .option('--json', 'for machines');
  cancel.action(async (id: string, flags: { json?: boolean }) => {
    await act(context, id, 'only a queued or uncertain one can be cancelled', (store, now) =>
      store.cancelMail(mailId(id), now),
    );
    if (flags.json) context.json({ id: mailId(id), state: 'cancelled' });
    else context.out(`cancelled mail request ${mailId(id)}\n`);
  });
}

async function listMail(context: Context, flags: ListFlags): Promise<void> {
  const limit = flagValue('--limit', parseCount(flags.limit, 1, MOST_LISTED));
  const since =
    flags.since === undefined ? null : flagValue('--since', parseMoment(flags.since, context.clock.now(), 'back'));
  const state = flags.state === undefined ? null : parseState(flags.state);
  const before = flags.before === undefined ? null : mailId(flags.before);
  const found = await context.withStore(async (store) => {
    const accountId = flags.account === undefined ? null : (await findAccount(store, flags.account)).id;
    return store.listMail({ accountId, state, to: flags.to ?? null, since, before, limit });
  });
  if (flags.json) context.json(found.map(summaryJson));
  else if (found.length === 0) context.out('no mail requests match\n');
  else context.out(mailTable(found));
}

/** @throws CommandFailure where the text is no id that Postrider makes. */
function mailId(text: string): string {
  const id = text.toLowerCase();
  if (!isMailId(id)) {
    throw new CommandFailure(
      `${quote(text)} is not the id of a mail request; \`postrider message list\` shows them`,
      2,
    );
  }
  return id;
}

interface Found {
  readonly mail: MailDetails;
  readonly account: Account | null;
  /** Every suppression list that has the recipient now. */
  readonly lists: readonly ListedSuppression[];
}

async function find(store: Store, id: string): Promise<Found> {
  const mail = await store.showMail(mailId(id));
  if (mail === null) throw missing(id);
  const accounts = await store.listAccounts();
  const address = parseAddress(mail.to);
  const lists = address === null ? [] : await store.findSuppression(canonicalAddress(address));
  return { mail, account: accounts.find((account) => account.id === mail.accountId) ?? null, lists };
}

/** Null where the key is gone with its account. */
async function nameOfKey(store: Store, { mail, account }: Found): Promise<string | null> {
  if (account === null) return null;
  const keys = await store.listKeys(account.name);
  return keys.kind === 'done' ? (keys.value.find((key) => key.id === mail.keyId)?.name ?? null) : null;
}

function missing(id: string): CommandFailure {
  return new CommandFailure(`there is no mail request ${mailId(id)}; \`postrider message list\` shows them`);
}

async function act(
  context: Context,
  id: string,
  rule: string,
  work: (store: Store, now: number) => Promise<OperatorAnswer>,
): Promise<void> {
  mailId(id);
  const answer = await context.withStore((store) => work(store, context.clock.now()));
  switch (answer.kind) {
    case 'done':
      return;
    case 'missing':
      throw missing(id);
    case 'wrong-state':
      throw new CommandFailure(`mail request ${mailId(id)} is ${answer.state}; ${rule}`);
  }
}

function detailsJson({ mail, account, lists }: Found, keyName: string | null): object {
  const iso = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
  const attempts = attemptsOf(mail);
  return {
    ...summaryJson(mail),
    account: account?.name ?? null,
    key: `key_${mail.keyId}`,
    keyName,
    // A lease's end for `sending`, the next attempt for `queued`.
    due: iso(mail.dueAt),
    owner: mail.owner,
    tries: mail.attempts,
    ended: iso(mail.endedAt),
    message: mail.message,
    attempts: attempts.map(attemptJson),
    events: mail.events.map((event) => ({
      at: isoTime(event.at),
      verb: event.verb,
      by: event.by,
      detail: event.detail,
      attempt: event.attempt === null ? null : attempts.indexOf(event.attempt),
    })),
    // Those that keep mail of this account from the recipient.
    suppressions: lists
      .filter(({ list }) => list === '*' || list === account?.name)
      .map(({ list, reason, source, at }) => ({ list, reason, source, at: isoTime(at) })),
  };
}

function attemptJson(attempt: Attempt): object {
  const { outcome } = attempt;
  return {
    at: isoTime(attempt.startedAt),
    tookMs: attempt.tookMs,
    remote: attempt.remote,
    outcome: outcome.kind,
    reason: outcome.kind === 'bounced' || outcome.kind === 'deferred' ? outcome.reason : null,
    stage: outcome.reply.stage,
    code: outcome.reply.code,
    enhanced: outcome.reply.enhanced,
    text: outcome.reply.text,
    conversation: attempt.conversation,
  };
}

function detailsText(mail: MailDetails, account: Account | null): string {
  const due =
    mail.dueAt === null ? [] : [[mail.state === 'sending' ? 'leased until' : 'due', time(mail.dueAt)] as const];
  const size = mail.message === null ? 'erased' : `${Buffer.byteLength(mail.message)} bytes (--json shows it)`;
  const head = pairs([
    ['id', mail.id],
    ['state', stateCell(mail.state)],
    ['account', account?.name ?? `(number ${mail.accountId})`],
    ['to', mail.to],
    ['from', mail.from],
    ['subject', mail.subject],
    ['accepted', time(mail.acceptedAt)],
    ...due,
    ['ended', timeOr(mail.endedAt, 'not yet')],
    ['attempts', String(attemptsOf(mail).length)],
    ['body', size],
  ]);
  return `${head}\n${mail.events.map(eventText).join('')}`;
}

function eventText(event: MailEvent): string {
  const fault = event.attempt === null ? null : localFault(event.attempt);
  const said = fault === null ? event.detail : `it ${fault}; ${LOCAL_FAULT_REMEDY}`;
  const detail = said === null ? '' : `  ${printable(said)}`;
  const line = `${time(event.at)}  ${styled('head', event.verb)} by ${printable(event.by)}${detail}\n`;
  const lines = event.attempt?.conversation.map((spoken) => styled('quiet', `    ${printable(spoken)}`)) ?? [];
  return line + lines.map((spoken) => `${spoken}\n`).join('');
}
