/**
 * The operation that queries the DNS records of a sending domain and updates the status of the domain. With `ses:`, the
 * operation also reads the identity of the domain at the provider, and creates a missing identity.
 */
import { createResolver } from '../domains/dns.ts';
import { ensureProviderIdentity, type ProviderStatus } from '../domains/provider-identity.ts';
import { createRecords } from '../domains/records.ts';
import { evaluateDomainChecks, getSendingSetup } from '../domains/setup.ts';
import { checkRecords } from '../domains/verify.ts';
import { findReturnPathChange, type RecordCheck, type SendingDomain } from '../model/domain.ts';
import { Type } from '../model/schema.ts';
import { DomainName, findDomain, listProviderChecks, readDomainDetails, requireChanged } from './domain-lookup.ts';
import { VerifiedDomain } from './domains/schemas.ts';
import { ok } from './errors.ts';
import { defineOperation } from './operation.ts';

/**
 * Queries the records and stores the result. The status is updated only if DNS answered. A staged key becomes active if
 * its record is found.
 */
export const verifyDomain = defineOperation({
  name: 'domain.verify',
  id: 'verifyDomain',
  summary: 'Query the records of a domain in DNS and update its status',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({ domain: DomainName }),
  result: VerifiedDomain,
  errors: ['not-found', 'conflict'],
  async run({ domain: domainText }, context) {
    const { store, settings, clock } = context;
    const initialResult = await findDomain(store, domainText);
    if (!initialResult.ok) return initialResult;
    const resolver = createResolver(settings.dns);
    const checks = await checkRecords(createRecords(initialResult.value, getSendingSetup(settings)), resolver);
    // The domain is read again, because a rotation may have begun during the DNS queries.
    const latestResult = await findDomain(store, initialResult.value.name);
    if (!latestResult.ok) return latestResult;
    const { update, event } = evaluateDomainChecks(latestResult.value, checks, clock.now(), settings.maxAgeMs);
    const isAnswered = checks.some((check) => check.found !== 'unknown');
    const updateResult = isAnswered
      ? requireChanged(latestResult.value.name, await store.updateDomain(update))
      : latestResult;
    if (!updateResult.ok) return updateResult;
    const domain = updateResult.value;
    const provider = await ensureProviderIdentity(settings, domain, 'own');
    const providerRecords = (provider?.records ?? []).filter(({ type }) => type !== 'SES');
    const allChecks = [...checks, ...(await checkRecords(providerRecords, resolver)), ...listProviderChecks(provider)];
    return ok({
      ...(await readDomainDetails(context, domain, allChecks, allChecks)),
      change: event,
      returnPathChange: findReturnPathChange(latestResult.value, domain, checks),
      fault: findVerificationFault(domain, checks, provider),
    });
  },
});

/**
 * Returns the reason why the check fails, or null if the check passes. Faults of the records take precedence over
 * faults at the provider.
 */
function findVerificationFault(
  domain: SendingDomain,
  checks: readonly RecordCheck[],
  provider: ProviderStatus | null,
): string | null {
  if (domain.status !== 'authenticated') return describeMissingAuthentication(domain, checks);
  const identityCheck = provider?.identityCheck;
  const isRefused = identityCheck?.found === 'wrong' || identityCheck?.found === 'missing';
  return isRefused ? `${domain.name}: ${identityCheck.detail}` : null;
}

function describeMissingAuthentication({ name, status }: SendingDomain, checks: readonly RecordCheck[]): string {
  const countRecords = (kind: RecordCheck['found']) => checks.filter((check) => check.found === kind).length;
  const counts = (['missing', 'wrong', 'unknown'] as const)
    .filter((kind) => countRecords(kind) > 0)
    .map((kind) => `${countRecords(kind)} ${kind}`);
  const faults = counts.length === 0 ? 'all records were found' : `${counts.join(', ')} of ${checks.length} records`;
  return `${name} is not authenticated (${status}): ${faults}; \`postrider domain records ${name}\` prints what to publish`;
}
