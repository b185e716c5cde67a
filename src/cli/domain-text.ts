/** Formats sending domains for the commands: JSON with exactly the documented members, zone file lines, tables. */
import { formatZone } from '../domains/records.ts';
import type { DomainDetails, RemovedDomain, RotatedDomain, VerifiedDomain } from '../operations/domains/schemas.ts';
import { commandLine } from '../printing/command-line.ts';
import { printable } from '../printing/escape.ts';
import { formatSpan, formatTime, formatTimeOr } from '../printing/text.ts';
import { type Cell, formatTable, type Style, styled } from './text.ts';

/** Returns the documented members of `--json`. */
export function domainSummary({
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

/** Returns the records to publish as lines of a zone file, each with a comment about its purpose. */
export function recordsText({ domain, status, records }: DomainDetails): string {
  const lines = records.map((record) => `${styled('dimmed', `; ${record.about}`)}\n${formatZone([record])}`);
  return [
    `Records to publish (status: ${status}):\n\n`,
    lines.join('\n'),
    `\nAfter publishing them, run \`${commandLine(['domain', 'verify', domain])}\`\n`,
  ].join('');
}

type Record = DomainDetails['records'][number];

const FOUND_STYLE: Readonly<{ [found in Record['found']]: Style }> = {
  found: 'success',
  missing: 'error',
  wrong: 'error',
  unknown: 'warning',
};

const STATUS_STYLE: Readonly<{ [status in DomainDetails['status']]: Style }> = {
  pending: 'warning',
  authenticated: 'success',
  failing: 'error',
};

/**
 * Returns a table with one row for each record. A missing or wrong record also has the observed and the expected value.
 */
export function verificationText(domain: VerifiedDomain, now: number): string {
  const rows = domain.records.map(({ found, purpose, type, name, detail }): Cell[] => [
    { text: found, style: FOUND_STYLE[found] },
    purpose,
    type,
    name,
    detail ?? '',
  ]);
  const faults = domain.records.filter(({ found }) => found === 'missing' || found === 'wrong').map(faultText);
  return [
    `${domain.domain}: ${styled(STATUS_STYLE[domain.status], domain.status)}${changeText(domain, now)}\n\n`,
    formatTable(['RESULT', 'FOR', 'TYPE', 'NAME', 'DETAIL'], rows, { truncated: ['NAME', 'DETAIL'] }),
    ...faults.map((text) => `\n${text}`),
  ].join('');
}

function changeText({ graceEnds, sends, change }: VerifiedDomain, now: number): string {
  if (graceEnds !== null) {
    const remainingMs = Date.parse(graceEnds) - now;
    if (remainingMs > 0) return ` (messages from it are refused in ${formatSpan(remainingMs)})`;
    return sends ? ' (messages from it are refused when the next check fails)' : ' (messages from it are refused)';
  }
  return change === 'authenticated' ? ' (new)' : change === 'recovered' ? ' (recovered)' : '';
}

function faultText(record: Record): string {
  const observed = record.observed.length === 0 ? ['nothing'] : record.observed.map(printable);
  const lines = observed.map((text, index) => `  ${index === 0 ? 'observed:' : '         '} ${text}\n`);
  const expected = record.type === 'SES' ? `${record.value}\n` : formatZone([record]);
  return `${styled('heading', record.name)}\n${lines.join('')}  expected: ${expected}`;
}

export function domainTable(domains: readonly DomainDetails[]): string {
  const rows = domains.map((domain): Cell[] => [
    domain.unicode === domain.domain ? domain.domain : `${domain.domain} (${domain.unicode})`,
    domain.account,
    { text: domain.status, style: STATUS_STYLE[domain.status] },
    domain.subdomains ? 'yes' : 'no',
    keysText(domain),
    formatTimeOr(domain.checked === null ? null : Date.parse(domain.checked), 'never'),
  ]);
  return formatTable(['DOMAIN', 'ACCOUNT', 'STATUS', 'SUBDOMAINS', 'KEYS', 'CHECKED'], rows, { truncated: ['KEYS'] });
}

function keysText({ keys }: DomainDetails): string {
  const counts = (['active', 'staged', 'retiring'] as const)
    .map((state) => [keys.filter((key) => key.state === state).length, state] as const)
    .filter(([count]) => count > 0);
  return counts.map(([count, state]) => `${count} ${state}`).join(', ');
}

/** Returns the text after a rotation was cancelled. */
export function cancelledRotationText({ domain, removedRecords }: RotatedDomain): string {
  return `removed the staged keys of ${domain}; the active keys stay in use\n\nYou can remove these records from DNS:\n${indentedLines(removedRecords)}`;
}

/** Returns the text after a domain was removed. */
export function removedDomainText({
  domain,
  removedRecords,
  keepRecordsUntil,
  remainingIdentity,
}: RemovedDomain): string {
  const earliestRemoval =
    keepRecordsUntil === null
      ? 'after 3 days, when no message signed with them is in transit'
      : `after ${formatTime(Date.parse(keepRecordsUntil))}`;
  const remainingIdentityText =
    remainingIdentity === null
      ? ''
      : `\nAmazon SES still has the identity ${remainingIdentity}; delete it there if nothing else uses it.\n`;
  return `removed ${domain}; messages from it are now refused\n\nYou can remove these records from DNS ${earliestRemoval}:\n${indentedLines(removedRecords)}${remainingIdentityText}`;
}

function indentedLines(names: readonly string[]): string {
  return names.map((name) => `  ${name}\n`).join('');
}
