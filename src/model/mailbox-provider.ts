/**
 * Mailbox providers: the operators of the servers that receive the messages of a domain. The MX records of a
 * recipient's domain determine its mailbox provider. Pure.
 */

interface MailboxProviderEntry {
  readonly name: string;
  /** Lower case. A host matches if it equals a suffix or ends with a dot and the suffix. */
  readonly mxSuffixes: readonly string[];
  /** A test checks that each name belongs to this provider. */
  readonly sampleHosts: readonly string[];
}

/**
 * Gateways that filter messages, such as Mimecast, are entries too, because they decide about acceptance. The codes are
 * stored and never change.
 */
export const MAILBOX_PROVIDERS = {
  google: {
    name: 'Google',
    mxSuffixes: ['google.com', 'googlemail.com', 'psmtp.com'],
    sampleHosts: ['gmail-smtp-in.l.google.com', 'aspmx.l.google.com', 'aspmx2.googlemail.com', 'smtp.google.com'],
  },
  microsoft: {
    name: 'Microsoft',
    mxSuffixes: [
      'mail.protection.outlook.com',
      'olc.protection.outlook.com',
      'mx.microsoft',
      'outlook.com',
      'hotmail.com',
    ],
    sampleHosts: [
      'outlook-com.olc.protection.outlook.com',
      'example-com.mail.protection.outlook.com',
      'example-com.b-v1.mx.microsoft',
    ],
  },
  yahoo: {
    name: 'Yahoo',
    mxSuffixes: ['yahoodns.net', 'yahoo.co.jp'],
    sampleHosts: ['mta5.am0.yahoodns.net', 'mx-aol.mail.gm0.yahoodns.net', 'mx-eu.mail.am0.yahoodns.net'],
  },
  apple: {
    name: 'Apple',
    mxSuffixes: ['mail.icloud.com', 'mail.me.com'],
    sampleHosts: ['mx01.mail.icloud.com', 'mx02.mail.icloud.com'],
  },
  proton: {
    name: 'Proton',
    mxSuffixes: ['protonmail.ch', 'proton.me'],
    sampleHosts: ['mail.protonmail.ch', 'mailsec.protonmail.ch'],
  },
  fastmail: {
    name: 'Fastmail',
    mxSuffixes: ['messagingengine.com'],
    sampleHosts: ['in1-smtp.messagingengine.com', 'in2-smtp.messagingengine.com'],
  },
  zoho: {
    name: 'Zoho',
    mxSuffixes: ['zoho.com', 'zoho.eu', 'zoho.in', 'zoho.com.au', 'zoho.com.cn', 'zohomail.com', 'zohocloud.ca'],
    sampleHosts: ['mx.zoho.com', 'mx2.zoho.eu', 'smtpin.zoho.com'],
  },
  gmx: {
    name: 'GMX and WEB.DE',
    mxSuffixes: ['gmx.net', 'web.de', 'gmx.com'],
    sampleHosts: ['mx00.emig.gmx.net', 'mx01.gmx.net', 'mx-ha02.web.de'],
  },
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
    sampleHosts: ['mx00.kundenserver.de', 'mx01.ionos.com', 'mx00.ionos.co.uk'],
  },
  't-online': {
    name: 'Telekom',
    mxSuffixes: ['t-online.de'],
    sampleHosts: ['mx00.t-online.de', 'mx03.t-online.de'],
  },
  freenet: {
    name: 'freenet',
    mxSuffixes: ['freenet.de'],
    sampleHosts: ['emig.freenet.de'],
  },
  yandex: {
    name: 'Yandex',
    mxSuffixes: ['yandex.ru', 'yandex.net', 'yandex.com'],
    sampleHosts: ['mx.yandex.ru', 'mx.yandex.net'],
  },
  'mail-ru': {
    name: 'Mail.ru',
    mxSuffixes: ['mail.ru'],
    sampleHosts: ['mxs.mail.ru', 'emx.mail.ru'],
  },
  seznam: {
    name: 'Seznam',
    mxSuffixes: ['seznam.cz'],
    sampleHosts: ['mx1.seznam.cz', 'mx2.seznam.cz'],
  },
  'wp-pl': {
    name: 'Wirtualna Polska',
    mxSuffixes: ['wp.pl'],
    sampleHosts: ['mx.wp.pl'],
  },
  onet: {
    name: 'Onet',
    mxSuffixes: ['onet.pl'],
    sampleHosts: ['mx.poczta.onet.pl'],
  },
  libero: {
    name: 'Libero',
    mxSuffixes: ['libero.it', 'italiaonline.it'],
    sampleHosts: ['smtp-in.libero.it'],
  },
  orange: {
    name: 'Orange',
    mxSuffixes: ['orange.fr', 'wanadoo.fr'],
    sampleHosts: ['smtp-in.orange.fr'],
  },
  'la-poste': {
    name: 'La Poste',
    mxSuffixes: ['laposte.net'],
    sampleHosts: ['smtpz4.laposte.net'],
  },
  free: {
    name: 'Free',
    mxSuffixes: ['free.fr'],
    sampleHosts: ['mx1.free.fr', 'mx2.free.fr'],
  },
  ovh: {
    name: 'OVHcloud',
    mxSuffixes: ['ovh.net', 'ovh.ca', 'ovhcloud.com'],
    sampleHosts: ['mx1.mail.ovh.net', 'mx0.mail.ovh.net'],
  },
  comcast: {
    name: 'Comcast',
    mxSuffixes: ['comcast.net'],
    sampleHosts: ['mx1a1.comcast.net', 'mx2.mxge.comcast.net'],
  },
  charter: {
    name: 'Charter',
    mxSuffixes: ['charter.net', 'rr.com'],
    sampleHosts: ['pkvw-mx.msg.pkvw.co.charter.net'],
  },
  godaddy: {
    name: 'GoDaddy',
    mxSuffixes: ['secureserver.net'],
    sampleHosts: ['smtp.secureserver.net', 'mailstore1.secureserver.net'],
  },
  rackspace: {
    name: 'Rackspace',
    mxSuffixes: ['emailsrvr.com'],
    sampleHosts: ['mx1.emailsrvr.com', 'mx2.emailsrvr.com'],
  },
  namecheap: {
    name: 'Namecheap',
    mxSuffixes: ['privateemail.com', 'registrar-servers.com'],
    sampleHosts: ['mx1.privateemail.com', 'eforward1.registrar-servers.com'],
  },
  cloudflare: {
    name: 'Cloudflare',
    mxSuffixes: ['mx.cloudflare.net'],
    sampleHosts: ['route1.mx.cloudflare.net', 'amir.mx.cloudflare.net'],
  },
  amazon: {
    name: 'Amazon',
    mxSuffixes: ['amazonaws.com', 'amazon-smtp.amazon.com'],
    sampleHosts: ['inbound-smtp.us-east-1.amazonaws.com', 'amazon-smtp.amazon.com'],
  },
  tencent: {
    name: 'Tencent QQ',
    mxSuffixes: ['qq.com'],
    sampleHosts: ['mx3.qq.com', 'mxbiz1.qq.com'],
  },
  netease: {
    name: 'NetEase',
    mxSuffixes: ['netease.com'],
    sampleHosts: ['163mx01.mxmail.netease.com', 'qiye163mx01.mxmail.netease.com'],
  },
  naver: {
    name: 'Naver',
    mxSuffixes: ['naver.com'],
    sampleHosts: ['mx1.naver.com', 'mx2.naver.com'],
  },
  mimecast: {
    name: 'Mimecast',
    mxSuffixes: ['mimecast.com', 'mimecast.co.za', 'mimecast-offshore.com'],
    sampleHosts: ['us-smtp-inbound-1.mimecast.com', 'eu-smtp-inbound-2.mimecast.com'],
  },
  proofpoint: {
    name: 'Proofpoint',
    mxSuffixes: ['pphosted.com', 'ppe-hosted.com', 'gpphosted.com'],
    sampleHosts: ['mx0a-00000001.pphosted.com', 'mx1-us1.ppe-hosted.com'],
  },
  cisco: {
    name: 'Cisco',
    mxSuffixes: ['iphmx.com'],
    sampleHosts: ['mx1.hc1234-56.iphmx.com', 'mx2.hc1234-56.eu.iphmx.com'],
  },
  barracuda: {
    name: 'Barracuda',
    mxSuffixes: ['barracudanetworks.com', 'cudaops.com'],
    sampleHosts: ['d12345a.ess.barracudanetworks.com', 'd12345b.ess.uk.barracudanetworks.com'],
  },
  trellix: {
    name: 'Trellix',
    mxSuffixes: ['fireeyecloud.com', 'mxlogic.net'],
    sampleHosts: ['primary.us.email.fireeyecloud.com'],
  },
  'trend-micro': {
    name: 'Trend Micro',
    mxSuffixes: ['trendmicro.com', 'trendmicro.eu'],
    sampleHosts: ['example.in.tmes.trendmicro.com', 'example.in.tmes.trendmicro.eu'],
  },
  sophos: {
    name: 'Sophos',
    mxSuffixes: ['prod.hydra.sophos.com', 'reflexion.net'],
    sampleHosts: ['mx-01-eu-west-1.prod.hydra.sophos.com'],
  },
  hornetsecurity: {
    name: 'Hornetsecurity',
    mxSuffixes: ['hornetsecurity.com', 'antispameurope.com'],
    sampleHosts: ['mx01.hornetsecurity.com', 'mx21a.antispameurope.com'],
  },
  broadcom: {
    name: 'Broadcom',
    mxSuffixes: ['messagelabs.com'],
    sampleHosts: ['cluster1.us.messagelabs.com', 'cluster5.eu.messagelabs.com'],
  },
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

/**
 * The lowest priority value decides (RFC 5321 section 5.1). Of several, the first host name in alphabetical order does.
 */
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
