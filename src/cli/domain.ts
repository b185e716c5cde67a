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
  cancelledRotationText,
  domainSummary,
  domainTable,
  recordsText,
  removedDomainText,
  verificationText,
} from './domain-text.ts';
import { operationCommand } from './operation-command.ts';
import { styled } from './text.ts';

const DETAILS_FLAG = {
  '--details': 'with --json: also account, keys, times and the observed value of each record',
};

/** Adds the commands. */
export function addDomainCommands(program: Command, context: Context): void {
  const group = program.command('domain').description('domains to send from').helpCommand(false);
  const jsonOptions = {
    jsonHelp: 'print JSON: {"domain","status","records"}',
    extra: DETAILS_FLAG,
    json: <T extends Parameters<typeof domainSummary>[0]>(domain: T, { details }: Readonly<Record<string, unknown>>) =>
      details === true ? domain : domainSummary(domain),
  };

  operationCommand(group, context, 'add <account> <domain>', addDomain, {
    ...jsonOptions,
    flags: { ed25519: '--no-ed25519' },
    flagHelp: { ed25519: 'Create no Ed25519 key in addition to the RSA key.' },
    text: (domain) =>
      `${styled('success', `added ${domain.domain} for account ${domain.account}`)}\n\n${recordsText(domain)}`,
  });
  operationCommand(group, context, 'records <domain>', showDomain, { ...jsonOptions, text: recordsText });
  operationCommand(group, context, 'verify <domain>', verifyDomain, {
    ...jsonOptions,
    help: 'check its DNS records; exit code 0 if the domain is authenticated',
    text: (domain, _input, now) => verificationText(domain, now),
    failure: ({ fault }) => fault,
  });
  operationCommand(group, context, 'list', listDomains, {
    jsonHelp: 'print JSON: a list of {"domain","status","records"}',
    outputFlags: DETAILS_FLAG,
    json: (domains, { details }) => (details === true ? domains : domains.map(domainSummary)),
    text: (domains) =>
      domains.length === 0
        ? 'there are no domains; add one with `postrider domain add ACCOUNT DOMAIN`\n'
        : domainTable(domains),
  });
  operationCommand(group, context, 'rotate <domain>', rotateDomain, {
    ...jsonOptions,
    text: (domain, { cancel }) =>
      cancel === true
        ? cancelledRotationText(domain)
        : `${styled('success', `staged new keys for ${domain.domain}`)}\n\n${recordsText(domain)}`,
  });
  operationCommand(group, context, 'remove <domain>', removeDomain, {
    ...jsonOptions,
    json: domainSummary,
    text: removedDomainText,
  });
  operationCommand(group, context, 'set <domain>', setDomain, {
    ...jsonOptions,
    flags: { subdomains: '--subdomains <yes|no>' },
    text: ({ domain, subdomains }) => `subdomains of ${domain} ${subdomains ? 'may send' : 'may not send'}\n`,
  });
}
