/**
 * `postrider domain …`: manages the sending domains of accounts. `--json` prints the documented members, and
 * `--details` prints all members.
 */
import type { Command } from 'commander';
import { rotateDomain } from '../operations/domain-keys.ts';
import { verifyDomain } from '../operations/domain-verification.ts';
import { addDomain, listDomains, removeDomain, setDomain, showDomain } from '../operations/domains.ts';
import type { Context } from './context.ts';
import {
  formatCancelledRotation,
  formatChangedDomain,
  formatDomainTable,
  formatRecords,
  formatRemovedDomain,
  formatVerification,
  toDomainSummary,
} from './domain-text.ts';
import { addOperationCommand } from './operation-command.ts';
import { applyStyle } from './text.ts';

const DETAILS_FLAG = {
  '--details': 'with --json: also print the account, the keys, the times and the observed value of each record',
};

/** Adds `domain` and its subcommands to `program`. */
export function addDomainCommands(program: Command, context: Context): void {
  const group = program.command('domain').description('sending domains').helpCommand(false);
  const jsonOptions = {
    jsonHelp: 'print JSON: {"domain","status","records"}',
    outputFlags: DETAILS_FLAG,
    toJsonValue: <T extends Parameters<typeof toDomainSummary>[0]>(
      domain: T,
      { details }: Readonly<Record<string, unknown>>,
    ) => (details === true ? domain : toDomainSummary(domain)),
  };

  addOperationCommand(group, context, 'add <account> <domain>', addDomain, {
    ...jsonOptions,
    customFlags: { ed25519: '--no-ed25519', dkimKey: '--dkim-key <file>', selector: '--selector <name>' },
    fileMembers: ['dkimKey'],
    flagHelp: {
      ed25519: 'Create no Ed25519 key in addition to the RSA key.',
      dkimKey: 'The PEM file of a private key whose record is already published.',
      selector: 'The selector of this key: the part of the record name before ._domainkey.',
    },
    formatResult: (domain, { selector }) =>
      `${applyStyle('success', `added ${domain.domain} for account ${domain.account}`)}\n\n${formatRecords(domain, typeof selector === 'string' ? selector : null)}`,
  });
  addOperationCommand(group, context, 'records <domain>', showDomain, {
    ...jsonOptions,
    formatResult: (domain) => formatRecords(domain),
  });
  addOperationCommand(group, context, 'verify <domain>', verifyDomain, {
    ...jsonOptions,
    help: 'check the DNS records of a domain; exit code 0 if the domain is authenticated',
    formatResult: (domain, _input, now) => formatVerification(domain, now),
    findFailure: ({ fault }) => fault,
  });
  addOperationCommand(group, context, 'list', listDomains, {
    jsonHelp: 'print JSON: a list of {"domain","status","records"}',
    outputFlags: DETAILS_FLAG,
    toJsonValue: (domains, { details }) => (details === true ? domains : domains.map(toDomainSummary)),
    formatResult: (domains) =>
      domains.length === 0
        ? 'there are no domains; add one with `postrider domain add ACCOUNT DOMAIN`\n'
        : formatDomainTable(domains),
  });
  addOperationCommand(group, context, 'rotate <domain>', rotateDomain, {
    ...jsonOptions,
    formatResult: (domain, { cancel }) =>
      cancel === true
        ? formatCancelledRotation(domain)
        : `${applyStyle('success', `staged new keys for ${domain.domain}`)}\n\n${formatRecords(domain)}`,
  });
  addOperationCommand(group, context, 'remove <domain>', removeDomain, {
    ...jsonOptions,
    toJsonValue: toDomainSummary,
    formatResult: formatRemovedDomain,
  });
  addOperationCommand(group, context, 'set <domain>', setDomain, {
    ...jsonOptions,
    customFlags: { subdomains: '--subdomains <yes|no>' },
    shorthands: { '--no-return-path': { member: 'returnPath', value: 'none' } },
    formatResult: formatChangedDomain,
  });
}
