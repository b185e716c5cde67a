/** Sending domains as the commands print them: JSON with exactly the promised members, zone lines, tables. */
import { domainToUnicode } from 'node:url';
import { isoTime } from '../config/units.ts';
import { formatZone } from '../domains/records.ts';
import { NEUTRAL } from '../domains/relays.ts';
import type { Account } from '../model/account.ts';
import type { AfterCheck, DnsRecord, RecordCheck, SendingDomain } from '../model/domain.ts';
import { dkimRecordName, GRACE_MS, maySend } from '../model/domain.ts';
import { commandLine } from '../printing/command-line.ts';
import { printable } from '../printing/escape.ts';
import { span, time, timeOr } from '../printing/text.ts';
import { type Cell, type Style, styled, table } from './text.ts';

/** `found` is what the last check said of that very record, and `unknown` where none has looked yet. */
export function domainJson(
  domain: SendingDomain,
  records: readonly DnsRecord[],
  checks: readonly RecordCheck[],
): object {
  return {
    domain: domain.name,
    status: domain.status,
    records: records.map(({ purpose, type, name, value }) => {
      const check = checks.find((one) => one.name === name && one.type === type && one.value === value);
      return { purpose, type, name, value, found: check?.found ?? 'unknown' };
    }),
  };
}

/** All that the pages show of a domain: whose it is, its keys, and for each record what it is for and what was seen of it. */
export function domainDetails(
  domain: SendingDomain,
  records: readonly DnsRecord[],
  checks: readonly RecordCheck[],
  account: string,
): object {
  const { subdomains, createdAt, checkedAt, authenticatedAt, failingSince, keys } = domain;
  return {
    domain: domain.name,
    unicode: domainToUnicode(domain.name),
    account,
    status: domain.status,
    subdomains,
    created: isoTime(createdAt),
    checked: isoOrNull(checkedAt),
    authenticated: isoOrNull(authenticatedAt),
    failingSince: isoOrNull(failingSince),
    // Until when it sends although its records are gone.
    graceEnds: failingSince === null ? null : isoTime(failingSince + GRACE_MS),
    sends: maySend(domain),
    keys: keys.map(({ selector, algorithm, state, retireAt }) => ({
      selector,
      algorithm,
      state,
      retires: isoOrNull(retireAt),
    })),
    records: records.map((record) => {
      const { purpose, type, name, value } = record;
      const check = checks.find((one) => one.name === name && one.type === type && one.value === value);
      const key = keys.find(({ selector }) => dkimRecordName(domain.name, selector) === name);
      return {
        purpose,
        type,
        name,
        value,
        found: check?.found ?? 'unknown',
        seen: check?.seen ?? [],
        detail: check?.detail ?? null,
        about: purposeText(domain, record),
        key: key?.state ?? null,
      };
    }),
  };
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** Everything to publish: a zone file's lines, each under a comment that says what it is for. */
export function recordsText(domain: SendingDomain, records: readonly DnsRecord[]): string {
  const lines = records.map(
    (record) => `${styled('quiet', `; ${purposeText(domain, record)}`)}\n${formatZone([record])}`,
  );
  return [
    `Records to publish (status: ${domain.status}):\n\n`,
    lines.join('\n'),
    `\nWhen they are published, run \`${commandLine(['domain', 'verify', domain.name])}\`\n`,
  ].join('');
}

/** Of a transport that is no relay, or a relay that only this network knows by its name. */
const NO_SENDER_YET =
  'SPF: who may send for this name. Names nobody: the hosts are known once POSTRIDER_TRANSPORT is a relay with a public name';

function purposeText(domain: SendingDomain, { purpose, type, name, value }: DnsRecord): string {
  switch (purpose) {
    case 'dkim':
      return dkimText(domain, name);
    case 'spf':
      if (value === NEUTRAL) return NO_SENDER_YET;
      return 'SPF: who may send for this name. One SPF record for a name: add these terms to one that is there';
    case 'dmarc':
      return 'DMARC: what receivers do with mail that fails. A policy that is there already may stay';
    case 'return-path':
      return 'return path: where bounces come back to. This host needs an A or AAAA record; any other that leads to the feedback listener will do';
    case 'provider':
      return providerText(domain, type, value);
  }
}

function providerText(domain: SendingDomain, type: DnsRecord['type'], value: string): string {
  switch (type) {
    case 'SES':
      return value === 'verified'
        ? `Amazon SES: an identity of this name, which \`postrider domain verify ${domain.name}\` makes and looks at`
        : `Amazon SES: ${value}, which was set there`;
    case 'MX':
      return 'MX of the MAIL FROM domain that was set at Amazon SES';
    case 'CNAME':
    case 'TXT':
      return 'DKIM of Amazon SES itself (Easy DKIM)';
  }
}

function dkimText(domain: SendingDomain, name: string): string {
  const key = domain.keys.find(({ selector }) => dkimRecordName(domain.name, selector) === name);
  const what = `DKIM ${key?.algorithm === 'ed25519' ? 'Ed25519' : 'RSA'} key`;
  switch (key?.state) {
    case undefined:
      return 'DKIM, as the provider asks for it';
    case 'active':
      return key.algorithm === 'rsa'
        ? `${what}, which signs`
        : `${what}, which signs beside it while its record is there`;
    case 'staged':
      return `${what}, which signs from when its record is seen`;
    case 'retiring':
      return `${what} of before: leave it there until ${timeOr(key.retireAt, 'the next key signs')}`;
  }
}

const FOUND_STYLE: Readonly<Record<RecordCheck['found'], Style>> = {
  found: 'good',
  missing: 'bad',
  wrong: 'bad',
  unknown: 'waiting',
};

const STATUS_STYLE: Readonly<Record<SendingDomain['status'], Style>> = {
  pending: 'waiting',
  authenticated: 'good',
  failing: 'bad',
};

function statusCell({ status }: SendingDomain): Cell {
  return { text: status, style: STATUS_STYLE[status] };
}

/** One row for each record; for those that are not as they should be, what was seen and what to publish. */
export function verdictText(
  domain: SendingDomain,
  checks: readonly RecordCheck[],
  event: AfterCheck['event'],
  now: number,
): string {
  const rows = checks.map(({ found, purpose, type, name, detail }): Cell[] => [
    { text: found, style: FOUND_STYLE[found] },
    purpose,
    type,
    name,
    detail,
  ]);
  const faults = checks.filter(({ found }) => found === 'missing' || found === 'wrong').map(faultText);
  return [
    `${domain.name}: ${styled(STATUS_STYLE[domain.status], domain.status)}${newsText(domain, event, now)}\n\n`,
    table(['RESULT', 'FOR', 'TYPE', 'NAME', 'DETAIL'], rows),
    ...faults.map((text) => `\n${text}`),
  ].join('');
}

function newsText({ status, checkedAt, failingSince }: SendingDomain, event: AfterCheck['event'], now: number): string {
  if (failingSince !== null) {
    const left = failingSince + GRACE_MS - now;
    if (left > 0) return ` (mail from it is refused in ${span(left)})`;
    const blocked = !maySend({ status, checkedAt, failingSince });
    return blocked ? ' (mail from it is refused)' : ' (mail from it is refused once DNS says so again)';
  }
  return event === 'authenticated' ? ' (from now on)' : event === 'recovered' ? ' (again)' : '';
}

function faultText(check: RecordCheck): string {
  const seen = check.seen.length === 0 ? ['nothing'] : check.seen.map(printable);
  const lines = seen.map((text, at) => `  ${at === 0 ? 'seen:    ' : '         '} ${text}\n`);
  const expected = check.type === 'SES' ? `${check.value}\n` : formatZone([check]);
  return `${styled('head', check.name)}\n${lines.join('')}  expected: ${expected}`;
}

export function domainTable(domains: readonly SendingDomain[], accounts: readonly Account[]): string {
  const rows = domains.map((domain): Cell[] => [
    shownName(domain.name),
    accounts.find(({ id }) => id === domain.accountId)?.name ?? `(number ${domain.accountId})`,
    statusCell(domain),
    domain.subdomains ? 'yes' : 'no',
    keysText(domain),
    timeOr(domain.checkedAt, 'never'),
  ]);
  return table(['DOMAIN', 'ACCOUNT', 'STATUS', 'SUBDOMAINS', 'KEYS', 'CHECKED'], rows);
}

function shownName(name: string): string {
  return name.includes('xn--') ? `${name} (${domainToUnicode(name)})` : name;
}

function keysText({ keys }: SendingDomain): string {
  const counts = (['active', 'staged', 'retiring'] as const)
    .map((state) => [keys.filter((key) => key.state === state).length, state] as const)
    .filter(([count]) => count > 0);
  return counts.map(([count, state]) => `${count} ${state}`).join(', ');
}

/** What became of a rotation that was called off. */
export function cancelledText({ name, keys }: SendingDomain): string {
  const staged = keys.filter(({ state }) => state === 'staged');
  const records = staged.map(({ selector }) => `  ${dkimRecordName(name, selector)}\n`).join('');
  return `dropped the staged keys of ${name}; the keys of before go on signing\n\nThese records may be taken out of DNS:\n${records}`;
}

/** What became of a domain that was removed. */
export function removedText({ name, keys }: SendingDomain): string {
  const last = keys.reduce((latest, key) => Math.max(latest, key.retireAt ?? 0), 0);
  const records = keys.map(({ selector }) => `  ${dkimRecordName(name, selector)}\n`).join('');
  const when = last === 0 ? 'once no mail signed with them is under way, in 3 days' : `after ${time(last)}`;
  return `removed ${name}; mail from it is refused from now on\n\nThese records may be taken out of DNS ${when}:\n${records}`;
}
