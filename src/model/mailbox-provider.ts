/** Mailbox providers: the operators of the servers in the MX records of a recipient's domain. Pure. */

interface MailboxProviderEntry {
  readonly name: string;
  /** Lower case. A host matches if it equals a suffix or ends with a dot and the suffix. */
  readonly mxSuffixes: readonly string[];
}

/** Filtering gateways, such as Mimecast, are entries too. The codes are stored and never change. */
export const MAILBOX_PROVIDERS = {
  google: { name: 'Google', mxSuffixes: ['google.com', 'googlemail.com', 'psmtp.com'] },
  microsoft: {
    name: 'Microsoft',
    mxSuffixes: [
      'mail.protection.outlook.com',
      'olc.protection.outlook.com',
      'mx.microsoft',
      'outlook.com',
      'hotmail.com',
    ],
  },
  yahoo: { name: 'Yahoo', mxSuffixes: ['yahoodns.net', 'yahoo.co.jp'] },
  apple: { name: 'Apple', mxSuffixes: ['mail.icloud.com', 'mail.me.com'] },
  proton: { name: 'Proton', mxSuffixes: ['protonmail.ch', 'proton.me'] },
  fastmail: { name: 'Fastmail', mxSuffixes: ['messagingengine.com'] },
  zoho: {
    name: 'Zoho',
    mxSuffixes: ['zoho.com', 'zoho.eu', 'zoho.in', 'zoho.com.au', 'zoho.com.cn', 'zohomail.com', 'zohocloud.ca'],
  },
  gmx: { name: 'GMX and WEB.DE', mxSuffixes: ['gmx.net', 'web.de', 'gmx.com'] },
  ionos: {
    name: 'IONOS',
    mxSuffixes: [
      'kundenserver.de',
      'ionos.com',
      'ionos.de',
      'ionos.co.uk',
      'ionos.fr',
      'ionos.es',
      '1and1.com',
      'perfora.net',
    ],
  },
  't-online': { name: 'Telekom', mxSuffixes: ['t-online.de'] },
  freenet: { name: 'freenet', mxSuffixes: ['freenet.de'] },
  yandex: { name: 'Yandex', mxSuffixes: ['yandex.ru', 'yandex.net', 'yandex.com'] },
  'mail-ru': { name: 'Mail.ru', mxSuffixes: ['mail.ru'] },
  seznam: { name: 'Seznam', mxSuffixes: ['seznam.cz'] },
  'wp-pl': { name: 'Wirtualna Polska', mxSuffixes: ['wp.pl'] },
  onet: { name: 'Onet', mxSuffixes: ['onet.pl'] },
  libero: { name: 'Libero', mxSuffixes: ['libero.it', 'italiaonline.it'] },
  orange: { name: 'Orange', mxSuffixes: ['orange.fr', 'wanadoo.fr'] },
  'la-poste': { name: 'La Poste', mxSuffixes: ['laposte.net'] },
  free: { name: 'Free', mxSuffixes: ['free.fr'] },
  ovh: { name: 'OVHcloud', mxSuffixes: ['ovh.net', 'ovh.ca', 'ovhcloud.com'] },
  comcast: { name: 'Comcast', mxSuffixes: ['comcast.net'] },
  charter: { name: 'Charter', mxSuffixes: ['charter.net', 'rr.com'] },
  godaddy: { name: 'GoDaddy', mxSuffixes: ['secureserver.net'] },
  rackspace: { name: 'Rackspace', mxSuffixes: ['emailsrvr.com'] },
  namecheap: { name: 'Namecheap', mxSuffixes: ['privateemail.com', 'registrar-servers.com'] },
  cloudflare: { name: 'Cloudflare', mxSuffixes: ['mx.cloudflare.net'] },
  amazon: { name: 'Amazon', mxSuffixes: ['amazonaws.com', 'amazon-smtp.amazon.com'] },
  tencent: { name: 'Tencent QQ', mxSuffixes: ['qq.com'] },
  netease: { name: 'NetEase', mxSuffixes: ['netease.com'] },
  naver: { name: 'Naver', mxSuffixes: ['naver.com'] },
  mimecast: { name: 'Mimecast', mxSuffixes: ['mimecast.com', 'mimecast.co.za', 'mimecast-offshore.com'] },
  proofpoint: { name: 'Proofpoint', mxSuffixes: ['pphosted.com', 'ppe-hosted.com', 'gpphosted.com'] },
  cisco: { name: 'Cisco', mxSuffixes: ['iphmx.com'] },
  barracuda: { name: 'Barracuda', mxSuffixes: ['barracudanetworks.com', 'cudaops.com'] },
  trellix: { name: 'Trellix', mxSuffixes: ['fireeyecloud.com', 'mxlogic.net'] },
  'trend-micro': { name: 'Trend Micro', mxSuffixes: ['trendmicro.com', 'trendmicro.eu'] },
  sophos: { name: 'Sophos', mxSuffixes: ['prod.hydra.sophos.com', 'reflexion.net'] },
  hornetsecurity: { name: 'Hornetsecurity', mxSuffixes: ['hornetsecurity.com', 'antispameurope.com'] },
  broadcom: { name: 'Broadcom', mxSuffixes: ['messagelabs.com'] },
} as const satisfies Readonly<Record<string, MailboxProviderEntry>>;

export type KnownMailboxProvider = keyof typeof MAILBOX_PROVIDERS;
/** `none`: no server receives messages. `unknown`: DNS has not answered yet. */
export type MailboxProvider = KnownMailboxProvider | 'other' | 'none' | 'simulator' | 'unknown';

const SPECIAL_NAMES = {
  other: 'Other servers',
  none: 'No mail server',
  simulator: 'Simulator',
  unknown: 'Unknown',
} as const satisfies Readonly<Record<Exclude<MailboxProvider, KnownMailboxProvider>, string>>;

// `Object.keys` returns `string[]`; the keys are exactly those of the types.
const KNOWN_CODES = Object.keys(MAILBOX_PROVIDERS) as readonly KnownMailboxProvider[];
export const MAILBOX_PROVIDER_CODES: readonly MailboxProvider[] = [
  ...KNOWN_CODES,
  ...(Object.keys(SPECIAL_NAMES) as readonly (keyof typeof SPECIAL_NAMES)[]),
];

const CODES_BY_SUFFIX: ReadonlyMap<string, KnownMailboxProvider> = new Map(
  KNOWN_CODES.flatMap((code) => MAILBOX_PROVIDERS[code].mxSuffixes.map((suffix) => [suffix, code] as const)),
);

export function isMailboxProvider(code: string): code is MailboxProvider {
  return Object.hasOwn(MAILBOX_PROVIDERS, code) || Object.hasOwn(SPECIAL_NAMES, code);
}

export function getMailboxProviderName(code: string): string {
  if (Object.hasOwn(MAILBOX_PROVIDERS, code)) return MAILBOX_PROVIDERS[code as KnownMailboxProvider].name;
  return Object.hasOwn(SPECIAL_NAMES, code) ? SPECIAL_NAMES[code as keyof typeof SPECIAL_NAMES] : code;
}

/** `exchange` is empty for a null MX (RFC 7505). */
interface MxRecord {
  readonly priority: number;
  readonly exchange: string;
}

/** The lowest priority (RFC 5321 section 5.1), of several the first host name in alphabetical order. */
export function findMailboxProvider(records: readonly MxRecord[]): MailboxProvider {
  const [first] = records
    .filter(({ exchange }) => exchange !== '')
    .sort((a, b) => a.priority - b.priority || (a.exchange < b.exchange ? -1 : 1));
  return first === undefined ? 'none' : findProviderOfHost(first.exchange);
}

function findProviderOfHost(host: string): KnownMailboxProvider | 'other' {
  const labels = host.toLowerCase().split('.');
  for (let start = 0; start < labels.length; start += 1) {
    const code = CODES_BY_SUFFIX.get(labels.slice(start).join('.'));
    if (code !== undefined) return code;
  }
  return 'other';
}

export interface StoredMailboxProvider {
  /** Lower case, without a trailing dot. */
  readonly domain: string;
  readonly provider: MailboxProvider;
  readonly lookedUpAt: number;
}

export const MAILBOX_PROVIDER_RETENTION_MS = 90 * 24 * 3_600_000;
/** Above it, those with the oldest lookups are purged. */
export const MAX_STORED_MAILBOX_PROVIDERS = 100_000;
