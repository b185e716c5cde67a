/** `postrider domain …`: the sending domains of accounts. `--json` prints the documented members, `--details` all members. */
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
  '--details': 'with --json: also account, keys, times and the observed value of each record',
};

/** Adds the commands. */
export function addDomainCommands(program: Command, context: Context): void {
  const group = program.command('domain').description('domains to send from').helpCommand(false);
  const machine = {
    jsonHelp: 'print JSON: {"domain","status","records"}',
    extra: EXTRA,
    json: <T extends Parameters<typeof domainSummary>[0]>(domain: T, { details }: Readonly<Record<string, unknown>>) =>
      details === true ? domain : domainSummary(domain),
  };

  operationCommand(group, context, 'add <account> <domain>', addDomain, {
    ...machine,
    flags: { ed25519: '--no-ed25519' },
    flagHelp: { ed25519: 'Create no Ed25519 key in addition to the RSA key.' },
    text: (domain) =>
      `${styled('good', `added ${domain.domain} for account ${domain.account}`)}\n\n${recordsText(domain)}`,
  });
  operationCommand(group, context, 'records <domain>', showDomain, { ...machine, text: recordsText });
  operationCommand(group, context, 'verify <domain>', verifyDomain, {
    ...machine,
    help: 'look up its DNS records; exit code 0 if the domain is authenticated',
    text: (domain, _input, now) => verificationText(domain, now),
    failure: ({ fault }) => fault,
  });
  operationCommand(group, context, 'list', listDomains, {
    jsonHelp: 'print JSON: a list of {"domain","status","records"}',
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
    text: ({ domain, subdomains }) => `subdomains of ${domain} ${subdomains ? 'may send' : 'may not send'}\n`,
  });
}
