/** `postrider key …`: makes, lists, revokes and rotates API keys. A key is printed once, by the command that makes it. */
import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { isoTime, parseDuration, parseMoment, quote } from '../config/units.ts';
import type { ApiKey, Changed } from '../model/account.ts';
import { newApiKey } from '../model/api-key.ts';
import { time, timeOr } from '../printing/text.ts';
import { checkText } from './account.ts';
import { type Context, noAccount } from './context.ts';
import { CommandFailure, flagValue } from './failure.ts';
import { type Cell, table } from './text.ts';

/** Adds the commands. */
export function addKeyCommands(program: Command, context: Context): void {
  const group = program.command('key').description('API keys').helpCommand(false);
  const create = group.command('create <account>').description('make a key and print it, this once');
  create
    .option('--name <name>', 'to tell keys apart', 'default')
    .option('--expires <when>', 'date (UTC) or 90d; never unless given');
  create.option('--json', 'for machines: {"id","key"}');
  create.action(async (account: string, flags: { name: string; expires?: string; json?: boolean }) => {
    checkText('--name', flags.name, 64);
    const now = context.clock.now();
    const expiresAt =
      flags.expires === undefined ? null : flagValue('--expires', parseMoment(flags.expires, now, 'ahead'));
    const { key, prefix, hash } = newApiKey(randomBytes);
    const made = done(
      await context.withStore((store) => store.createKey(account, { name: flags.name, prefix, hash, expiresAt }, now)),
      () => noAccount(account),
    );
    if (flags.json) context.json({ id: keyName(made.id), key });
    else
      context.out(
        `${key}\n\nThis is ${keyName(made.id)} of account ${account}. It is shown only now; expires: ${timeOr(expiresAt, 'never')}.\n`,
      );
  });

  const list = group
    .command('list <account>')
    .description('list the keys of an account')
    .option('--json', 'for machines');
  list.action(async (account: string, flags: { json?: boolean }) => {
    const keys = done(await context.withStore((store) => store.listKeys(account)), () => noAccount(account));
    const now = context.clock.now();
    if (flags.json) context.json(keys.map((key) => keyJson(key, account, now)));
    else if (keys.length === 0)
      context.out(`account ${account} has no keys; make one with \`postrider key create ${account}\`\n`);
    else context.out(keyTable(keys, now));
  });

  const revoke = group.command('revoke <id>').description('refuse a key from now on').option('--json', 'for machines');
  revoke.action(async (id: string, flags: { json?: boolean }) => {
    const number = parseKeyName(id);
    const now = context.clock.now();
    const key = done(await context.withStore((store) => store.revokeKey(number, now)), () => noKey(number));
    if (flags.json) context.json({ id: keyName(key.id), revoked: isoTime(key.revokedAt ?? now) });
    else context.out(`revoked ${keyName(key.id)} (${key.prefix}…)\n`);
  });

  const rotate = group.command('rotate <id>').description('make a new key that replaces an old one');
  rotate
    .option('--grace <duration>', 'how long the old key still works', '24h')
    .option('--json', 'for machines: {"id","key","replaces","until"}');
  rotate.action(async (id: string, flags: { grace: string; json?: boolean }) => {
    const number = parseKeyName(id);
    const now = context.clock.now();
    const until = now + flagValue('--grace', parseDuration(flags.grace));
    const { key, prefix, hash } = newApiKey(randomBytes);
    const made = done(await context.withStore((store) => store.rotateKey(number, { prefix, hash }, until, now)), () =>
      noKey(number),
    );
    const old = keyName(number);
    if (flags.json) context.json({ id: keyName(made.id), key, replaces: old, until: isoTime(until) });
    else
      context.out(
        `${key}\n\nThis is ${keyName(made.id)}. It is shown only now; ${old} works until ${time(until)} at the latest.\n`,
      );
  });
}

/** The id of a key as people see it. */
function keyName(id: number): string {
  return `key_${id}`;
}

/** `key_12` or `12`. */
function parseKeyName(text: string): number {
  const digits = text.startsWith('key_') ? text.slice(4) : text;
  const id = /^[1-9]\d{0,14}$/.test(digits) ? Number(digits) : null;
  if (id === null)
    throw new CommandFailure(
      `${quote(text)} is not a key id such as key_12; \`postrider key list ACCOUNT\` shows them`,
      2,
    );
  return id;
}

function noKey(id: number): CommandFailure {
  return new CommandFailure(
    `there is no working key ${keyName(id)}; \`postrider key list ACCOUNT\` shows what there is`,
  );
}

function done<T>(changed: Changed<T>, missing: () => CommandFailure): T {
  switch (changed.kind) {
    case 'done':
      return changed.value;
    case 'missing':
      throw missing();
    case 'exists':
      throw new CommandFailure('the store has that key already; run the command again');
  }
}

function stateOf(key: ApiKey, now: number): 'active' | 'expired' | 'revoked' {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && key.expiresAt <= now ? 'expired' : 'active';
}

function keyJson(key: ApiKey, account: string, now: number): object {
  const iso = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
  return {
    id: keyName(key.id),
    account,
    name: key.name,
    prefix: key.prefix,
    state: stateOf(key, now),
    created: isoTime(key.createdAt),
    expires: iso(key.expiresAt),
    revoked: iso(key.revokedAt),
    lastUsed: iso(key.lastUsedAt),
  };
}

function keyTable(keys: readonly ApiKey[], now: number): string {
  const rows = keys.map((key): Cell[] => {
    const state = stateOf(key, now);
    const times = [time(key.createdAt), timeOr(key.expiresAt, 'never'), timeOr(key.lastUsedAt, 'never')];
    return [
      keyName(key.id),
      key.name,
      `${key.prefix}…`,
      { text: state, style: state === 'active' ? 'good' : 'quiet' },
      ...times,
    ];
  });
  return table(['ID', 'NAME', 'KEY', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'], rows);
}
