/**
 * Derives the records to publish, and the findings with their remedies, from the identity of a domain at Amazon SES. The
 * functions are pure. An identity that could not be read is `unknown`, never `missing`.
 */
import type { DnsRecord, RecordCheck } from '../model/domain.ts';
import type { SesIdentity } from './ses-identity.ts';

/** The value of the status record of a domain. A status record is listed with the DNS records but is not published. */
const VERIFIED = 'verified';
const mailFromValue = (domain: string): string => `MAIL FROM ${domain}`;

/** The SPF record that the Developer Guide of Amazon SES requires for a custom MAIL FROM domain. */
const SPF = 'v=spf1 include:amazonses.com ~all';

/**
 * Returns the DNS records that the provider requires, including MX and SPF of a custom MAIL FROM domain. The status records
 * follow the DNS records.
 */
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

/**
 * Returns the checks of the status records; the check of the identity is first. `fault` is the reason for which the
 * provider could not be reached; all checks are then `unknown`.
 */
export function identityChecks(
  domain: string,
  region: string,
  identity: SesIdentity | null,
  fault: string | null,
): readonly RecordCheck[] {
  return statusRecords(domain, identity).map((record) => {
    if (fault !== null) {
      const detail = `Amazon SES could not be reached (${fault}), so the status is unknown; check the credentials and the network`;
      return { ...record, found: 'unknown', seen: [], detail };
    }
    const finding = record.value === VERIFIED ? identityFinding(domain, identity) : mailFromFinding(region, identity);
    return { ...record, ...finding };
  });
}

function identityFinding(domain: string, identity: SesIdentity | null): Finding {
  if (identity === null) {
    const detail = `Amazon SES has no identity for this domain, so it rejects its messages; \`postrider domain verify ${domain}\` creates the identity`;
    return { found: 'missing', seen: [], detail };
  }
  const { verified, dkim, fault } = identity;
  const seen = [`${verified ? 'verified' : 'not verified'}, DKIM ${dkim}${fault === null ? '' : `, ${fault}`}`];
  if (!verified) {
    const detail = `Amazon SES has not verified this domain yet: ${pendingText(identity)}`;
    return { found: 'wrong', seen, detail };
  }
  if (dkim === 'SUCCESS' || dkim === 'NOT_STARTED') {
    return { found: 'found', seen, detail: 'Amazon SES accepts messages from this domain' };
  }
  const detail = `Amazon SES accepts messages from this domain, but does not find its DKIM key at present (${dkim}): ${keyRemedy(identity)}`;
  return { found: 'found', seen, detail };
}

function pendingText(identity: SesIdentity): string {
  const reasonText = identity.fault === null ? '' : ` (${identity.fault})`;
  return identity.dkim === 'FAILED'
    ? `it did not find the DKIM record${reasonText}: ${keyRemedy(identity)}, then verify again`
    : `it searches for the DKIM record${reasonText}, which can take hours: ${keyRemedy(identity)}`;
}

function keyRemedy({ origin, tokens }: SesIdentity): string {
  if (origin !== 'EXTERNAL') return 'publish its three CNAME records';
  return `publish the record of ${tokens.length === 0 ? 'the RSA key' : `the selector ${tokens.join(', ')}`}`;
}

/** The provider checks only the MX record. */
function mailFromFinding(region: string, identity: SesIdentity | null): Finding {
  const mailFrom = identity?.mailFrom ?? null;
  if (mailFrom === null) return { found: 'missing', seen: [], detail: 'no custom MAIL FROM domain is set' };
  const { domain, status, required } = mailFrom;
  const seen = [status];
  const consequence = required
    ? 'until it is found, Amazon SES rejects the messages'
    : 'until it is found, Amazon SES uses its own MAIL FROM domain, and SPF does not align';
  switch (status) {
    case 'SUCCESS':
      return { found: 'found', seen, detail: 'Amazon SES uses this MAIL FROM domain' };
    case 'TEMPORARY_FAILURE':
      return { found: 'unknown', seen, detail: 'Amazon SES could not look up its MX record, so the status is unknown' };
    case 'FAILED': {
      const detail = `Amazon SES found no MX record of ${domain}: publish 10 feedback-smtp.${region}.amazonses.com and set the MAIL FROM domain again at Amazon SES; ${consequence}`;
      return { found: 'wrong', seen, detail };
    }
    default: {
      const detail = `Amazon SES searches for the MX record of ${domain}, which can take days; ${consequence}`;
      return { found: 'wrong', seen, detail };
    }
  }
}
