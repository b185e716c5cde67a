/** Checks one sending domain: its DNS records, and that the secret of the installation decrypts its private keys. */
import type { ReturnPathState } from '../domains/return-path.ts';
import type { RecordCheck, SendingDomain } from '../model/domain.ts';
import { createFailure, createOkFinding, createWarning, type Finding } from './finding.ts';

export interface DomainCheckParts {
  readonly domain: SendingDomain;
  /** False if messages from all senders are accepted. */
  readonly requiresAuthentication: boolean;
  /** The keys that sign, such as `signed with RSA (s1)`. */
  readonly signatures: string;
  /** The state of the domain's return path, and the reason for this state. Null if the domain has no return path. */
  readonly returnPath: { readonly state: ReturnPathState; readonly detail: string } | null;
  readonly checkRecords: () => Promise<readonly RecordCheck[]>;
  /** Returns null if the private key can be decrypted. Otherwise returns the reason why it cannot be decrypted. */
  readonly checkKey: (selector: string, sealed: string) => string | null;
}

/** Returns the finding for an installation that accepts only authenticated senders and has no sending domain. */
export function createMissingDomainFinding(): Finding {
  return createWarning(
    'domain',
    'there is no sending domain: messages of every sender are refused',
    'run `postrider domain add ACCOUNT DOMAIN`, and publish the records that it prints',
  );
}

export async function checkSendingDomain({
  domain,
  requiresAuthentication,
  signatures,
  returnPath,
  checkRecords,
  checkKey,
}: DomainCheckParts): Promise<readonly Finding[]> {
  const check = `domain ${domain.name}`;
  for (const { selector, sealed } of domain.keys) {
    const reason = checkKey(selector, sealed);
    if (reason !== null) {
      const remedy =
        'set POSTRIDER_SECRET on every node to the secret that the keys were encrypted with; until then messages of the domain are deferred';
      return [createFailure(check, reason, remedy)];
    }
  }
  const checks = await checkRecords();
  // Only a fault of an RSA record is fatal, because a missing Ed25519 record invalidates only the Ed25519 signature.
  const signingRecordNames = new Set(
    domain.keys
      .filter(({ state, algorithm }) => state === 'active' && algorithm === 'rsa')
      .map(({ selector }) => `${selector}._domainkey.${domain.name}`),
  );
  const faultyChecks = checks.filter(({ found }) => found === 'missing' || found === 'wrong');
  const fatalChecks = faultyChecks.filter(({ purpose, name }) => purpose === 'dkim' && signingRecordNames.has(name));
  const unknownChecks = checks.filter(({ found }) => found === 'unknown');
  const remedy = `run \`postrider domain verify ${domain.name}\`, which lists the records found and the records to publish`;
  if (fatalChecks.length > 0 && requiresAuthentication)
    return [createFailure(check, formatCheckList(fatalChecks), remedy)];
  if (faultyChecks.length > 0) return [createWarning(check, formatCheckList(faultyChecks), remedy)];
  if (unknownChecks.length > 0)
    return [createWarning(check, formatCheckList(unknownChecks), 'check that the name servers of the domain respond')];
  if (domain.status !== 'authenticated') {
    return [
      createWarning(
        check,
        `all ${checks.length} records exist, but the status is ${domain.status}`,
        `run \`postrider domain verify ${domain.name}\``,
      ),
    ];
  }
  const summary = `authenticated; all ${checks.length} records exist; ${signatures}`;
  if (returnPath === null) return [createOkFinding(check, summary)];
  switch (returnPath.state) {
    case 'used':
    case 'replaced':
      return [createOkFinding(check, `${summary}; ${returnPath.detail}`)];
    case 'unverified':
      return [
        createWarning(check, `${summary}, but ${returnPath.detail}`, `run \`postrider domain verify ${domain.name}\``),
      ];
    case 'no-listener':
      return [
        createWarning(
          check,
          `${summary}; ${returnPath.detail}`,
          `set POSTRIDER_RETURN_PATH_DOMAIN, or remove the return path: \`postrider domain set ${domain.name} --no-return-path\``,
        ),
      ];
  }
}

/** Returns the checks as text, such as `DKIM missing (sel._domainkey.example.com), SPF wrong (example.com)`. */
function formatCheckList(checks: readonly RecordCheck[]): string {
  return checks.map(({ purpose, found, name }) => `${PURPOSE_TITLES[purpose]} ${found} (${name})`).join(', ');
}

const PURPOSE_TITLES: Readonly<Record<RecordCheck['purpose'], string>> = {
  dkim: 'DKIM',
  spf: 'SPF',
  dmarc: 'DMARC',
  provider: 'provider',
  'return-path': 'return path',
};
