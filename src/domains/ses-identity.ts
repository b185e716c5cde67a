/**
 * The identity of a domain at Amazon SES, with the key of Postrider or with Easy DKIM. Without it messages are
 * rejected. An identity with another key is never changed. Rejects with the errors of the SDK.
 */

import type { Settings } from '../config/settings.ts';
import type { DnsRecord, RecordCheck, SendingDomain } from '../model/domain.ts';
import type { DomainStore } from '../store/contract.ts';
import { unsealKey } from './keys.ts';
import { listSesRoutes, loadSealingKey, type SesTransport } from './setup.ts';

export interface SesIdentitySetting {
  readonly region: string;
  readonly endpoint: string | null;
}

/** RSA, PKCS#8 in base64. */
export interface SesKey {
  readonly selector: string;
  readonly privateKey: string;
}

export interface SesIdentity {
  readonly isVerified: boolean;
  /** Why the last DNS check failed, such as `HOST_NOT_FOUND`. */
  readonly fault: string | null;
  /** `PENDING`, `SUCCESS`, `FAILED`, `TEMPORARY_FAILURE` or `NOT_STARTED`. */
  readonly dkim: string;
  /** `EXTERNAL`: a key of the customer, whose selector is the only token. */
  readonly origin: string;
  readonly tokens: readonly string[];
  /** Newer regions have their own zones. */
  readonly keyZone: string;
  /** Null: the provider uses its own MAIL FROM domain. */
  readonly mailFrom: {
    readonly domain: string;
    /** `PENDING`, `SUCCESS`, `FAILED` or `TEMPORARY_FAILURE`. */
    readonly status: string;
    /** Messages are rejected while the MX record is not found. */
    readonly isRequired: boolean;
  } | null;
}

export interface SesIdentities {
  readIdentity(domain: string): Promise<SesIdentity | null>;
  /** Easy DKIM if `key` is null. An existing identity is not changed. */
  createIdentity(domain: string, key: SesKey | null): Promise<SesIdentity>;
  replaceKey(domain: string, key: SesKey): Promise<void>;
  close(): void;
}

const RESPONSE_TIMEOUT_MS = 20_000;
const DEFAULT_KEY_ZONE = 'dkim.amazonses.com';

/** The SDK reads the credentials from its standard sources. */
export async function openSesIdentities({ region, endpoint }: SesIdentitySetting): Promise<SesIdentities> {
  const sdk = await import('@aws-sdk/client-sesv2');
  const client = new sdk.SESv2Client({ region, ...(endpoint === null ? {} : { endpoint }), maxAttempts: 2 });
  const createTimeoutOptions = () => ({ abortSignal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
  const toSigningAttributes = ({ selector, privateKey }: SesKey) => ({
    DomainSigningSelector: selector,
    DomainSigningPrivateKey: privateKey,
  });

  async function readIdentity(EmailIdentity: string): Promise<SesIdentity | null> {
    try {
      const response = await client.send(new sdk.GetEmailIdentityCommand({ EmailIdentity }), createTimeoutOptions());
      const { DkimAttributes: dkim, MailFromAttributes: mailFrom } = response;
      return {
        isVerified: response.VerifiedForSendingStatus === true,
        fault: response.VerificationInfo?.ErrorType ?? null,
        dkim: dkim?.Status ?? 'NOT_STARTED',
        origin: dkim?.SigningAttributesOrigin ?? 'AWS_SES',
        tokens: dkim?.Tokens ?? [],
        keyZone: dkim?.SigningHostedZone ?? DEFAULT_KEY_ZONE,
        // The API returns an empty object or an empty name if no MAIL FROM domain is set.
        mailFrom: mailFrom?.MailFromDomain
          ? {
              domain: mailFrom.MailFromDomain.toLowerCase(),
              status: mailFrom.MailFromDomainStatus ?? 'PENDING',
              isRequired: mailFrom.BehaviorOnMxFailure === 'REJECT_MESSAGE',
            }
          : null,
      };
    } catch (error) {
      if (error instanceof sdk.NotFoundException) return null;
      throw error;
    }
  }

  return {
    readIdentity,
    async createIdentity(EmailIdentity, key) {
      try {
        const signingOptions = key === null ? {} : { DkimSigningAttributes: toSigningAttributes(key) };
        await client.send(
          new sdk.CreateEmailIdentityCommand({ EmailIdentity, ...signingOptions }),
          createTimeoutOptions(),
        );
      } catch (error) {
        if (!(error instanceof sdk.AlreadyExistsException)) throw error;
      }
      const identity = await readIdentity(EmailIdentity);
      if (identity === null)
        throw new Error(`Amazon SES has no identity ${EmailIdentity} after its creation; try again`);
      return identity;
    },
    async replaceKey(EmailIdentity, key) {
      const command = new sdk.PutEmailIdentityDkimSigningAttributesCommand({
        EmailIdentity,
        SigningAttributesOrigin: 'EXTERNAL',
        SigningAttributes: toSigningAttributes(key),
      });
      await client.send(command, createTimeoutOptions());
    },
    close: () => client.destroy(),
  };
}

/** `own`: the key of Postrider. `easy`: keys of the provider. */
export type IdentityKeySource = 'own' | 'easy';

type IdentityDomain = Pick<SendingDomain, 'name' | 'keys' | 'published'>;
type OpenKey = (selector: string, sealed: string) => SesKey;

/** Creates a missing identity. */
export async function ensureIdentity(
  identities: SesIdentities,
  domain: IdentityDomain,
  keys: IdentityKeySource,
  openKey: OpenKey,
): Promise<SesIdentity> {
  const identity = await updateIdentityKey(identities, domain, openKey);
  if (identity !== null) return identity;
  const currentKey = findSigningKey(domain);
  const key = keys === 'easy' || currentKey === undefined ? null : openKey(currentKey.selector, currentKey.sealed);
  return identities.createIdentity(domain.name, key);
}

/**
 * Null if there is no identity. A previous key of Postrider is replaced once the record of the current key is
 * published: the provider rejects messages if the record of its key is missing for days.
 */
export async function updateIdentityKey(
  identities: SesIdentities,
  domain: IdentityDomain,
  openKey: OpenKey,
): Promise<SesIdentity | null> {
  const identity = await identities.readIdentity(domain.name);
  const currentKey = findSigningKey(domain);
  if (identity === null || currentKey === undefined || !isOutdated(identity, domain, currentKey.selector))
    return identity;
  await identities.replaceKey(domain.name, openKey(currentKey.selector, currentKey.sealed));
  return identities.readIdentity(domain.name);
}

/** The provider does not support Ed25519. */
function findSigningKey({ keys }: IdentityDomain): IdentityDomain['keys'][number] | undefined {
  return keys.find(({ algorithm, state }) => algorithm === 'rsa' && state === 'active');
}

function isOutdated(
  { origin, tokens }: SesIdentity,
  { published }: Pick<SendingDomain, 'published'>,
  selector: string,
): boolean {
  const hasOwnKey = tokens.length > 0 && tokens.every((token) => OWN_SELECTOR.test(token));
  return origin === 'EXTERNAL' && hasOwnKey && !tokens.includes(selector) && published.includes(selector);
}

/** The RSA selectors that keys.ts generates, including those of removed keys. */
const OWN_SELECTOR = /^pr20\d{6}[a-z0-9]{4}a$/;

// Formats errors of the API of Amazon SES.

/** The first line, after the provider's name for the error, such as `AccessDeniedException: …`. */
export function formatSesError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { name } = error;
  const causesText = error instanceof AggregateError ? error.errors.map(String).join('; ') : '';
  const text = error.message === '' ? causesText : error.message;
  const firstLine = text.split('\n', 1).join('').trim();
  return name === 'Error' || firstLine === '' ? firstLine || name : `${name}: ${firstLine}`;
}

// What could not be read is `unknown`, never `missing`.

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

/** The check of the identity is the first. With a fault all checks are `unknown`. */
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

// Only `ses:` has identities. If the provider cannot be reached, the checks are `unknown`. Never rejects.

type ProviderSettings = Pick<Settings, 'routes' | 'secret' | 'database'>;

export interface ProviderStatus {
  /** The DNS records that the provider requires, and the status records, which are not published. */
  readonly records: readonly DnsRecord[];
  /** Of the status records. */
  readonly checks: readonly RecordCheck[];
  /** Whether the provider accepts messages from the domain. */
  readonly identityCheck: RecordCheck;
  /** The provider signs with its own keys. */
  readonly usesEasyDkim: boolean;
}

/** Null if no route has identities. */
export function checkProviderIdentity(
  settings: ProviderSettings,
  domain: SendingDomain,
): Promise<ProviderStatus | null> {
  return withIdentities(settings, domain, (identities) => identities.readIdentity(domain.name));
}

/** Creates a missing identity, and replaces a previous key with the current signing key. */
export function ensureProviderIdentity(
  settings: ProviderSettings,
  domain: SendingDomain,
  keys: IdentityKeySource,
): Promise<ProviderStatus | null> {
  return withIdentities(settings, domain, (identities) =>
    ensureIdentity(identities, domain, keys, createKeyUnsealer(settings, domain)),
  );
}

/** While a previous key retires, an update also sends the current key to the provider, again after a failure. */
export function updateWithProviderKey(
  settings: ProviderSettings,
  updateDomain: DomainStore['updateDomain'],
  onError: (operation: string, error: unknown) => void,
): DomainStore['updateDomain'] {
  if (listSesRoutes(settings.routes).length === 0) return updateDomain;
  return async (domainUpdate) => {
    const updateResult = await updateDomain(domainUpdate);
    if (updateResult.kind !== 'done') return updateResult;
    const { value: domain } = updateResult;
    if (!domain.keys.some(({ algorithm, state }) => algorithm === 'rsa' && state === 'retiring')) return updateResult;
    const provider = await withIdentities(settings, domain, (identities) =>
      updateIdentityKey(identities, domain, createKeyUnsealer(settings, domain)),
    );
    if (provider?.identityCheck.found === 'unknown') {
      onError(`send the new key of ${domain.name} to Amazon SES`, new Error(provider.identityCheck.detail));
    }
    return updateResult;
  };
}

/** Each region has identities of its own. */
async function withIdentities(
  { routes }: ProviderSettings,
  { name }: SendingDomain,
  call: (identities: SesIdentities) => Promise<SesIdentity | null>,
): Promise<ProviderStatus | null> {
  const transports = listSesRoutes(routes);
  const statuses = await Promise.all(transports.map((transport) => withRegion(transport, name, call)));
  const [first] = statuses;
  if (first === undefined || statuses.length === 1) return first ?? null;
  const checks = statuses.flatMap((status, index) =>
    status.checks.map((check) => ({ ...check, detail: `${transports[index]?.region}: ${check.detail}` })),
  );
  const faultsFirst = uniteRecords(
    checks.toSorted((a, b) => Number(a.found === 'found') - Number(b.found === 'found')),
  );
  return {
    records: uniteRecords(statuses.flatMap(({ records }) => records)),
    checks: faultsFirst,
    identityCheck: faultsFirst.find(({ value }) => value === IDENTITY_VALUE) ?? first.identityCheck,
    usesEasyDkim: statuses.some(({ usesEasyDkim }) => usesEasyDkim),
  };
}

/** The first of equal ones. */
function uniteRecords<T extends DnsRecord>(records: readonly T[]): readonly T[] {
  const toKey = ({ type, name, value }: DnsRecord) => `${type} ${name} ${value}`;
  return records.filter((record, at) => records.findIndex((other) => toKey(other) === toKey(record)) === at);
}

async function withRegion(
  transport: SesTransport,
  name: string,
  call: (identities: SesIdentities) => Promise<SesIdentity | null>,
): Promise<ProviderStatus> {
  const { region } = transport;
  const toProviderStatus = (identity: SesIdentity | null, fault: string | null): ProviderStatus => {
    const checks = createIdentityChecks(name, region, identity, fault);
    const usesEasyDkim = identity !== null && identity.origin !== 'EXTERNAL';
    return {
      records: createIdentityRecords(name, region, identity),
      checks,
      identityCheck: checks[0] as RecordCheck,
      usesEasyDkim,
    };
  };
  let identities: SesIdentities | null = null;
  try {
    identities = await openSesIdentities(transport);
    return toProviderStatus(await call(identities), null);
  } catch (error) {
    return toProviderStatus(null, formatSesError(error));
  } finally {
    identities?.close();
  }
}

/** Overwrites the unencrypted buffer. */
function createKeyUnsealer(
  settings: ProviderSettings,
  { name }: SendingDomain,
): (selector: string, sealed: string) => SesKey {
  return (selector, sealed) => {
    const derKey = unsealKey(loadSealingKey(settings), name, selector, sealed);
    const privateKey = derKey.toString('base64');
    derKey.fill(0);
    return { selector, privateKey };
  };
}
