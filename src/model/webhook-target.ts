/**
 * Checks the URL of an endpoint and resolves its host. With `public` every returned address is globally reachable, or
 * none is returned. The caller connects to a returned address, so that a changed DNS record has no effect in between.
 */
import { isIP } from 'node:net';
import { findSpecialNetwork } from './special-addresses.ts';

/** `public`: HTTPS and globally reachable addresses only. */
export type WebhookTargets = 'public' | 'any';

export type AddressLookup =
  | { readonly kind: 'found'; readonly values: readonly string[] }
  | { readonly kind: 'none' }
  /** Such as `timeout`. */
  | { readonly kind: 'failed'; readonly reason: string };

/** Never rejects. */
export type LookUpAddresses = (host: string) => Promise<AddressLookup>;

/** `fault` continues a sentence that begins with the URL. */
export interface TargetFault {
  readonly code:
    | 'invalid-url'
    | 'not-https'
    | 'credentials'
    | 'fragment'
    | 'address-not-public'
    | 'name-not-found'
    /** The same name may resolve later. */
    | 'dns-failed';
  readonly fault: string;
}

type CheckResult<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & TargetFault);

export const MAX_URL_LENGTH = 2_048;

/** No name is resolved. */
export function parseTargetUrl(text: string, targets: WebhookTargets): CheckResult<URL> {
  if (text.length > MAX_URL_LENGTH)
    return createTargetFault('invalid-url', `has more than ${MAX_URL_LENGTH} characters`);
  // The URL parser would silently remove spaces and controls.
  const url = hasSpaceOrControl(text) ? null : URL.parse(text);
  if (url === null || url.hostname === '') {
    return createTargetFault('invalid-url', 'is not a URL such as https://app.example.com/webhooks');
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return createTargetFault(
      'not-https',
      'does not begin with https://; give a URL such as https://app.example.com/webhooks',
    );
  }
  if (url.username !== '' || url.password !== '') {
    return createTargetFault(
      'credentials',
      'contains a user name or a password; remove them, because every webhook is signed',
    );
  }
  if (url.hash !== '')
    return createTargetFault('fragment', 'contains a fragment, which is never sent; remove # and its text');
  if (targets === 'public' && url.protocol === 'http:') {
    return createTargetFault(
      'not-https',
      'does not begin with https://; use https, or set POSTRIDER_WEBHOOK_TARGETS=any',
    );
  }
  if (url.port === '0') return createTargetFault('invalid-url', 'has the port 0; give a port from 1 to 65535');
  const literalAddress = getLiteralAddress(url);
  const fault = literalAddress === null ? null : findAddressFault(literalAddress, targets);
  return fault === null ? { ok: true, value: url } : { ok: false, ...fault };
}

/** One lookup. An address in the URL is checked again, because the setting may have changed since it was stored. */
export async function resolveTarget(
  url: URL,
  targets: WebhookTargets,
  lookUp: LookUpAddresses,
): Promise<CheckResult<readonly string[]>> {
  const literalAddress = getLiteralAddress(url);
  const lookup: AddressLookup =
    literalAddress === null ? await lookUp(url.hostname) : { kind: 'found', values: [literalAddress] };
  switch (lookup.kind) {
    case 'none':
      return createTargetFault(
        'name-not-found',
        `has the host ${url.hostname}, which has no address; correct the name`,
      );
    case 'failed':
      return createTargetFault(
        'dns-failed',
        `has the host ${url.hostname}, whose lookup failed (${lookup.reason}); try again`,
      );
    case 'found': {
      for (const address of lookup.values) {
        const fault = findAddressFault(address, targets);
        if (fault !== null) return { ok: false, ...fault };
      }
      return { ok: true, value: lookup.values };
    }
  }
}

/** Without brackets; null if the host is a name. */
export function getLiteralAddress({ hostname }: URL): string | null {
  // The URL parser has normalized every notation of an IPv4 address.
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(host) === 0 ? null : host;
}

function findAddressFault(address: string, targets: WebhookTargets): TargetFault | null {
  const network = targets === 'any' ? null : findSpecialNetwork(address);
  if (network === null) return null;
  return {
    code: 'address-not-public',
    fault: `has the address ${address}, which is not public (${network}); use a public address, or set POSTRIDER_WEBHOOK_TARGETS=any`,
  };
}

function createTargetFault(code: TargetFault['code'], fault: string): { readonly ok: false } & TargetFault {
  return { ok: false, code, fault };
}

function hasSpaceOrControl(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code <= 32 || code === 127) return true;
  }
  return false;
}
