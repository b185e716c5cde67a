/**
 * The records to publish and the findings for a domain's identity at Amazon SES. What could not be read is `unknown`,
 * never `missing`. Pure.
 */
import type { DnsRecord, RecordCheck } from '../model/domain.ts';
import type { SesIdentity } from './ses-identity.ts';

/** A status record is listed with the DNS records but is not published. */
const IDENTITY_VALUE = 'verified';
const formatMailFromValue = (domain: string): string => `MAIL FROM ${domain}`;

/** As the Developer Guide of Amazon SES requires. */
const MAIL_FROM_SPF = 'v=spf1 include:amazonses.com ~all';

/** The status records follow the DNS records. */
export function createIdentityRecords(
  domain: string,
  region: string,
  identity: SesIdentity | null,
): readonly DnsRecord[] {
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
    records.push({ purpose: 'spf', type: 'TXT', name: mailFrom.domain, value: MAIL_FROM_SPF });
  }
  return [...records, ...createStatusRecords(domain, identity)];
}

function createStatusRecords(domain: string, identity: SesIdentity | null): readonly DnsRecord[] {
  const createStatusRecord = (value: string): DnsRecord => ({ purpose: 'provider', type: 'SES', name: domain, value });
  const mailFrom = identity?.mailFrom ?? null;
  return mailFrom === null
    ? [createStatusRecord(IDENTITY_VALUE)]
    : [createStatusRecord(IDENTITY_VALUE), createStatusRecord(formatMailFromValue(mailFrom.domain))];
}

type Finding = Omit<RecordCheck, keyof DnsRecord>;

/**
 * The check of the identity is the first. With a fault, the provider could not be reached, and all checks are
 * `unknown`.
 */
export function createIdentityChecks(
  domain: string,
  region: string,
  identity: SesIdentity | null,
  fault: string | null,
): readonly RecordCheck[] {
  return createStatusRecords(domain, identity).map((record) => {
    if (fault !== null) {
      const detail = `Amazon SES could not be reached (${fault}), so the status is unknown; check the credentials and the network`;
      return { ...record, found: 'unknown', seen: [], detail };
    }
    const finding =
      record.value === IDENTITY_VALUE
        ? createIdentityFinding(domain, identity)
        : createMailFromFinding(region, identity);
    return { ...record, ...finding };
  });
}

function createIdentityFinding(domain: string, identity: SesIdentity | null): Finding {
  if (identity === null) {
    const detail = `Amazon SES has no identity for this domain and rejects messages from this domain; \`postrider domain verify ${domain}\` creates the identity`;
    return { found: 'missing', seen: [], detail };
  }
  const { isVerified, dkim, fault } = identity;
  const seen = [`${isVerified ? 'verified' : 'not verified'}, DKIM ${dkim}${fault === null ? '' : `, ${fault}`}`];
  if (!isVerified) {
    const detail = `Amazon SES has not verified this domain yet: ${describePendingCheck(identity)}`;
    return { found: 'wrong', seen, detail };
  }
  if (dkim === 'SUCCESS' || dkim === 'NOT_STARTED') {
    return { found: 'found', seen, detail: 'Amazon SES accepts messages from this domain' };
  }
  const detail = `Amazon SES accepts messages from this domain, but currently finds no DKIM key (${dkim}): ${getKeyRemedy(identity)}`;
  return { found: 'found', seen, detail };
}

function describePendingCheck(identity: SesIdentity): string {
  const reasonText = identity.fault === null ? '' : ` (${identity.fault})`;
  return identity.dkim === 'FAILED'
    ? `Amazon SES did not find the DKIM record${reasonText}: ${getKeyRemedy(identity)}, then verify the domain again`
    : `the search for the DKIM record${reasonText} can take hours: ${getKeyRemedy(identity)}`;
}

function getKeyRemedy({ origin, tokens }: SesIdentity): string {
  if (origin !== 'EXTERNAL') return 'publish the three CNAME records of the identity';
  return `publish the record of ${tokens.length === 0 ? 'the RSA key' : `the selector ${tokens.join(', ')}`}`;
}

/** The provider checks only the MX record. */
function createMailFromFinding(region: string, identity: SesIdentity | null): Finding {
  const mailFrom = identity?.mailFrom ?? null;
  if (mailFrom === null) return { found: 'missing', seen: [], detail: 'no custom MAIL FROM domain is set' };
  const { domain, status, isRequired } = mailFrom;
  const seen = [status];
  const consequence = isRequired
    ? 'until the record is found, Amazon SES rejects the messages'
    : 'until the record is found, Amazon SES uses its own MAIL FROM domain, and SPF does not align';
  switch (status) {
    case 'SUCCESS':
      return { found: 'found', seen, detail: 'Amazon SES uses this MAIL FROM domain' };
    case 'TEMPORARY_FAILURE':
      return { found: 'unknown', seen, detail: 'Amazon SES could not look up the MX record, so the status is unknown' };
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
