/** Checks one sending domain: its DNS records, and that the secret of the installation decrypts its private keys. */
import type { RecordCheck, SendingDomain } from '../model/domain.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

export interface DomainCheckParts {
  readonly domain: SendingDomain;
  /** False when messages of every sender are accepted. */
  readonly authenticationRequired: boolean;
  readonly checkRecords: () => Promise<readonly RecordCheck[]>;
  /** Returns null when the key can be decrypted. Otherwise returns the reason. */
  readonly checkKey: (selector: string, sealed: string) => string | null;
}

export async function checkSendingDomain({
  domain,
  authenticationRequired,
  checkRecords,
  checkKey,
}: DomainCheckParts): Promise<readonly Finding[]> {
  const check = `domain ${domain.name}`;
  for (const { selector, sealed } of domain.keys) {
    const reason = checkKey(selector, sealed);
    if (reason !== null) {
      const remedy =
        'set POSTRIDER_SECRET on every node to the secret that the keys were encrypted with; until then messages of the domain are deferred';
      return [failure(check, reason, remedy)];
    }
  }
  const checks = await checkRecords();
  // A missing Ed25519 record invalidates only the Ed25519 signature.
  const signing = new Set(
    domain.keys
      .filter(({ state, algorithm }) => state === 'active' && algorithm === 'rsa')
      .map(({ selector }) => `${selector}._domainkey.${domain.name}`),
  );
  const faulty = checks.filter(({ found }) => found === 'missing' || found === 'wrong');
  const fatal = faulty.filter(({ purpose, name }) => purpose === 'dkim' && signing.has(name));
  const unknown = checks.filter(({ found }) => found === 'unknown');
  const remedy = `run \`postrider domain verify ${domain.name}\`: it lists the records found and the records to publish`;
  if (fatal.length > 0 && authenticationRequired) return [failure(check, listRecords(fatal), remedy)];
  if (faulty.length > 0) return [warning(check, listRecords(faulty), remedy)];
  if (unknown.length > 0)
    return [warning(check, listRecords(unknown), 'check that the name servers of the domain respond')];
  if (domain.status !== 'authenticated') {
    return [
      warning(
        check,
        `all ${checks.length} records exist, but the status is ${domain.status}`,
        `run \`postrider domain verify ${domain.name}\``,
      ),
    ];
  }
  return [ok(check, `authenticated; all ${checks.length} records exist`)];
}

/** Lists the checks, such as `DKIM missing (sel._domainkey.example.com), SPF wrong (example.com)`. */
function listRecords(checks: readonly RecordCheck[]): string {
  return checks.map(({ purpose, found, name }) => `${TITLES[purpose]} ${found} (${name})`).join(', ');
}

const TITLES: Readonly<Record<RecordCheck['purpose'], string>> = {
  dkim: 'DKIM',
  spf: 'SPF',
  dmarc: 'DMARC',
  provider: 'provider',
  'return-path': 'return path',
};
