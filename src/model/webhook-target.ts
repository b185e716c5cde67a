/**
 * Checks the URL of an endpoint and resolves its host. With `public` every returned address is globally reachable, or
 * none is returned. The caller connects to a returned address, so that a changed DNS record has no effect in between.
 */

import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { BlockList, isIP } from 'node:net';

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
  const url = /[\p{Cc} ]/u.test(text) ? null : URL.parse(text);
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

// Signs webhooks as version 1 of Standard Webhooks: the HMAC-SHA256 of `ID.TIMESTAMP.BODY` with the decoded secret.
// During a rotation there is one signature for each secret.

const SECRET_PREFIX = 'whsec_';
/** The specification allows 24 to 64 bytes. */
const KEY_BYTES = 32;
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

export interface SignatureHeaders {
  readonly 'webhook-id': string;
  /** Unix seconds. */
  readonly 'webhook-timestamp': string;
  /** `v1,BASE64` for each secret, separated by spaces. */
  readonly 'webhook-signature': string;
}

export function createSigningSecret(random: (bytes: number) => Buffer): string {
  return SECRET_PREFIX + random(KEY_BYTES).toString('base64');
}

export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(SECRET_PREFIX)) return false;
  const encodedKey = text.slice(SECRET_PREFIX.length);
  const key = Buffer.from(encodedKey, 'base64');
  return key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES && key.toString('base64') === encodedKey;
}

export function createSigningKey(secret: string): KeyObject {
  if (!isSigningSecret(secret)) throw new Error('a signing secret of a webhook is invalid');
  return createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64');
}

/**
 * `id` contains no full stop, which separates the signed parts. `secrets` has at least one element. A key is faster
 * than a secret, which must be decoded. Throws if the id or a secret is invalid.
 */
export function signWebhook(
  id: string,
  timestampMs: number,
  body: Uint8Array,
  secrets: readonly (string | KeyObject)[],
): SignatureHeaders {
  if (id === '' || id.includes('.')) throw new Error('the id of a webhook is empty or contains a full stop');
  if (secrets.length === 0) throw new Error('a webhook needs a signing secret');
  const timestamp = String(Math.floor(timestampMs / 1000));
  const signatures = secrets.map((secret) => {
    const key = typeof secret === 'string' ? createSigningKey(secret) : secret;
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}

// The special-purpose address registries of IANA (RFC 6890) of 2026-11-23. `isReachable`: the column "Globally
// Reachable" contains "True". Multicast and the IPv6 addresses outside 2000::/3 (RFC 4291) are in no registry and count
// as not reachable.

interface SpecialNetwork {
  readonly network: string;
  readonly name: string;
  readonly isReachable: boolean;
}

/** An entry precedes the entries of larger networks that contain it. */
const IPV4_NETWORKS: readonly SpecialNetwork[] = [
  { network: '0.0.0.0/8', name: 'this network, RFC 791', isReachable: false },
  { network: '10.0.0.0/8', name: 'private use, RFC 1918', isReachable: false },
  { network: '100.64.0.0/10', name: 'shared address space, RFC 6598', isReachable: false },
  { network: '127.0.0.0/8', name: 'loopback, RFC 1122', isReachable: false },
  { network: '169.254.0.0/16', name: 'link-local, RFC 3927', isReachable: false },
  { network: '172.16.0.0/12', name: 'private use, RFC 1918', isReachable: false },
  { network: '192.0.0.9/32', name: 'port control protocol anycast, RFC 7723', isReachable: true },
  { network: '192.0.0.10/32', name: 'TURN anycast, RFC 8155', isReachable: true },
  { network: '192.0.0.0/24', name: 'IETF protocol assignments, RFC 6890', isReachable: false },
  { network: '192.0.2.0/24', name: 'documentation, RFC 5737', isReachable: false },
  { network: '192.31.196.0/24', name: 'AS112-v4, RFC 7535', isReachable: true },
  { network: '192.52.193.0/24', name: 'AMT, RFC 7450', isReachable: true },
  { network: '192.88.99.0/24', name: '6to4 relay anycast, RFC 7526', isReachable: false },
  { network: '192.168.0.0/16', name: 'private use, RFC 1918', isReachable: false },
  { network: '192.175.48.0/24', name: 'AS112 service, RFC 7534', isReachable: true },
  { network: '198.18.0.0/15', name: 'benchmarking, RFC 2544', isReachable: false },
  { network: '198.51.100.0/24', name: 'documentation, RFC 5737', isReachable: false },
  { network: '203.0.113.0/24', name: 'documentation, RFC 5737', isReachable: false },
  { network: '224.0.0.0/4', name: 'multicast, RFC 5771', isReachable: false },
  { network: '240.0.0.0/4', name: 'reserved, RFC 1112', isReachable: false },
];

/** NAT64 (RFC 6052): a translator embeds IPv4 addresses. */
const NAT64_PREFIX = '64:ff9b::';

const IPV6_NETWORKS: readonly SpecialNetwork[] = [
  { network: '::1/128', name: 'loopback, RFC 4291', isReachable: false },
  { network: '::/128', name: 'unspecified, RFC 4291', isReachable: false },
  { network: '::ffff:0:0/96', name: 'IPv4-mapped, RFC 4291', isReachable: false },
  { network: `${NAT64_PREFIX}/96`, name: 'IPv4-IPv6 translation, RFC 6052', isReachable: true },
  { network: '64:ff9b:1::/48', name: 'local-use translation, RFC 8215', isReachable: false },
  { network: '100::/64', name: 'discard-only, RFC 6666', isReachable: false },
  { network: '100:0:0:1::/64', name: 'dummy prefix, RFC 9780', isReachable: false },
  { network: '2001::/32', name: 'Teredo, RFC 4380', isReachable: false },
  { network: '2001:1::1/128', name: 'port control protocol anycast, RFC 7723', isReachable: true },
  { network: '2001:1::2/128', name: 'TURN anycast, RFC 8155', isReachable: true },
  { network: '2001:1::3/128', name: 'DNS-SD registration anycast, RFC 9665', isReachable: true },
  { network: '2001:2::/48', name: 'benchmarking, RFC 5180', isReachable: false },
  { network: '2001:3::/32', name: 'AMT, RFC 7450', isReachable: true },
  { network: '2001:4:112::/48', name: 'AS112-v6, RFC 7535', isReachable: true },
  { network: '2001:10::/28', name: 'deprecated ORCHID, RFC 4843', isReachable: false },
  { network: '2001:20::/28', name: 'ORCHIDv2, RFC 7343', isReachable: true },
  { network: '2001:30::/28', name: 'drone remote id tags, RFC 9374', isReachable: true },
  { network: '2001::/23', name: 'IETF protocol assignments, RFC 2928', isReachable: false },
  { network: '2001:db8::/32', name: 'documentation, RFC 3849', isReachable: false },
  { network: '2002::/16', name: '6to4, RFC 3056', isReachable: false },
  { network: '2620:4f:8000::/48', name: 'AS112 service, RFC 7534', isReachable: true },
  { network: '3fff::/20', name: 'documentation, RFC 9637', isReachable: false },
  { network: '5f00::/16', name: 'segment routing, RFC 9602', isReachable: false },
  { network: 'fc00::/7', name: 'unique local, RFC 4193', isReachable: false },
  { network: 'fe80::/10', name: 'link-local, RFC 4291', isReachable: false },
  { network: 'ff00::/8', name: 'multicast, RFC 4291', isReachable: false },
  { network: '2000::/3', name: 'global unicast, RFC 4291', isReachable: true },
  { network: '::/0', name: 'not allocated as global unicast, RFC 4291', isReachable: false },
];

/** One list for each entry, because a `BlockList` does not return the entry that contains an address. */
function createLists(networks: readonly SpecialNetwork[], family: 'ipv4' | 'ipv6') {
  return networks.map(({ network, ...entry }) => {
    const list = new BlockList();
    const [address = '', prefixBits = ''] = network.split('/');
    list.addSubnet(address, Number(prefixBits), family);
    return { ...entry, list };
  });
}

/** Created at the first lookup, because most commands look up no address. */
let lists: { readonly [family in 'ipv4' | 'ipv6']: ReturnType<typeof createLists> } | null = null;

function findEntry(address: string, family: 'ipv4' | 'ipv6') {
  lists ??= { ipv4: createLists(IPV4_NETWORKS, 'ipv4'), ipv6: createLists(IPV6_NETWORKS, 'ipv6') };
  return lists[family].find(({ list }) => list.check(address, family));
}

/**
 * Null if the address is globally reachable, otherwise its network, such as `loopback, RFC 1122`. IPv4-mapped, 6to4 and
 * Teredo addresses never are. The IPv4 address in a NAT64 address is checked as well.
 */
export function findSpecialNetwork(address: string): string | null {
  const zoneIndex = address.indexOf('%');
  const addressWithoutZone = zoneIndex === -1 ? address : address.slice(0, zoneIndex);
  switch (isIP(addressWithoutZone)) {
    case 4: {
      const entry = findEntry(addressWithoutZone, 'ipv4');
      return entry === undefined || entry.isReachable ? null : entry.name;
    }
    case 6: {
      const entry = findEntry(addressWithoutZone, 'ipv6');
      if (entry === undefined || !entry.isReachable) return entry?.name ?? 'not an IP address';
      const translatedAddress = getTranslatedAddress(addressWithoutZone);
      return translatedAddress === null ? null : findSpecialNetwork(translatedAddress);
    }
    default:
      return 'not an IP address';
  }
}

function getTranslatedAddress(address: string): string | null {
  // The URL parser converts every notation to `64:ff9b::` and at most two groups.
  const canonicalAddress = new URL(`http://[${address}]`).hostname.slice(1, -1);
  if (!canonicalAddress.startsWith(NAT64_PREFIX)) return null;
  const groups = canonicalAddress.slice(NAT64_PREFIX.length).split(':');
  if (groups.length > 2) return null;
  const [low = 0, high = 0] = groups.reverse().map((group) => Number.parseInt(group || '0', 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
