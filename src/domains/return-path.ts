/**
 * Checks the name of a return path, which is the domain of the envelope sender in the messages of a sending domain.
 * Describes whether messages use a return path. The functions are pure.
 */
import type { ReturnPath } from '../model/domain.ts';
import { getOrganizationalDomain } from '../model/public-suffix.ts';
import { parseDomainName } from './name.ts';
import type { SendingSetup } from './records.ts';

/**
 * Maximum length of a return path. An address has at most 254 octets, and the local part of a bounce address and the
 * `@` have 48 octets (message/return-path.ts).
 */
const MAX_RETURN_PATH_LENGTH = 254 - 48;

export type ParsedReturnPath =
  /** `name` is in lower-case A-labels. */
  { readonly ok: true; readonly name: string } | { readonly ok: false; readonly fault: string };

/**
 * Checks the entered return path of the sending domain `domain`. SPF aligns only if the return path and the sending
 * domain have the same organizational domain (relaxed mode, RFC 7489 section 3.1.2). The MX record of a return path
 * names the feedback listener, which refuses messages to ordinary mailboxes. The sending domain and the domains above
 * it are therefore refused.
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
 * `used`: messages use the return path. `unverified`: the records of the return path have not been found. `replaced`:
 * the provider replaces the envelope sender. `no-listener`: POSTRIDER_RETURN_PATH_DOMAIN is not set, so the feedback
 * listener has no public name.
 */
export type ReturnPathState = 'used' | 'unverified' | 'replaced' | 'no-listener';

/** Returns whether messages use the return path, and the reason in one line. */
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
