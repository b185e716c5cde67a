/** `postrider account …`: makes, changes, shows, locks and unlocks accounts. */
import type { Command } from 'commander';
import { parseCount, parseMoment, parsePercent, parseRate, parseThrottle, quote } from '../config/units.ts';
import type { Account, AccountLimits, Guarded } from '../model/account.ts';
import type { Thresholds, WindowCounts } from '../model/reputation.ts';
import type { Store } from '../store/contract.ts';
import { accountJson, accountLine, accountPairs, accountTable } from './account-text.ts';
import { type Context, findAccount, noAccount } from './context.ts';
import { CommandFailure, flagValue } from './failure.ts';

interface LimitFlags {
  /** False by `--no-volume`. */
  readonly volume?: string | false;
  readonly volumeExpires?: string;
  readonly rate?: string;
  readonly throttle?: string;
  readonly maxBounces?: string;
  readonly maxComplaints?: string;
  readonly expected?: string;
  readonly json?: boolean;
}

/** Adds the commands. */
export function addAccountCommands(program: Command, context: Context): void {
  const group = program.command('account').description('accounts and their limits').helpCommand(false);
  withLimitFlags(group.command('create <name>').description('make an account')).action(
    async (name: string, flags: LimitFlags) => {
      checkLabel('NAME', name);
      if (name === '*')
        throw new CommandFailure('NAME: "*" stands for the suppression list of the whole service; choose another', 2);
      const limits = {
        volume: null,
        volumeExpiresAt: null,
        rate: null,
        throttle: null,
        ...limitsOf(flags, context.clock.now()),
      };
      const account = await change(context, name, (store, now) => store.createAccount(name, limits, now));
      report(context, account, flags.json, `made account ${account.name}`);
    },
  );
  const set = withLimitFlags(group.command('set <name>').description('change limits; what is not named stays'));
  withExpected(set).option(
    '--max-bounces <percent>',
    'hard bounces of 7 days that lock the account, such as 10%; 100% never does',
  );
  set.option('--max-complaints <percent>', 'complaints of 7 days that lock it, such as 0.15%; 100% never does');
  set.action(async (name: string, flags: LimitFlags) => {
    const changes = { ...limitsOf(flags, context.clock.now()), ...thresholdsOf(flags) };
    if (Object.keys(changes).length === 0) {
      const flagsThere = '--volume, --volume-expires, --rate, --throttle, --max-bounces or --max-complaints';
      throw new CommandFailure(`nothing to set; give ${flagsThere}`, 2);
    }
    const account = await change(context, name, (store, now) => store.setAccount(name, changes, now, flags.expected));
    report(context, account, flags.json, `changed account ${account.name}`);
  });
  const list = group.command('list').description('list accounts').option('--json', 'for machines');
  list.action(async (flags: { json?: boolean }) => {
    const now = context.clock.now();
    const [accounts, windows] = await context.withStore((store) =>
      Promise.all([store.listAccounts(), store.reputations(now)]),
    );
    const counts = ({ id }: Account) => windows.get(id) ?? { emails: 0, bounces: 0, complaints: 0 };
    if (flags.json) context.json(accounts.map((account) => accountJson(account, now, counts(account))));
    else if (accounts.length === 0) context.out('no accounts; make one with `postrider account create NAME`\n');
    else context.out(accountTable(accounts, now));
  });
  const show = group.command('show <name>').description('show one account').option('--json', 'for machines');
  show.action(async (name: string, flags: { json?: boolean }) => {
    const now = context.clock.now();
    const [account, counts] = await context.withStore(async (store) => {
      const found = await findAccount(store, name);
      const window = await store.reputationOf(name, now);
      return [found, window.kind === 'done' ? window.value : null] as const;
    });
    report(context, account, flags.json, null, counts);
  });
  const lock = group.command('lock <name>').description('refuse its keys and hold its queued mail back');
  lock.requiredOption('--reason <text>', 'why, for the record').option('--json', 'for machines');
  withExpected(lock).action(async (name: string, flags: { reason: string; expected?: string; json?: boolean }) => {
    const { reason, expected } = flags;
    checkText('--reason', reason, 500);
    const account = await change(context, name, (store, now) => store.lockAccount(name, reason, now, expected));
    report(context, account, flags.json, `locked account ${account.name}`);
  });
  const unlock = group.command('unlock <name>').description('take its keys again').option('--json', 'for machines');
  withExpected(unlock).action(async (name: string, flags: { expected?: string; json?: boolean }) => {
    const account = await change(context, name, (store, now) => store.unlockAccount(name, now, flags.expected));
    report(context, account, flags.json, `unlocked account ${account.name}`);
  });
}

function withLimitFlags(command: Command): Command {
  return command
    .option('--volume <n>', 'emails in all, counted from now; or unlimited')
    .option('--no-volume', 'the same as --volume unlimited')
    .option('--volume-expires <when>', 'date (UTC) or 30d, after which nothing is accepted; or never')
    .option('--rate <n/period>', 'such as 1000/1h, over which 403 is answered; or none')
    .option('--throttle <n/s>', 'such as 50/s or 50/s:200 (burst), over which 429 is answered; or none')
    .option('--json', 'for machines');
}

function withExpected(command: Command): Command {
  return command.option('--expected <version>', 'only while it has this version (`account show --json`)');
}

/** Only what the flags name. @throws CommandFailure */
function limitsOf(flags: LimitFlags, now: number): Partial<AccountLimits> {
  const limits: { -readonly [K in keyof AccountLimits]?: AccountLimits[K] } = {};
  const { volume, volumeExpires, rate, throttle } = flags;
  if (volume === false || volume === 'unlimited') {
    // No end in number and none in time, unless --volume-expires says otherwise below.
    limits.volume = null;
    limits.volumeExpiresAt = null;
  } else if (typeof volume === 'string') {
    limits.volume = flagValue('--volume', parseCount(volume, 0, Number.MAX_SAFE_INTEGER));
  }
  if (volumeExpires === 'never') limits.volumeExpiresAt = null;
  else if (volumeExpires !== undefined) {
    limits.volumeExpiresAt = flagValue('--volume-expires', parseMoment(volumeExpires, now, 'ahead'));
  }
  if (rate !== undefined) limits.rate = rate === 'none' ? null : flagValue('--rate', parseRate(rate));
  if (throttle !== undefined)
    limits.throttle = throttle === 'none' ? null : flagValue('--throttle', parseThrottle(throttle));
  return limits;
}

function thresholdsOf({ maxBounces, maxComplaints }: LimitFlags): Partial<Thresholds> {
  const thresholds: { -readonly [K in keyof Thresholds]?: number } = {};
  if (maxBounces !== undefined) thresholds.bounceRate = flagValue('--max-bounces', parsePercent(maxBounces));
  if (maxComplaints !== undefined)
    thresholds.complaintRate = flagValue('--max-complaints', parsePercent(maxComplaints));
  return thresholds;
}

async function change(
  context: Context,
  name: string,
  work: (store: Store, now: number) => Promise<Guarded<Account>>,
): Promise<Account> {
  const changed = await context.withStore((store) => work(store, context.clock.now()));
  switch (changed.kind) {
    case 'done':
      return changed.value;
    case 'missing':
      throw noAccount(name);
    case 'exists':
      throw new CommandFailure(
        `there is an account ${JSON.stringify(name)} already; choose another name, or change that one: \`postrider account set --help\``,
      );
    case 'stale':
      throw new CommandFailure(
        `somebody else changed account ${JSON.stringify(name)} meanwhile, so nothing was done; it is now: ${accountLine(changed.value)}`,
      );
  }
}

/** A name that can be typed again and that no terminal misreads. */
export function checkLabel(what: string, text: string): void {
  checkText(what, text, 64);
  if (text.startsWith('-')) throw new CommandFailure(`${what}: ${quote(text)} begins with a hyphen`, 2);
}

export function checkText(what: string, text: string, most: number): void {
  const fits = text.length >= 1 && text.length <= most && text.trim() === text && !/\p{C}/u.test(text);
  if (!fits) throw new CommandFailure(`${what}: ${quote(text)} is not 1 to ${most} visible characters`, 2);
}

function report(
  context: Context,
  account: Account,
  json: boolean | undefined,
  done: string | null,
  counts: WindowCounts | null = null,
): void {
  const now = context.clock.now();
  if (json) context.json(accountJson(account, now, counts));
  else context.out((done === null ? '' : `${done}\n\n`) + accountPairs(account, now, counts));
}
