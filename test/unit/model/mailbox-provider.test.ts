import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findMailboxProvider, MAILBOX_PROVIDERS } from '../../../src/model/mailbox-provider.ts';

const PROVIDER_ENTRIES = Object.entries(MAILBOX_PROVIDERS);
const mx = (exchange: string, priority = 10) => ({ priority, exchange });

/** Host names in the form of the MX records of each provider. */
const SAMPLE_HOSTS: Readonly<Record<keyof typeof MAILBOX_PROVIDERS, string>> = {
  google: 'gmail-smtp-in.l.google.com aspmx.l.google.com aspmx2.googlemail.com smtp.google.com',
  microsoft:
    'outlook-com.olc.protection.outlook.com example-com.mail.protection.outlook.com example-com.b-v1.mx.microsoft',
  yahoo: 'mta5.am0.yahoodns.net mx-aol.mail.gm0.yahoodns.net mx-eu.mail.am0.yahoodns.net',
  apple: 'mx01.mail.icloud.com mx02.mail.icloud.com',
  proton: 'mail.protonmail.ch mailsec.protonmail.ch',
  fastmail: 'in1-smtp.messagingengine.com in2-smtp.messagingengine.com',
  zoho: 'mx.zoho.com mx2.zoho.eu smtpin.zoho.com',
  gmx: 'mx00.emig.gmx.net mx01.gmx.net mx-ha02.web.de',
  ionos: 'mx00.kundenserver.de mx01.ionos.com mx00.ionos.co.uk',
  't-online': 'mx00.t-online.de mx03.t-online.de',
  freenet: 'emig.freenet.de',
  yandex: 'mx.yandex.ru mx.yandex.net',
  'mail-ru': 'mxs.mail.ru emx.mail.ru',
  seznam: 'mx1.seznam.cz mx2.seznam.cz',
  'wp-pl': 'mx.wp.pl',
  onet: 'mx.poczta.onet.pl',
  libero: 'smtp-in.libero.it',
  orange: 'smtp-in.orange.fr',
  'la-poste': 'smtpz4.laposte.net',
  free: 'mx1.free.fr mx2.free.fr',
  ovh: 'mx1.mail.ovh.net mx0.mail.ovh.net',
  comcast: 'mx1a1.comcast.net mx2.mxge.comcast.net',
  charter: 'pkvw-mx.msg.pkvw.co.charter.net',
  godaddy: 'smtp.secureserver.net mailstore1.secureserver.net',
  rackspace: 'mx1.emailsrvr.com mx2.emailsrvr.com',
  namecheap: 'mx1.privateemail.com eforward1.registrar-servers.com',
  cloudflare: 'route1.mx.cloudflare.net amir.mx.cloudflare.net',
  amazon: 'inbound-smtp.us-east-1.amazonaws.com amazon-smtp.amazon.com',
  tencent: 'mx3.qq.com mxbiz1.qq.com',
  netease: '163mx01.mxmail.netease.com qiye163mx01.mxmail.netease.com',
  naver: 'mx1.naver.com mx2.naver.com',
  mimecast: 'us-smtp-inbound-1.mimecast.com eu-smtp-inbound-2.mimecast.com',
  proofpoint: 'mx0a-00000001.pphosted.com mx1-us1.ppe-hosted.com',
  cisco: 'mx1.hc1234-56.iphmx.com mx2.hc1234-56.eu.iphmx.com',
  barracuda: 'd12345a.ess.barracudanetworks.com d12345b.ess.uk.barracudanetworks.com',
  trellix: 'primary.us.email.fireeyecloud.com',
  'trend-micro': 'example.in.tmes.trendmicro.com example.in.tmes.trendmicro.eu',
  sophos: 'mx-01-eu-west-1.prod.hydra.sophos.com',
  hornetsecurity: 'mx01.hornetsecurity.com mx21a.antispameurope.com',
  broadcom: 'cluster1.us.messagelabs.com cluster5.eu.messagelabs.com',
};

test.each(Object.entries(SAMPLE_HOSTS))(
  'the sample hosts of %s belong to this provider, in any case',
  (code, hosts) => {
    for (const host of hosts.split(' ')) {
      expect(findMailboxProvider([mx(host)])).toBe(code);
      expect(findMailboxProvider([mx(host.toUpperCase())])).toBe(code);
    }
  },
);

test('each suffix belongs to exactly one provider', () => {
  const suffixes = PROVIDER_ENTRIES.flatMap(([, { mxSuffixes }]) => [...mxSuffixes]);
  expect(new Set(suffixes).size).toBe(suffixes.length);
});

test('the MX record with the lowest preference value determines the provider, in any order of the records', () => {
  const records = [mx('backup.mx.example', 20), mx('smtp.google.com', 1), mx('mx01.mail.icloud.com', 5)];
  fc.assert(
    fc.property(fc.shuffledSubarray(records, { minLength: records.length }), (shuffled) => {
      expect(findMailboxProvider(shuffled)).toBe('google');
    }),
  );
});

test.each([
  ['notgoogle.com', 'other'],
  ['google.com.attacker.example', 'other'],
  ['', 'none'],
])('the host %j has the provider %s', (host, code) => {
  expect(findMailboxProvider([mx(host)])).toBe(code);
});
