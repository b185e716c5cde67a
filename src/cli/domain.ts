/** `postrider domain …`. `--json` prints the documented members, `--details` all. */
import type { Command } from 'commander';
import { formatZone } from '../domains/zone-file.ts';
import { getDkimRecordName } from '../model/domain.ts';
import type { DomainAlignment, DomainDetails, RemovedDomain, VerifiedDomain } from '../operations/domain-details.ts';
import {
  addDomain,
  listDomains,
  removeDomain,
  rotateDomain,
  setDomain,
  showDomain,
  verifyDomain,
} from '../operations/domains.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatCommandLine, formatSpan, formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { applyStyle, type Cell, formatList, formatTable, formatTimeText, type Style } from './terminal.ts';

const DETAILS_FLAG = {
  '--details': 'with --json: also print the account, the keys, the times and the observed value of each record',
};

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
      formatList(
        domains,
        'there are no domains; add one with `postrider domain add ACCOUNT DOMAIN`\n',
        {
          DOMAIN: ({ domain, unicode }) => (unicode === domain ? domain : `${domain} (${unicode})`),
          ACCOUNT: ({ account }) => account,
          STATUS: ({ status }) => ({ text: status, style: STATUS_STYLES[status] }),
          SUBDOMAINS: ({ subdomains }) => (subdomains ? 'yes' : 'no'),
          KEYS: formatDkimKeyCounts,
          CHECKED: ({ checked }) => formatTimeText(checked, 'never'),
          ...(domains.some(({ returnPath }) => returnPath !== null) ? { 'RETURN PATH': formatReturnPath } : {}),
        },
        ['KEYS'],
      ),
  });
  addOperationCommand(group, context, 'rotate <domain>', rotateDomain, {
    ...jsonOptions,
    formatResult: (domain, { cancel }) =>
      cancel === true
        ? `removed the staged keys of ${domain.domain}; the active keys stay in use\n\nYou can remove these records from DNS:\n${indentLines(domain.removedRecords)}`
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

export function toDomainSummary({
  domain,
  status,
  records,
}: Pick<DomainDetails | RemovedDomain, 'domain' | 'status' | 'records'>): object {
  return {
    domain,
    status,
    records: records.map(({ purpose, type, name, value, found }) => ({ purpose, type, name, value, found })),
  };
}

/**
 * The records as lines of a zone file with comments. `publishedSelector` is that of a key that is already published.
 */
export function formatRecords(
  { domain, status, returnPath, records }: DomainDetails,
  publishedSelector: string | null = null,
): string {
  const publishedName = publishedSelector === null ? null : getDkimRecordName(domain, publishedSelector.toLowerCase());
  const formatLines = (list: DomainDetails['records']) =>
    list.map((record) => `${applyStyle('dimmed', `; ${record.about}`)}\n${formatZone([record])}`).join('\n');
  const publishedRecords = records.filter(({ name }) => name === publishedName);
  return [
    `Records to publish (status: ${status}):\n\n`,
    formatLines(records.filter(({ name }) => name !== publishedName)),
    publishedRecords.length === 0
      ? ''
      : `\nKeep this record, which is already published:\n\n${formatLines(publishedRecords)}`,
    returnPath === null ? '' : `\n${returnPath.detail}\n`,
    `\nAfter publishing them, run \`${formatCommandLine(['domain', 'verify', domain])}\`\n`,
  ].join('');
}

export function formatChangedDomain(
  details: DomainDetails,
  { subdomains, returnPath }: Readonly<Record<string, unknown>>,
): string {
  const { domain } = details;
  return [
    ...(subdomains === undefined
      ? []
      : [`subdomains of ${domain} ${details.subdomains ? 'may send' : 'may not send'}\n`]),
    ...(returnPath === undefined ? [] : [formatChangedReturnPath(details)]),
  ].join('\n');
}

function formatChangedReturnPath({ domain, returnPath, records }: DomainDetails): string {
  if (returnPath === null)
    return `${domain} has no return path of its own; keep the MX record of an earlier return path for 45 days, because late bounces arrive there\n`;
  const returnPathRecords = records.filter(({ name }) => name === returnPath.name);
  if (returnPathRecords.length === 0) return `the return path of ${domain} is ${returnPath.name}\n`;
  return [
    `the return path of ${domain} is ${returnPath.name}; ${returnPath.detail}\n\nRecords to publish:\n\n`,
    formatZone(returnPathRecords),
    `\nAfter publishing them, run \`${formatCommandLine(['domain', 'verify', domain])}\`\n`,
  ].join('');
}

type CheckedRecord = DomainDetails['records'][number];

const FOUND_STYLES: Readonly<{ [found in CheckedRecord['found']]: Style }> = {
  found: 'success',
  missing: 'error',
  wrong: 'error',
  unknown: 'warning',
};

const STATUS_STYLES: Readonly<{ [status in DomainDetails['status']]: Style }> = {
  pending: 'warning',
  authenticated: 'success',
  failing: 'error',
};

export function formatVerification(domain: VerifiedDomain, now: number): string {
  const rows = domain.records.map(({ found, purpose, type, name, detail }): Cell[] => [
    { text: found, style: FOUND_STYLES[found] },
    purpose,
    type,
    name,
    detail ?? '',
  ]);
  const faultTexts = domain.records
    .filter(({ found }) => found === 'missing' || found === 'wrong')
    .map(formatRecordFault);
  return [
    `${domain.domain}: ${applyStyle(STATUS_STYLES[domain.status], domain.status)}${formatStatusChange(domain, now)}\n\n`,
    formatTable(['RESULT', 'FOR', 'TYPE', 'NAME', 'DETAIL'], rows, { truncatedHeadings: ['NAME', 'DETAIL'] }),
    ...faultTexts.map((text) => `\n${text}`),
    '\n',
    formatAlignment(domain.alignment),
    domain.returnPath === null ? '' : `\n${domain.returnPath.detail}\n`,
  ].join('');
}

const ALIGNMENT_STYLES: Readonly<{ [state in DomainAlignment['state']]: Style }> = {
  pass: 'success',
  warning: 'warning',
  fail: 'error',
  unknown: 'warning',
  'not-needed': 'dimmed',
};

function formatAlignment(alignment: readonly DomainAlignment[]): string {
  const rows = alignment.map(({ method, state, found, expected }): Cell[] => [
    method,
    { text: state, style: ALIGNMENT_STYLES[state] },
    found,
    expected,
  ]);
  return formatTable(['ALIGNMENT', 'STATE', 'FOUND', 'EXPECTED'], rows, { truncatedHeadings: ['FOUND', 'EXPECTED'] });
}

function formatStatusChange({ graceEnds, sends, change }: VerifiedDomain, now: number): string {
  if (graceEnds !== null) {
    const remainingMs = Date.parse(graceEnds) - now;
    if (remainingMs > 0) return ` (messages from this domain are refused in ${formatSpan(remainingMs)})`;
    return sends
      ? ' (messages from this domain are refused when the next check fails)'
      : ' (messages from this domain are refused)';
  }
  return change === 'authenticated' ? ' (new)' : change === 'recovered' ? ' (recovered)' : '';
}

function formatRecordFault(record: CheckedRecord): string {
  const observedValues = record.observed.length === 0 ? ['nothing'] : record.observed.map(toPrintable);
  const lines = observedValues.map((text, index) => `  ${index === 0 ? 'observed:' : '         '} ${text}\n`);
  const expectedText = record.type === 'SES' ? `${record.value}\n` : formatZone([record]);
  return `${applyStyle('heading', record.name)}\n${lines.join('')}  expected: ${expectedText}`;
}

function formatReturnPath({ returnPath }: DomainDetails): Cell {
  if (returnPath === null) return 'default';
  const { name, state } = returnPath;
  return state === 'used' ? name : { text: `${name} (${state})`, style: 'warning' };
}

function formatDkimKeyCounts({ keys }: DomainDetails): string {
  const counts = (['active', 'staged', 'retiring'] as const)
    .map((state) => [keys.filter((key) => key.state === state).length, state] as const)
    .filter(([count]) => count > 0);
  return counts.map(([count, state]) => `${count} ${state}`).join(', ');
}

export function formatRemovedDomain({
  domain,
  removedRecords,
  keepRecordsUntil,
  remainingIdentity,
}: RemovedDomain): string {
  const removalTimeText =
    keepRecordsUntil === null
      ? 'after 3 days, when no message signed with them is in transit'
      : `after ${formatTime(Date.parse(keepRecordsUntil))}`;
  const remainingIdentityText =
    remainingIdentity === null
      ? ''
      : `\nAmazon SES still has the identity ${remainingIdentity}; delete the identity at Amazon SES if no other program uses it.\n`;
  return `removed ${domain}; messages from this domain are now refused\n\nYou can remove these records from DNS ${removalTimeText}:\n${indentLines(removedRecords)}${remainingIdentityText}`;
}

function indentLines(names: readonly string[]): string {
  return names.map((name) => `  ${name}\n`).join('');
}
