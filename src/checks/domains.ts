import type { ReturnPathState } from '../domains/name.ts';
import type { DomainProblem } from '../model/attention.ts';
import { GRACE_PERIOD_MS, maySend, type RecordCheck, type SendingDomain } from '../model/domain.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import { formatSpan } from '../printing/text.ts';
import {
  type Check,
  type Facts,
  type Finding,
  type Health,
  type Problem,
  report,
  reportHealth,
  reportStep,
  type SetupFacts,
  type Step,
} from './facts.ts';

export const domains: Check = {
  problems(facts) {
    const { settings, store } = facts;
    if (requiresAuthenticatedSender(settings) && store.domains.all === 0)
      return [
        report('no-sending-domain', null, '/domains').warning(
          'There is no sending domain: messages of every sender are refused',
          'Add a domain and publish its records',
        ),
      ];
    // With the transport `capture:`, no message is sent, so missing records have no effect.
    if (settings.transport.kind === 'capture') return [];
    return store.domains.problems
      .filter(({ status, failedRecords }) => status !== 'authenticated' || failedRecords.length > 0)
      .map((domain) => describeProblem(domain, facts));
  },
  health({ settings, store }): Health {
    const { all, authenticated, problems } = store.domains;
    const create = (level: Health['level'], text: string) => reportHealth('domains', level, text);
    const counts = `${authenticated} of ${all} authenticated`;
    if (!requiresAuthenticatedSender(settings)) {
      const hasProblem = settings.transport.kind !== 'capture' && problems.length > 0;
      return create(hasProblem ? 'warning' : 'ok', `${all === 0 ? 'none' : counts}; not required`);
    }
    if (all === 0) return create('warning', 'none; messages of every sender are refused');
    if (problems.some((domain) => domain.status === 'failing' && !maySend(domain))) return create('failure', counts);
    return create(problems.length > 0 ? 'warning' : 'ok', counts);
  },
  steps: (facts) => [createDomainStep(facts), createRecordsStep(facts)],
};

function describeProblem(domain: DomainProblem, { settings, now }: Facts): Problem {
  const { name, status, failingSince, failedRecords } = domain;
  const page = `/domains/${encodeURIComponent(name)}`;
  const publish = 'Publish its records, then verify the domain';
  if (status !== 'authenticated' && !requiresAuthenticatedSender(settings))
    return report(status === 'failing' ? 'domain-failing' : 'domain-pending', name, page).warning(
      `${name} is not authenticated; its messages are accepted nevertheless`,
      publish,
    );
  switch (status) {
    case 'pending':
      return report('domain-pending', name, page).warning(
        `${name} may not send yet: its records were not found`,
        publish,
      );
    case 'failing': {
      const fault = `${name}: the DKIM records are missing or wrong`;
      const remedy = 'Publish its DKIM records again';
      if (!maySend(domain))
        return report('domain-refused', name, page).failure(`${fault}, and its messages are refused`, remedy);
      const remainingMs = (failingSince ?? now) + GRACE_PERIOD_MS - now;
      const when = remainingMs > 0 ? `in ${formatSpan(remainingMs)}` : 'soon';
      return report('domain-failing', name, page).failure(`${fault}; its messages are refused ${when}`, remedy);
    }
    case 'authenticated': {
      const purposes = [...new Set(failedRecords.map(({ purpose }) => purpose))].join(', ');
      return report('domain-records', name, page).warning(
        `${name} has missing or wrong records: ${purposes}`,
        'On the domain page, compare the records with DNS',
      );
    }
  }
}

function createDomainStep({ store, settings, account }: SetupFacts): Step {
  const { all } = store.domains;
  const { done, notNeeded, open, optional } = reportStep('domain', 'Add a sending domain', '/domains');
  if (all > 0) return done(all === 1 ? 'There is one domain.' : `There are ${all} domains.`);
  if (settings.transport.kind === 'capture')
    return notNeeded('The transport `capture:` accepts every sender. A provider needs an authenticated domain.');
  const action =
    account === null ? 'Create an account, then add a domain to it.' : 'Add the domain of your sender addresses.';
  const command = account === null ? null : `postrider domain add ${account} example.com`;
  if (requiresAuthenticatedSender(settings))
    return open('There is no domain, so messages of every sender are refused.', action, command);
  const text = 'POSTRIDER_SENDERS is `any`, so every sender is accepted. Messages are not signed without a domain.';
  return optional(text, action, command);
}

function createRecordsStep({ store, settings }: SetupFacts): Step {
  const { all, authenticated, problems } = store.domains;
  const requiresDomain = requiresAuthenticatedSender(settings);
  const name = problems.find(({ status }) => status !== 'authenticated')?.name ?? null;
  const page = all === 0 || authenticated > 0 || name === null ? '/domains' : `/domains/${encodeURIComponent(name)}`;
  const { done, notNeeded, open, optional } = reportStep('records', 'Publish the DNS records', page);
  if (authenticated > 0)
    return done(all === 1 ? 'The domain is authenticated.' : `${authenticated} of ${all} domains are authenticated.`);
  if (all === 0)
    return requiresDomain
      ? open('The records are created with the domain.', 'Add a domain first.', null)
      : notNeeded('There is no domain.');
  const consequence =
    settings.transport.kind === 'capture'
      ? '. The transport `capture:` accepts messages nevertheless.'
      : requiresDomain
        ? ', so messages of every sender are refused.'
        : '. POSTRIDER_SENDERS is `any`, so messages are accepted nevertheless.';
  const action = 'Publish the records at the DNS provider of the domain, then verify the domain.';
  const command = name === null ? null : `postrider domain verify ${name}`;
  return (requiresDomain ? open : optional)(`No domain is authenticated${consequence}`, action, command);
}

export function createMissingDomainFinding(): Finding {
  return report('domain').warning(
    'there is no sending domain: messages of every sender are refused',
    'run `postrider domain add ACCOUNT DOMAIN`, and publish the records that it prints',
  );
}

export interface DomainCheckParts {
  readonly domain: SendingDomain;
  readonly requiresAuthentication: boolean;
  /** The keys that sign, such as `signed with RSA (s1)`. */
  readonly signatures: string;
  readonly returnPath: { readonly state: ReturnPathState; readonly detail: string } | null;
  readonly checkRecords: () => Promise<readonly RecordCheck[]>;
  /** Returns null, or the reason why the private key cannot be decrypted. */
  readonly checkKey: (selector: string, sealed: string) => string | null;
}

export async function checkSendingDomain(parts: DomainCheckParts): Promise<Finding> {
  const { domain, requiresAuthentication, signatures, returnPath, checkRecords, checkKey } = parts;
  const { ok, warning, failure } = report('domain', domain.name);
  for (const { selector, sealed } of domain.keys) {
    const reason = checkKey(selector, sealed);
    if (reason !== null)
      return failure(
        reason,
        'set POSTRIDER_SECRET on every node to the secret that the keys were encrypted with; until then messages of the domain are deferred',
      );
  }
  const checks = await checkRecords();
  // Only a fault of an RSA record is fatal, because a missing Ed25519 record invalidates only the Ed25519 signature.
  const signingRecordNames = domain.keys
    .filter(({ state, algorithm }) => state === 'active' && algorithm === 'rsa')
    .map(({ selector }) => `${selector}._domainkey.${domain.name}`);
  const faulty = checks.filter(({ found }) => found === 'missing' || found === 'wrong');
  const fatal = faulty.filter(({ purpose, name }) => purpose === 'dkim' && signingRecordNames.includes(name));
  const unknown = checks.filter(({ found }) => found === 'unknown');
  const verify = `run \`postrider domain verify ${domain.name}\``;
  const compare = `${verify}, which lists the records found and the records to publish`;
  if (fatal.length > 0 && requiresAuthentication) return failure(formatChecks(fatal), compare);
  if (faulty.length > 0) return warning(formatChecks(faulty), compare);
  if (unknown.length > 0) return warning(formatChecks(unknown), 'check that the name servers of the domain respond');
  if (domain.status !== 'authenticated')
    return warning(`all ${checks.length} records exist, but the status is ${domain.status}`, verify);
  const summary = `authenticated; all ${checks.length} records exist; ${signatures}`;
  switch (returnPath?.state) {
    case undefined:
      return ok(summary);
    case 'used':
    case 'replaced':
      return ok(`${summary}; ${returnPath?.detail}`);
    case 'unverified':
      return warning(`${summary}, but ${returnPath?.detail}`, verify);
    case 'no-listener':
      return warning(
        `${summary}; ${returnPath?.detail}`,
        `set POSTRIDER_RETURN_PATH_DOMAIN, or remove the return path: \`postrider domain set ${domain.name} --no-return-path\``,
      );
  }
}

function formatChecks(checks: readonly RecordCheck[]): string {
  return checks.map(({ purpose, found, name }) => `${PURPOSE_TITLES[purpose]} ${found} (${name})`).join(', ');
}

const PURPOSE_TITLES: Readonly<Record<RecordCheck['purpose'], string>> = {
  dkim: 'DKIM',
  spf: 'SPF',
  dmarc: 'DMARC',
  provider: 'provider',
  'return-path': 'return path',
};
