/** One sending domain: its records in DNS, and whether its private keys open with the secret of the installation. */
import type { RecordCheck, SendingDomain } from '../model/domain.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

export interface DomainCheckParts {
  readonly domain: SendingDomain;
  /** False where mail of every sender is taken. */
  readonly authenticationRequired: boolean;
  readonly checkRecords: () => Promise<readonly RecordCheck[]>;
  /** Null where the key opens; else why not. */
  readonly checkKey: (selector: string, sealed: string) => string | null;
}

export async function checkSendingDomain({
  domain,
  authenticationRequired: needed,
  checkRecords: lookUp,
  checkKey: keyFault,
}: DomainCheckParts): Promise<readonly Finding[]> {
  const check = `domain ${domain.name}`;
  for (const { selector, sealed } of domain.keys) {
    const why = keyFault(selector, sealed);
    if (why !== null) {
      const remedy = 'its mail waits unsigned; give every node the POSTRIDER_SECRET that the keys were made with';
      return [failure(check, why, remedy)];
    }
  }
  const checks = await lookUp();
  // A missing Ed25519 record costs its signature alone.
  const signing = new Set(
    domain.keys
      .filter(({ state, algorithm }) => state === 'active' && algorithm === 'rsa')
      .map(({ selector }) => `${selector}._domainkey.${domain.name}`),
  );
  const faulty = checks.filter(({ found }) => found === 'missing' || found === 'wrong');
  const fatal = faulty.filter(({ purpose, name }) => purpose === 'dkim' && signing.has(name));
  const unknown = checks.filter(({ found }) => found === 'unknown');
  const remedy = `\`postrider domain verify ${domain.name}\` says what was seen and what to publish`;
  if (fatal.length > 0 && needed) return [failure(check, listed(fatal), remedy)];
  if (faulty.length > 0) return [warning(check, listed(faulty), remedy)];
  if (unknown.length > 0) return [warning(check, listed(unknown), 'see that the name servers of the domain answer')];
  if (domain.status !== 'authenticated') {
    return [
      warning(
        check,
        `all ${checks.length} records are there, and its status is ${domain.status}`,
        `run \`postrider domain verify ${domain.name}\``,
      ),
    ];
  }
  return [ok(check, `authenticated; all ${checks.length} records are there`)];
}

/** `DKIM missing (sel._domainkey.example.com), SPF wrong (example.com)`. */
function listed(checks: readonly RecordCheck[]): string {
  const word = (found: RecordCheck['found']) => (found === 'unknown' ? 'not known' : found);
  return checks.map(({ purpose, found, name }) => `${TITLES[purpose]} ${word(found)} (${name})`).join(', ');
}

const TITLES: Readonly<Record<RecordCheck['purpose'], string>> = {
  dkim: 'DKIM',
  spf: 'SPF',
  dmarc: 'DMARC',
  provider: 'provider',
  'return-path': 'return path',
};
