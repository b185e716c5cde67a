/**
 * A sending domain at Amazon SES: its identity there, made with our own DKIM key ("bring your own DKIM") or with keys of the
 * provider's (Easy DKIM). Postrider signs by itself as well; without a verified identity the provider takes no mail from the
 * domain. ses-checks.ts tells what an identity means to the operator.
 *
 * An identity that somebody else made, or with a key that is none of ours, is left as it is. Calls reject with the SDK's errors.
 */
import type { SendingDomain } from '../model/domain.ts';

export interface SesIdentitySetting {
  readonly region: string;
  readonly endpoint: string | null;
}

/** A DKIM key as the provider takes it: RSA, PKCS#8 in base64. */
export interface SesKey {
  readonly selector: string;
  readonly privateKey: string;
}

export interface SesIdentity {
  readonly verified: boolean;
  /** Why the last look at DNS failed, such as `HOST_NOT_FOUND`, or null. */
  readonly fault: string | null;
  /** `PENDING`, `SUCCESS`, `FAILED`, `TEMPORARY_FAILURE`, `NOT_STARTED`. */
  readonly dkim: string;
  /** `EXTERNAL`: signed with the key given; its selector is the token then. */
  readonly origin: string;
  readonly tokens: readonly string[];
  /** Where the provider publishes its own keys; in newer regions a zone of the region's. */
  readonly keyZone: string;
  /** The custom MAIL FROM domain, or null where the provider's own stands. */
  readonly mailFrom: {
    readonly domain: string;
    /** `PENDING`, `SUCCESS`, `FAILED`, `TEMPORARY_FAILURE`. */
    readonly status: string;
    /** Whether mail is refused while its MX is not found. */
    readonly required: boolean;
  } | null;
}

export interface SesIdentities {
  /** Null where there is none of that name. */
  view(domain: string): Promise<SesIdentity | null>;
  /** With a key, or with null by Easy DKIM. One that is there already stays as it is. */
  create(domain: string, key: SesKey | null): Promise<SesIdentity>;
  replaceKey(domain: string, key: SesKey): Promise<void>;
  close(): void;
}

const RESPONSE_TIMEOUT_MS = 20_000;
const DEFAULT_KEY_ZONE = 'dkim.amazonses.com';

/** Loads the SDK and opens the API; credentials are found as the SDK finds them. */
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
        // The API gives an empty object, or an empty name, where none is set.
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
      if (identity === null) throw new Error(`Amazon SES did not keep the identity ${EmailIdentity}`);
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

/** How the identity is made where there is none: with our key, or with the provider's. */
export type IdentityKeys = 'own' | 'easy';

type IdentityDomain = Pick<SendingDomain, 'name' | 'keys' | 'published'>;
/** Opens an RSA key. */
type OpenKey = (selector: string, sealed: string) => SesKey;

/** The identity of the domain, made where it is missing; where it is there, as `updateIdentityKey` leaves it. */
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
 * Returns the identity of the domain, or null if there is none. If the identity has a previous key, replaces it with the current
 * signing key. The provider checks the record of its key repeatedly, and refuses messages once the record is missing for days.
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

/** The provider takes no Ed25519. */
function signingKey({ keys }: IdentityDomain): IdentityDomain['keys'][number] | undefined {
  return keys.find(({ algorithm, state }) => algorithm === 'rsa' && state === 'active');
}

/** Whether it has a key of ours that is not the one that signs now, whose record is there. */
function isOutdated(
  { origin, tokens }: SesIdentity,
  { published }: Pick<SendingDomain, 'published'>,
  selector: string,
): boolean {
  const hasOwnKey = tokens.length > 0 && tokens.every((token) => OWN_SELECTOR.test(token));
  return origin === 'EXTERNAL' && hasOwnKey && !tokens.includes(selector) && published.includes(selector);
}

/** As keys.ts names RSA keys, those of an earlier time included, which are no longer known. */
const OWN_SELECTOR = /^pr20\d{6}[a-z0-9]{4}a$/;
