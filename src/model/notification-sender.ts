/** Finds the sending domain of notifications by mail, and the reason why they cannot be sent. Pure. */
import type { Account } from './account.ts';
import { maySend, type SendingDomain } from './domain.ts';

export interface NotificationSenderFault {
  /** `refused`: the message is not accepted. `waiting`: it is accepted and waits. */
  readonly kind: 'refused' | 'waiting';
  readonly text: string;
  readonly remedy: string;
}

/** The domain `name`, or its nearest parent that is a sending domain if that allows subdomains. */
export function findSenderDomain(name: string, find: (name: string) => SendingDomain | null): SendingDomain | null {
  for (const candidate of listDomainCandidates(name)) {
    const domain = find(candidate);
    if (domain !== null) return candidate === name || domain.subdomains ? domain : null;
  }
  return null;
}

/** Nearest first. */
export function listDomainCandidates(name: string): readonly string[] {
  const labels = name.split('.');
  return labels.map((_, index) => labels.slice(index).join('.'));
}

/** `name` is the domain of POSTRIDER_NOTIFY_FROM, and `domain` is what `findSenderDomain` found for it. */
export function findSenderFault(
  name: string,
  domain: SendingDomain | null,
  account: Pick<Account, 'name' | 'locked'> | null,
  requiresAuthentication: boolean,
): NotificationSenderFault | null {
  if (domain === null || account === null)
    return {
      kind: 'refused',
      text: `no account has the domain ${name} of POSTRIDER_NOTIFY_FROM`,
      remedy: `Run \`postrider domain add ACCOUNT ${name}\` and publish its records, or set POSTRIDER_NOTIFY_FROM to an address of an authenticated domain`,
    };
  if (requiresAuthentication && !maySend(domain))
    return {
      kind: 'refused',
      text: `the domain ${domain.name} of POSTRIDER_NOTIFY_FROM is not authenticated`,
      remedy: `Publish the DNS records of ${domain.name}, then run \`postrider domain verify ${domain.name}\``,
    };
  if (account.locked !== null)
    return {
      kind: 'waiting',
      text: `the account ${account.name}, which has the domain ${domain.name} of POSTRIDER_NOTIFY_FROM, is locked, so its messages wait`,
      remedy: `Run \`postrider account unlock ${account.name}\`, or use a domain of an account that sends only notifications`,
    };
  return null;
}
