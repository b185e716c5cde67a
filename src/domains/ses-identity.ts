/**
 * The identity of a domain at Amazon SES, with the key of Postrider or with Easy DKIM. Without it messages are
 * rejected. An identity with another key is never changed. Rejects with the errors of the SDK.
 */
import type { SendingDomain } from '../model/domain.ts';

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
