/**
 * Manages the identity of a sending domain at Amazon SES. An identity uses the DKIM key of Postrider ("bring your own
 * DKIM") or keys of the provider (Easy DKIM). Postrider also signs every message itself. Without a verified identity
 * the provider rejects messages from the domain. ses-checks.ts derives the findings for the operator.
 *
 * An identity whose key does not belong to Postrider is never changed. Calls reject with the errors of the SDK.
 */
import type { SendingDomain } from '../model/domain.ts';

export interface SesIdentitySetting {
  readonly region: string;
  readonly endpoint: string | null;
}

/** A DKIM key in the form that the provider accepts: RSA, PKCS#8 in base64. */
export interface SesKey {
  readonly selector: string;
  readonly privateKey: string;
}

export interface SesIdentity {
  readonly verified: boolean;
  /** The reason for which the provider's last DNS check failed, such as `HOST_NOT_FOUND`, or null. */
  readonly fault: string | null;
  /** `PENDING`, `SUCCESS`, `FAILED`, `TEMPORARY_FAILURE`, `NOT_STARTED`. */
  readonly dkim: string;
  /** `EXTERNAL`: the provider signs with a given key, whose selector is the only token. */
  readonly origin: string;
  readonly tokens: readonly string[];
  /** The DNS zone of the provider's own keys. Newer regions have their own zones. */
  readonly keyZone: string;
  /** The custom MAIL FROM domain, or null if the provider uses its own MAIL FROM domain. */
  readonly mailFrom: {
    readonly domain: string;
    /** `PENDING`, `SUCCESS`, `FAILED`, `TEMPORARY_FAILURE`. */
    readonly status: string;
    /** True if the provider rejects messages while it does not find the MX record. */
    readonly required: boolean;
  } | null;
}

export interface SesIdentities {
  /** Resolves to null if the domain has no identity. */
  view(domain: string): Promise<SesIdentity | null>;
  /** Creates the identity with the key, or with Easy DKIM if `key` is null. Does not change an existing identity. */
  create(domain: string, key: SesKey | null): Promise<SesIdentity>;
  replaceKey(domain: string, key: SesKey): Promise<void>;
  close(): void;
}

const RESPONSE_TIMEOUT_MS = 20_000;
const DEFAULT_KEY_ZONE = 'dkim.amazonses.com';

/** Loads the SDK and creates a client of the API. The SDK finds the credentials. */
export async function openSesIdentities({ region, endpoint }: SesIdentitySetting): Promise<SesIdentities> {
  const sdk = await import('@aws-sdk/client-sesv2');
  const client = new sdk.SESv2Client({ region, ...(endpoint === null ? {} : { endpoint }), maxAttempts: 2 });
  const withTimeout = () => ({ abortSignal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
  const signingAttributes = ({ selector, privateKey }: SesKey) => ({
    DomainSigningSelector: selector,
    DomainSigningPrivateKey: privateKey,
  });

  async function view(EmailIdentity: string): Promise<SesIdentity | null> {
    try {
      const answer = await client.send(new sdk.GetEmailIdentityCommand({ EmailIdentity }), withTimeout());
      const { DkimAttributes: dkim, MailFromAttributes: mailFrom } = answer;
      return {
        verified: answer.VerifiedForSendingStatus === true,
        fault: answer.VerificationInfo?.ErrorType ?? null,
        dkim: dkim?.Status ?? 'NOT_STARTED',
        origin: dkim?.SigningAttributesOrigin ?? 'AWS_SES',
        tokens: dkim?.Tokens ?? [],
        keyZone: dkim?.SigningHostedZone ?? DEFAULT_KEY_ZONE,
        // The API returns an empty object or an empty name if no domain is set.
        mailFrom: mailFrom?.MailFromDomain
          ? {
              domain: mailFrom.MailFromDomain.toLowerCase(),
              status: mailFrom.MailFromDomainStatus ?? 'PENDING',
              required: mailFrom.BehaviorOnMxFailure === 'REJECT_MESSAGE',
            }
          : null,
      };
    } catch (error) {
      if (error instanceof sdk.NotFoundException) return null;
      throw error;
    }
  }

  return {
    view,
    async create(EmailIdentity, key) {
      try {
        const signing = key === null ? {} : { DkimSigningAttributes: signingAttributes(key) };
        await client.send(new sdk.CreateEmailIdentityCommand({ EmailIdentity, ...signing }), withTimeout());
      } catch (error) {
        if (!(error instanceof sdk.AlreadyExistsException)) throw error;
      }
      const identity = await view(EmailIdentity);
      if (identity === null)
        throw new Error(`Amazon SES has no identity ${EmailIdentity} after its creation; try again`);
      return identity;
    },
    async replaceKey(EmailIdentity, key) {
      const command = new sdk.PutEmailIdentityDkimSigningAttributesCommand({
        EmailIdentity,
        SigningAttributesOrigin: 'EXTERNAL',
        SigningAttributes: signingAttributes(key),
      });
      await client.send(command, withTimeout());
    },
    close: () => client.destroy(),
  };
}

/** Selects the keys of a new identity: `own` is the key of Postrider, `easy` are keys of the provider. */
export type IdentityKeys = 'own' | 'easy';

type IdentityDomain = Pick<SendingDomain, 'name' | 'keys' | 'published'>;
/** Unseals an RSA key. */
type OpenKey = (selector: string, sealed: string) => SesKey;

/** Returns the identity of the domain. Creates a missing identity, and updates an existing one as `updateIdentityKey` does. */
export async function ensureIdentity(
  identities: SesIdentities,
  domain: IdentityDomain,
  keys: IdentityKeys,
  openKey: OpenKey,
): Promise<SesIdentity> {
  const identity = await updateIdentityKey(identities, domain, openKey);
  if (identity !== null) return identity;
  const currentKey = signingKey(domain);
  const key = keys === 'easy' || currentKey === undefined ? null : openKey(currentKey.selector, currentKey.sealed);
  return identities.create(domain.name, key);
}

/**
 * Returns the identity of the domain, or null if the domain has no identity. If the identity has a previous key, replaces it
 * with the current signing key. The provider checks the record of its key repeatedly, and refuses messages if the record is
 * missing for days.
 */
export async function updateIdentityKey(
  identities: SesIdentities,
  domain: IdentityDomain,
  openKey: OpenKey,
): Promise<SesIdentity | null> {
  const identity = await identities.view(domain.name);
  const currentKey = signingKey(domain);
  if (identity === null || currentKey === undefined || !isOutdated(identity, domain, currentKey.selector))
    return identity;
  await identities.replaceKey(domain.name, openKey(currentKey.selector, currentKey.sealed));
  return identities.view(domain.name);
}

/** The provider does not support Ed25519. */
function signingKey({ keys }: IdentityDomain): IdentityDomain['keys'][number] | undefined {
  return keys.find(({ algorithm, state }) => algorithm === 'rsa' && state === 'active');
}

/** Returns true if the identity has a previous key of Postrider and the record of the current signing key is published. */
function isOutdated(
  { origin, tokens }: SesIdentity,
  { published }: Pick<SendingDomain, 'published'>,
  selector: string,
): boolean {
  const hasOwnKey = tokens.length > 0 && tokens.every((token) => OWN_SELECTOR.test(token));
  return origin === 'EXTERNAL' && hasOwnKey && !tokens.includes(selector) && published.includes(selector);
}

/** Matches all RSA selectors that keys.ts generates, including those of removed keys. */
const OWN_SELECTOR = /^pr20\d{6}[a-z0-9]{4}a$/;
