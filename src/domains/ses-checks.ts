/**
 * What the identity of a domain at Amazon SES means to the operator: records to publish, and findings with what to do. Pure.
 * An identity that could not be looked at is `unknown`, never `missing`.
 */
import type { DnsRecord, RecordCheck } from '../model/domain.ts';
import type { SesIdentity } from './ses-identity.ts';

/** The provider's view of a domain, which is no record but stands among them. */
const VERIFIED = 'verified';
const mailFromValue = (domain: string): string => `MAIL FROM ${domain}`;

/** What its Developer Guide asks for at a custom MAIL FROM domain. */
const SPF = 'v=spf1 include:amazonses.com ~all';

/** What to publish for the provider, MX and SPF of a custom MAIL FROM domain included; then its own lines. */
export function identityRecords(domain: string, region: string, identity: SesIdentity | null): readonly DnsRecord[] {
  const usesEasyDkim = identity !== null && identity.origin !== 'EXTERNAL';
  const mailFrom = identity?.mailFrom ?? null;
  const records = usesEasyDkim
    ? identity.tokens.map(
        (token): DnsRecord => ({
          purpose: 'provider',
          type: 'CNAME',
          name: `${token}._domainkey.${domain}`,
          value: `${token}.${identity.keyZone}`,
        }),
      )
    : [];
  if (mailFrom !== null) {
    const value = `10 feedback-smtp.${region}.amazonses.com`;
    records.push({ purpose: 'provider', type: 'MX', name: mailFrom.domain, value });
    records.push({ purpose: 'spf', type: 'TXT', name: mailFrom.domain, value: SPF });
  }
  return [...records, ...statusRecords(domain, identity)];
}

function statusRecords(domain: string, identity: SesIdentity | null): readonly DnsRecord[] {
  const statusRecord = (value: string): DnsRecord => ({ purpose: 'provider', type: 'SES', name: domain, value });
  const mailFrom = identity?.mailFrom ?? null;
  return mailFrom === null
    ? [statusRecord(VERIFIED)]
    : [statusRecord(VERIFIED), statusRecord(mailFromValue(mailFrom.domain))];
}

type Finding = Omit<RecordCheck, keyof DnsRecord>;

/** The checks of the provider's own lines, the identity's first. `fault` is why it could not be asked: then nothing is known. */
export function identityChecks(
  domain: string,
  region: string,
  identity: SesIdentity | null,
  fault: string | null,
): readonly RecordCheck[] {
  return statusRecords(domain, identity).map((record) => {
    if (fault !== null) {
      const detail = `Amazon SES could not be asked (${fault}); nothing is concluded from it`;
      return { ...record, found: 'unknown', seen: [], detail };
    }
    const finding = record.value === VERIFIED ? identityFinding(domain, identity) : mailFromFinding(region, identity);
    return { ...record, ...finding };
  });
}

function identityFinding(domain: string, identity: SesIdentity | null): Finding {
  if (identity === null) {
    const detail = `Amazon SES has no identity of this name and takes no mail from it; \`postrider domain verify ${domain}\` makes it`;
    return { found: 'missing', seen: [], detail };
  }
  const { verified, dkim, fault } = identity;
  const seen = [`${verified ? 'verified' : 'not verified'}, DKIM ${dkim}${fault === null ? '' : `, ${fault}`}`];
  if (!verified) {
    const detail = `Amazon SES has not verified it yet: ${pendingText(identity)}`;
    return { found: 'wrong', seen, detail };
  }
  if (dkim === 'SUCCESS' || dkim === 'NOT_STARTED') {
    return { found: 'found', seen, detail: 'Amazon SES takes mail from it' };
  }
  const detail = `Amazon SES takes mail from it, and does not see its DKIM key now (${dkim}): ${keyRemedy(identity)}`;
  return { found: 'found', seen, detail };
}

function pendingText(identity: SesIdentity): string {
  const why = identity.fault === null ? '' : ` (${identity.fault})`;
  return identity.dkim === 'FAILED'
    ? `it did not find the DKIM record${why}: ${keyRemedy(identity)}, then verify again`
    : `it looks for the DKIM record${why}, for minutes or hours: ${keyRemedy(identity)}`;
}

function keyRemedy({ origin, tokens }: SesIdentity): string {
  if (origin !== 'EXTERNAL') return 'publish its three CNAME records';
  return `publish the record of ${tokens.length === 0 ? 'the RSA key' : `the selector ${tokens.join(', ')}`}`;
}

/** The provider looks for the MX alone. */
function mailFromFinding(region: string, identity: SesIdentity | null): Finding {
  const mailFrom = identity?.mailFrom ?? null;
  if (mailFrom === null) return { found: 'missing', seen: [], detail: 'no custom MAIL FROM domain is set' };
  const { domain, status, required } = mailFrom;
  const seen = [status];
  const consequence = required
    ? 'it refuses mail until then'
    : 'until then its own name stands there, and SPF does not align';
  switch (status) {
    case 'SUCCESS':
      return { found: 'found', seen, detail: 'Amazon SES sends with this envelope domain' };
    case 'TEMPORARY_FAILURE':
      return { found: 'unknown', seen, detail: 'Amazon SES could not look its MX up; nothing is concluded from it' };
    case 'FAILED': {
      const detail = `Amazon SES found no MX of ${domain}: publish 10 feedback-smtp.${region}.amazonses.com and set it again there; ${consequence}`;
      return { found: 'wrong', seen, detail };
    }
    default: {
      const detail = `Amazon SES looks for the MX of ${domain}, for minutes or days; ${consequence}`;
      return { found: 'wrong', seen, detail };
    }
  }
}
