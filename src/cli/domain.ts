/** `postrider domain …`: the domains that accounts send from. With `--json` the promised members, and with `--details` all. */
import type { Command } from 'commander';
import {
  addDomain,
  listDomains,
  removeDomain,
  rotateDomain,
  setDomain,
  showDomain,
  verifyDomain,
} from '../operations/domains.ts';
import type { Context } from './context.ts';
import {
  cancelledText,
  domainSummary,
  domainTable,
  recordsText,
  removedText,
  verificationText,
} from './domain-text.ts';
import { operationCommand } from './operation-command.ts';
import { styled } from './text.ts';

const EXTRA = {
  '--details': 'with --json: account, keys and times too, and what was seen of each record',
};

/** Adds the commands. */
export function addDomainCommands(program: Command, context: Context): void {
  const group = program.command('domain').description('domains to send from').helpCommand(false);
  const machine = {
    jsonHelp: 'for machines: {"domain","status","records"}',
    extra: EXTRA,
    json: <T extends Parameters<typeof domainSummary>[0]>(domain: T, { details }: Readonly<Record<string, unknown>>) =>
      details === true ? domain : domainSummary(domain),
  };

  operationCommand(group, context, 'add <account> <domain>', addDomain, {
    ...machine,
    flags: { ed25519: '--no-ed25519' },
    flagHelp: { ed25519: 'Make no Ed25519 key beside the RSA key.' },
    text: (domain) =>
      `${styled('good', `added ${domain.domain} for account ${domain.account}`)}\n\n${recordsText(domain)}`,
  });
  operationCommand(group, context, 'records <domain>', showDomain, { ...machine, text: recordsText });
  operationCommand(group, context, 'verify <domain>', verifyDomain, {
    ...machine,
    help: 'look its records up; exit code 0 where it is authenticated',
    text: (domain, _input, now) => verificationText(domain, now),
    failure: ({ fault }) => fault,
  });
  operationCommand(group, context, 'list', listDomains, {
    jsonHelp: 'for machines: a list of {"domain","status","records"}',
    outputFlags: EXTRA,
    json: (domains, { details }) => (details === true ? domains : domains.map(domainSummary)),
    text: (domains) =>
      domains.length === 0
        ? 'there are no domains; add one with `postrider domain add ACCOUNT DOMAIN`\n'
        : domainTable(domains),
  });
  operationCommand(group, context, 'rotate <domain>', rotateDomain, {
    ...machine,
    text: (domain, { cancel }) =>
      cancel === true
        ? cancelledText(domain)
        : `${styled('good', `staged new keys for ${domain.domain}`)}\n\n${recordsText(domain)}`,
  });
  operationCommand(group, context, 'remove <domain>', removeDomain, {
    ...machine,
    json: domainSummary,
    text: removedText,
  });
  operationCommand(group, context, 'set <domain>', setDomain, {
    ...machine,
    flags: { subdomains: '--subdomains <yes|no>' },
    text: ({ domain, subdomains }) => `subdomains of ${domain} ${subdomains ? 'may send too' : 'may not send'}\n`,
  });
}
