/** The return path of a sending domain: its name, and whether messages use it. Pure. */
import type { ReturnPath } from '../model/domain.ts';
import { getOrganizationalDomain } from '../model/public-suffix.ts';
import { parseDomainName } from './name.ts';
import type { SendingSetup } from './records.ts';

/**
 * An address has at most 254 octets, and the local part of a bounce address and the `@` have 48
 * (message/return-path.ts).
 */
const MAX_RETURN_PATH_LENGTH = 254 - 48;

export type ParsedReturnPath =
  | { readonly ok: true; readonly name: string }
  | { readonly ok: false; readonly fault: string };

/**
 * SPF aligns only within the organizational domain (RFC 7489 section 3.1.2). The feedback listener refuses messages to
 * ordinary mailboxes, so the sending domain and the domains above it are refused.
 */
export function parseReturnPath(domain: string, text: string): ParsedReturnPath {
  const parsedName = parseDomainName(text);
  if (!parsedName.ok) return parsedName;
  const { name } = parsedName;
  const example = `bounces.${domain}`;
  if (name === domain || domain.endsWith(`.${name}`)) {
    const relationText = name === domain ? 'the sending domain' : 'a domain above the sending domain';
    const fault = `${name} is ${relationText}, and its MX record must name the mail server of its mailboxes; give a subdomain such as ${example}`;
    return { ok: false, fault };
  }
  const organizationalDomain = getOrganizationalDomain(domain);
  if (getOrganizationalDomain(name) !== organizationalDomain) {
    const fault = `${name} is outside of ${organizationalDomain}, so SPF would not align with the sender (DMARC); give a subdomain such as ${example}`;
    return { ok: false, fault };
  }
  if (name.length > MAX_RETURN_PATH_LENGTH) {
    const fault = `the name has ${name.length} characters; the maximum is ${MAX_RETURN_PATH_LENGTH}, because a bounce address is longer than this name and has at most 254 characters; give a shorter name`;
    return { ok: false, fault };
  }
  return { ok: true, name };
}

/**
 * `unverified`: its records have not been found. `replaced`: the provider replaces the envelope sender. `no-listener`:
 * POSTRIDER_RETURN_PATH_DOMAIN is not set.
 */
export type ReturnPathState = 'used' | 'unverified' | 'replaced' | 'no-listener';

export function describeReturnPath(
  { name, isVerified }: ReturnPath,
  { returnPath, replacedBy }: Pick<SendingSetup, 'returnPath' | 'replacedBy'>,
): { readonly state: ReturnPathState; readonly detail: string } {
  if (replacedBy !== null)
    return {
      state: 'replaced',
      detail: `the return path ${name} has no effect: ${replacedBy} replaces the envelope sender`,
    };
  if (returnPath === null)
    return {
      state: 'no-listener',
      detail: `the return path ${name} has no effect: POSTRIDER_RETURN_PATH_DOMAIN, the public name of the feedback listener, is not set`,
    };
  if (!isVerified)
    return {
      state: 'unverified',
      detail: `messages use ${returnPath} until the MX and SPF records of the return path ${name} are found`,
    };
  return { state: 'used', detail: `messages use the return path ${name}` };
}
