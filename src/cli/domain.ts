/** `postrider domain …`: the domains that accounts send from. What the commands do is loaded when one of them runs. */
import type { Command } from 'commander';
import { quote } from '../config/units.ts';
import type { Context } from './context.ts';
import type { addDomain, DomainFlags } from './domain-actions.ts';
import { CommandFailure } from './failure.ts';

const JSON_SHAPE = 'for machines: {"domain","status","records"}';
const DETAILS = 'with --json: account, keys and times too, and what was seen of each record';

/** Adds the commands. */
export function addDomainCommands(program: Command, context: Context): void {
  const group = program.command('domain').description('domains to send from').helpCommand(false);
  const actions = () => import('./domain-actions.ts');

  const add = group.command('add <account> <domain>');
  add.description('make keys for a domain and print the records to publish');
  add.option('--subdomains', 'its subdomains may send too');
  add.option('--no-ed25519', 'make the RSA key alone');
  add
    .option('--easy-dkim', 'with ses: let Amazon SES sign with keys of its own too')
    .option('--json', JSON_SHAPE)
    .option('--details', DETAILS);
  add.action(async (account: string, typed: string, flags: Parameters<typeof addDomain>[3]) =>
    (await actions()).addDomain(context, account, typed, flags),
  );

  const records = group.command('records <domain>').description('print the records to publish');
  records
    .option('--json', JSON_SHAPE)
    .option('--details', DETAILS)
    .action(async (typed: string, flags: DomainFlags) => (await actions()).showRecords(context, typed, flags));

  const verify = group.command('verify <domain>');
  verify.description('look its records up; exit code 0 where it is authenticated');
  verify
    .option('--json', JSON_SHAPE)
    .option('--details', DETAILS)
    .action(async (typed: string, flags: DomainFlags) => (await actions()).verifyDomain(context, typed, flags));

  const list = group.command('list').description('list all domains');
  list
    .option('--json', 'for machines: a list of {"domain","status","records"}')
    .option('--details', DETAILS)
    .action(async (flags: DomainFlags) => (await actions()).listDomains(context, flags));

  const rotate = group.command('rotate <domain>');
  rotate.description('stage new keys, which sign once their records are seen');
  rotate
    .option('--cancel', 'drop the staged keys instead')
    .option('--json', JSON_SHAPE)
    .option('--details', DETAILS)
    .action(async (typed: string, flags: DomainFlags & { readonly cancel?: boolean }) => {
      const { cancelStaged, rotateKeys } = await actions();
      await (flags.cancel ? cancelStaged : rotateKeys)(context, typed, flags);
    });

  const remove = group.command('remove <domain>').description('forget a domain and its keys; mail from it is refused');
  remove
    .option('--json', JSON_SHAPE)
    .option('--details', DETAILS)
    .action(async (typed: string, flags: DomainFlags) => (await actions()).removeDomain(context, typed, flags));

  const set = group.command('set <domain>').description('change what a domain allows');
  set
    .requiredOption('--subdomains <yes|no>', 'whether its subdomains may send too')
    .option('--json', JSON_SHAPE)
    .option('--details', DETAILS);
  set.action(async (typed: string, flags: DomainFlags & { readonly subdomains: string }) => {
    const { subdomains } = flags;
    if (subdomains !== 'yes' && subdomains !== 'no')
      throw new CommandFailure(`--subdomains: ${quote(subdomains)} is not yes or no`, 2);
    await (await actions()).setSubdomains(context, typed, subdomains === 'yes', flags);
  });
}
