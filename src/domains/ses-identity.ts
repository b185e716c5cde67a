/**
 * A sending domain at Amazon SES: its identity there, made with our own DKIM key ("bring your own DKIM") or with keys of the
 * provider's (Easy DKIM), and the provider's view of it. Postrider signs by itself as well; without a verified identity the
 * provider takes no mail from the domain.
 */
import type { DnsRecord, RecordCheck } from '../record/domain.ts';

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
  /** `PENDING`, `SUCCESS`, `FAILED`, `TEMPORARY_FAILURE`, `NOT_STARTED`. */
  readonly dkim: string;
  /** `EXTERNAL`: signed with the key given; its selector is the token then. */
  readonly origin: string;
  readonly tokens: readonly string[];
}

export interface SesIdentities {
  /** Null where there is none of that name. */
  view(domain: string): Promise<SesIdentity | null>;
  /** With a key, or with null by Easy DKIM. One that is there already stays as it is. */
  create(domain: string, key: SesKey | null): Promise<SesIdentity>;
  replaceKey(domain: string, key: SesKey): Promise<void>;
  close(): void;
}

const ANSWER_MS = 20_000;

/** Loads the SDK and opens the API; credentials are found as the SDK finds them. */
export async function openSesIdentities({ region, endpoint }: SesIdentitySetting): Promise<SesIdentities> {
  const sdk = await import('@aws-sdk/client-sesv2');
  const client = new sdk.SESv2Client({ region, ...(endpoint === null ? {} : { endpoint }), maxAttempts: 2 });
  const bound = () => ({ abortSignal: AbortSignal.timeout(ANSWER_MS) });
  const attributes = ({ selector, privateKey }: SesKey) => ({
    DomainSigningSelector: selector,
    DomainSigningPrivateKey: privateKey,
  });

  async function view(EmailIdentity: string): Promise<SesIdentity | null> {
    try {
      const answer = await client.send(new sdk.GetEmailIdentityCommand({ EmailIdentity }), bound());
      return {
        verified: answer.VerifiedForSendingStatus === true,
        dkim: answer.DkimAttributes?.Status ?? 'NOT_STARTED',
        origin: answer.DkimAttributes?.SigningAttributesOrigin ?? 'AWS_SES',
        tokens: answer.DkimAttributes?.Tokens ?? [],
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
        const signing = key === null ? {} : { DkimSigningAttributes: attributes(key) };
        await client.send(new sdk.CreateEmailIdentityCommand({ EmailIdentity, ...signing }), bound());
      } catch (error) {
        if (!(error instanceof sdk.AlreadyExistsException)) throw error;
      }
      const made = await view(EmailIdentity);
      if (made === null) throw new Error(`Amazon SES did not keep the identity ${EmailIdentity}`);
      return made;
    },
    async replaceKey(EmailIdentity, key) {
      const command = new sdk.PutEmailIdentityDkimSigningAttributesCommand({
        EmailIdentity,
        SigningAttributesOrigin: 'EXTERNAL',
        SigningAttributes: attributes(key),
      });
      await client.send(command, bound());
    },
    close: () => client.destroy(),
  };
}

/** The records that Easy DKIM asks for, and the identity itself as one more line. */
export function identityRecords(domain: string, identity: SesIdentity | null): readonly DnsRecord[] {
  const easy = identity !== null && identity.origin !== 'EXTERNAL';
  const tokens = easy ? identity.tokens : [];
  return [
    ...tokens.map(
      (token): DnsRecord => ({
        purpose: 'provider',
        type: 'CNAME',
        name: `${token}._domainkey.${domain}`,
        value: `${token}.dkim.amazonses.com`,
      }),
    ),
    { purpose: 'provider', type: 'SES', name: domain, value: 'verified' },
  ];
}

/** The provider's view as the check of that line. `fault` is why it could not be asked: then nothing is known. */
export function identityCheck(domain: string, identity: SesIdentity | null, fault: string | null): RecordCheck {
  const record = { purpose: 'provider', type: 'SES', name: domain, value: 'verified' } as const;
  if (fault !== null) {
    const detail = `Amazon SES could not be asked (${fault}); nothing is concluded from it`;
    return { ...record, found: 'unknown', seen: [], detail };
  }
  if (identity === null) {
    const detail = 'Amazon SES has no such identity, and takes no mail from it; verify makes it';
    return { ...record, found: 'missing', seen: [], detail };
  }
  const seen = [`${identity.verified ? 'verified' : 'not verified'}, DKIM ${identity.dkim}`];
  if (identity.verified) return { ...record, found: 'found', seen, detail: 'Amazon SES takes mail from it' };
  const wait =
    identity.dkim === 'FAILED'
      ? 'publish the DKIM records and verify again'
      : 'it looks for the DKIM records, for minutes or hours';
  return { ...record, found: 'wrong', seen, detail: `Amazon SES has not verified it yet: ${wait}` };
}
