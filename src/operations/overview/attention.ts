/** What wants an operator's attention: one line each, with the remedy and the page that it is about, the gravest first. Pure. */

import type { Account } from '../../model/account.ts';
import { GRACE_PERIOD_MS, maySend } from '../../model/domain.ts';
import { SIGNING_ALARM } from '../../model/node.ts';
import {
  type DomainProblem,
  MAX_OVERVIEW_ITEMS,
  RECENT_USE_MS,
  VOLUME_WARNING_FRACTION,
} from '../../model/overview.ts';
import { requiresAuthenticatedSender } from '../../model/submission.ts';
import { formatSpan, formatTime, shorten } from '../../printing/text.ts';
import { sumTraffic } from './figures.ts';
import { transportName } from './health.ts';
import { hasFeedbackSource, type OverviewInput } from './input.ts';
import type { AttentionItem } from './schemas.ts';

const OLD_MS = 3_600_000;
const DAY_MS = 24 * 3_600_000;
const TEXT_WIDTH = 200;

export function listAttention(facts: OverviewInput): readonly AttentionItem[] {
  const { store, now, settings } = facts;
  const all = [
    ...installation(facts),
    ...queue(facts),
    // Where nothing leaves the machine they cost nothing: their pages tell.
    ...(settings.transport.kind === 'capture'
      ? []
      : store.domains.problems.map((domain) => domainAttention(domain, facts))),
    ...store.accounts.flatMap((account) => accountAttention(account, now)),
    ...store.keys.map((key) => keyAttention(key, now)),
    ...reports(facts),
  ];
  return [...all.filter(({ level }) => level === 'failure'), ...all.filter(({ level }) => level === 'warning')];
}

function failure(text: string, remedy: string, page: string | null = null): AttentionItem {
  return { level: 'failure', text, remedy, page };
}

function warning(text: string, remedy: string, page: string | null = null): AttentionItem {
  return { level: 'warning', text, remedy, page };
}

function accountPage(name: string): string {
  return `/accounts/${encodeURIComponent(name)}`;
}

function installation(facts: OverviewInput): readonly AttentionItem[] {
  const { settings, status: service, nodes, recent, now } = facts;
  const found: AttentionItem[] = [];
  if (service !== null && service.storeFault !== null) {
    const { storeFault, storeRemedy = null } = service;
    const remedy = 'Look at the disk, or at the database server and its log; clients get 500 and try again';
    found.push(
      storeRemedy === null
        ? failure(`The database does not commit: nothing is accepted`, remedy)
        : failure(`Nothing is accepted: ${storeFault}`, storeRemedy),
    );
  }
  const { breaker, alarms } = service?.delivery ?? { breaker: null, alarms: [] };
  if (breaker !== null && breaker.state !== 'closed') {
    const remedy = '`postrider doctor` tries it; what is queued goes on by itself once it answers';
    found.push(
      failure(`The next hop takes nothing: ${transportName(settings.transport)}`, remedy, '/messages?state=queued'),
    );
  }
  const { alarmed } = sumTraffic(recent);
  for (const { reason, text, lastAt } of alarms) {
    const said = `${formatSpan(now - lastAt)} ago: ${shorten(text, TEXT_WIDTH)}`;
    const remedy = ALARM_REMEDIES[reason] ?? '`postrider doctor` looks at the transport';
    found.push(
      reason === SIGNING_ALARM
        ? failure(`Messages cannot be signed, ${said}`, remedy, '/domains')
        : failure(`The next hop refuses this service (${reason}), ${said}`, remedy),
    );
  }
  if (alarmed > 0 && alarms.length === 0) {
    const remedy = 'The log of the nodes that deliver says which and why (`warned`, `failed`)';
    const text = `In the last hour ${attempts(alarmed)} failed because the next hop refused this service itself, or because ${alarmed === 1 ? 'it' : 'they'} could not be signed`;
    found.push(warning(text, remedy));
  }
  if (settings.database.kind === 'postgres') {
    for (const { name, aliveUntil, seenAt } of nodes) {
      if (aliveUntil > now) continue;
      const remedy =
        'Start it again, or leave it: the others have taken over what it held, and it is forgotten within the hour';
      found.push(warning(`The node ${name} fell silent ${formatSpan(now - seenAt)} ago`, remedy));
    }
    const delivering = nodes.some(({ roles, aliveUntil }) => aliveUntil > now && roles.includes('deliver'));
    if (!delivering)
      found.push(failure('No node delivers', 'Start one with POSTRIDER_ROLES=all, or with deliver among them'));
  }
  if (requiresAuthenticatedSender(settings) && facts.store.domains.all === 0) {
    found.push(
      warning('No domain may send yet: every sender is refused', 'Add a domain and publish its records', '/domains'),
    );
  }
  return found;
}

const ALARM_REMEDIES: Readonly<Record<string, string>> = {
  configuration: 'Correct POSTRIDER_TRANSPORT, or the account at the provider; `postrider doctor` tries it',
  reputation: 'Read the provider’s words and look at what was sent; its support lifts such blocks',
  [SIGNING_ALARM]:
    'Verify the domain, bring the secret back that sealed its keys, or rotate them; `postrider doctor` tells which',
};

function queue({ queue: { uncertain, oldest }, now, settings }: OverviewInput): readonly AttentionItem[] {
  const found: AttentionItem[] = [];
  if (uncertain > 0) {
    const remedy = 'Decide for each: retry sends it again, cancel lets it be';
    found.push(warning(`${uncertain} handed over with nobody knowing the answer`, remedy, '/messages?state=uncertain'));
  }
  if (oldest !== null && now - oldest.acceptedAt > OLD_MS) {
    const remedy = `Its page explains what it waits for; it ends as expired at the age of ${formatSpan(settings.maxAgeMs)}`;
    found.push(
      warning(
        `The oldest in the queue was accepted ${formatSpan(now - oldest.acceptedAt)} ago`,
        remedy,
        `/messages/${oldest.id}`,
      ),
    );
  }
  return found;
}

function domainAttention(domain: DomainProblem, { settings, now }: OverviewInput): AttentionItem {
  const { name, status, failingSince, failedRecords: lacking } = domain;
  const page = `/domains/${encodeURIComponent(name)}`;
  if (status !== 'authenticated' && !requiresAuthenticatedSender(settings))
    return warning(
      `${name} is not authenticated; its mail is taken all the same`,
      'Publish its records, then verify',
      page,
    );
  switch (status) {
    case 'pending':
      return warning(`${name} may not send yet: its records were not seen`, 'Publish its records, then verify', page);
    case 'failing': {
      const remedy = 'Publish its DKIM records again';
      if (!maySend(domain)) return failure(`${name} has lost its records: its mail is refused`, remedy, page);
      const left = (failingSince ?? now) + GRACE_PERIOD_MS - now;
      return failure(
        `${name} has lost its records: its mail is refused ${left > 0 ? `in ${formatSpan(left)}` : 'soon'}`,
        remedy,
        page,
      );
    }
    case 'authenticated': {
      const purposes = [...new Set(lacking.map(({ purpose }) => purpose))].join(', ');
      return warning(
        `${name} lacks records or has wrong ones: ${purposes}`,
        'Its page shows them beside what DNS has',
        page,
      );
    }
  }
}

function accountAttention(account: Account, now: number): readonly AttentionItem[] {
  const { name, locked, warning: cause, limits, volumeUsed } = account;
  const page = accountPage(name);
  if (locked !== null)
    return [
      failure(
        `Account ${name} is locked: ${shorten(locked.reason, TEXT_WIDTH)}`,
        'Mend the cause, then unlock it',
        page,
      ),
    ];
  const found: AttentionItem[] = [];
  if (cause !== null)
    found.push(
      warning(
        `Account ${name} has come half way to being locked`,
        'Its page has the counts of now; look at whom it writes to',
        page,
      ),
    );
  const { volume, volumeExpiresAt } = limits;
  const more = 'Give it a new volume, or tell its owner';
  if (volume !== null && volumeUsed >= volume)
    found.push(failure(`Account ${name} has used its volume of ${volume}`, more, page));
  else if (volume !== null && volumeUsed >= volume * VOLUME_WARNING_FRACTION)
    found.push(warning(`Account ${name} has used ${volumeUsed} of its volume of ${volume}`, more, page));
  if (volumeExpiresAt !== null && volumeExpiresAt <= now)
    found.push(failure(`Account ${name}’s volume expired ${formatTime(volumeExpiresAt)}`, more, page));
  else if (volumeExpiresAt !== null && volumeExpiresAt - now < 7 * DAY_MS)
    found.push(warning(`Account ${name}’s volume expires in ${formatSpan(volumeExpiresAt - now)}`, more, page));
  return found;
}

function keyAttention(
  { id, name, account, expiresAt, lastUsedAt, successor }: OverviewInput['store']['keys'][number],
  now: number,
): AttentionItem {
  const left = (expiresAt ?? now) - now;
  if (successor !== null) {
    const used = `its clients have used it since key_${successor} of the same name was made`;
    const text = `key_${id} (${name}) of account ${account} expires in ${formatSpan(left)}: ${used}`;
    return warning(text, 'Give all of them the new one before', accountPage(account));
  }
  const inUse = lastUsedAt !== null && now - lastUsedAt < RECENT_USE_MS;
  const used = inUse ? `in use ${formatSpan(now - lastUsedAt)} ago` : 'the last one of its account';
  const text = `key_${id} (${name}) of account ${account} expires in ${formatSpan(left)}: ${used}`;
  const remedy = 'Rotate it, or give its clients another one before';
  return inUse && left < DAY_MS
    ? failure(text, remedy, accountPage(account))
    : warning(text, remedy, accountPage(account));
}

function reports({ store, settings }: OverviewInput): readonly AttentionItem[] {
  const { notUnderstood } = store;
  if (notUnderstood === 0 || !hasFeedbackSource(settings)) return [];
  const count = notUnderstood < MAX_OVERVIEW_ITEMS ? String(notUnderstood) : `${MAX_OVERVIEW_ITEMS} or more`;
  const text = `${count} of the reports of the last 24 h ${notUnderstood === 1 ? 'was' : 'were'} not understood`;
  return [warning(text, '`postrider feedback list` and `postrider feedback show ID` show them')];
}

function attempts(count: number): string {
  return count === 1 ? 'one attempt' : `${count} attempts`;
}
