/**
 * Caches sending domains and their keys, prepares messages for delivery attempts, and signs messages with DKIM.
 *
 * Guarantees: acceptance and signing need no database query. The change feed of the store updates the cache. A change
 * is effective from the next call after `apply`.
 */
import { createPrivateKey, type KeyObject, sign as signWith } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { compose, type ExtraHeader } from '../message/compose.ts';
import {
  createSignatureInput,
  formatSignatureField,
  prepareSignableMessage,
  prependSignatures,
  type SignatureIdentity,
} from '../message/dkim.ts';
import { createReturnPathToken } from '../message/return-path.ts';
import { parseAddress, parseHost } from '../model/address.ts';
import { type DkimKey, findSendingDomain, getSigningKeys, maySend, type SendingDomain } from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';
import type { LeasedMessage } from '../model/message.ts';
import type { OutgoingMessage } from '../transports/transport.ts';

/** The keys that sign messages from addresses of a domain. */
interface DomainSigning {
  /** The tag `d=` of the signature: the sending domain, which is the domain of the address or a parent of it. */
  readonly domain: string;
  readonly keys: readonly DkimKey[];
  /** False if the domain was authenticated in the past and messages from it are now refused. */
  readonly maySend: boolean;
}

export interface DomainCacheParts {
  readonly clock: { now(): number };
  readonly publish: PublishOf<'domain.changed'>;
}

/** Caches the sending domains in memory. */
export class DomainCache {
  readonly #byName = new Map<string, SendingDomain>();
  /** Maps each return path to the name of its domain. */
  readonly #byReturnPath = new Map<string, string>();
  readonly #parts: DomainCacheParts;

  constructor(parts: DomainCacheParts) {
    this.#parts = parts;
  }

  /** Adds or replaces `domains`, and removes the domains with the names `removedDomains`. */
  apply({
    domains,
    removedDomains,
  }: {
    readonly domains: readonly SendingDomain[];
    readonly removedDomains: readonly string[];
  }): void {
    for (const name of [...removedDomains, ...domains.map((domain) => domain.name)]) this.#remove(name);
    for (const domain of domains) {
      this.#byName.set(domain.name, domain);
      if (domain.returnPath !== null) this.#byReturnPath.set(domain.returnPath.name, domain.name);
    }
    const { clock, publish } = this.#parts;
    if (domains.length + removedDomains.length > 0) publish({ type: 'domain.changed', at: clock.now() });
  }

  /** Returns true if the account may send from this domain. `name` is in lower-case A-labels. */
  isAuthenticated(accountId: number, name: string): boolean {
    const domain = this.#findDomain(accountId, name);
    return domain !== null && maySend(domain);
  }

  /** Returns the sending domain with exactly this name, in lower-case A-labels, or null. */
  readonly findByName = (name: string): SendingDomain | null => this.#byName.get(name) ?? null;

  /** Returns true if any account has a domain from which messages may be sent. */
  hasSendingDomain(): boolean {
    return [...this.#byName.values()].some(maySend);
  }

  /**
   * Returns the keys that must sign messages of the account from this domain, or null if the domain was never
   * authenticated for the account.
   */
  findSigning(accountId: number, name: string): DomainSigning | null {
    const domain = this.#findDomain(accountId, name);
    if (domain === null || domain.authenticatedAt === null) return null;
    return { domain: domain.name, keys: getSigningKeys(domain), maySend: maySend(domain) };
  }

  /**
   * Returns the verified return path of the domain in lower-case A-labels. Returns null if the account has no such
   * domain, or if the domain has no verified return path.
   */
  findReturnPath(accountId: number, name: string): string | null {
    const returnPath = this.#findDomain(accountId, name)?.returnPath ?? null;
    return returnPath?.isVerified === true ? returnPath.name : null;
  }

  /** Returns true if the name is the return path of a domain, verified or not. */
  isReturnPath(name: string): boolean {
    return this.#byReturnPath.has(name);
  }

  #remove(name: string): void {
    const returnPath = this.#byName.get(name)?.returnPath ?? null;
    if (returnPath !== null && this.#byReturnPath.get(returnPath.name) === name)
      this.#byReturnPath.delete(returnPath.name);
    this.#byName.delete(name);
  }

  #findDomain(accountId: number, name: string): SendingDomain | null {
    return findSendingDomain((candidate) => this.#byName.get(candidate), accountId, name);
  }
}

// Prepares a leased message for an attempt: composes the message, sets the envelope sender to the return path, and
// signs the message. The bytes are the same on every attempt unless the signing keys change. Rejects if a required
// signature cannot be created. In this case the message is deferred and never sent unsigned.

/** The identifier of the sender, which is the last element of Feedback-ID. Gmail requires 5 to 15 characters. */
const SENDER_ID = 'postrider';

export interface PrepareParts {
  readonly domains: Pick<DomainCache, 'findSigning' | 'findReturnPath'>;
  readonly signer: Signer;
  /** True if the relay refuses a message with more than one DKIM-Signature field. The first key then signs. */
  readonly acceptsOneSignature: boolean;
  /**
   * True if sender domains must be authenticated: messages from a domain that is no longer authenticated are deferred.
   * If false, messages from a domain that was never authenticated are sent unsigned, and messages from a domain that is
   * no longer authenticated are signed with its keys.
   */
  readonly mustSign: boolean;
  /** Called for each message that is deferred because it could not be signed. An operator must correct the cause. */
  readonly onError: (error: unknown) => void;
  /**
   * The default domain and the key of return paths. The verified return path of the sending domain takes precedence
   * over the default. If this member is null, the envelope sender is always the From address.
   */
  readonly returnPath: { readonly domain: string; readonly key: Buffer } | null;
  /**
   * Returns the header fields by which the provider of the relay identifies the message. `configurationSet` is the
   * configuration set of the account.
   */
  readonly metadata: (messageId: string, configurationSet: string | null) => readonly ExtraHeader[];
  /** Returns the configuration set of the account at Amazon SES, or null. */
  readonly findConfigurationSet: (accountId: number) => string | null;
}

/** The members of a message on which its bytes depend. */
type PreparedMessage = Omit<LeasedMessage, 'attempts' | 'lease'>;

/** Creates the function with which the queue prepares a message for an attempt. */
export function createPrepare({
  domains,
  signer,
  acceptsOneSignature,
  mustSign,
  onError,
  returnPath,
  metadata,
  findConfigurationSet,
}: PrepareParts): (message: PreparedMessage) => OutgoingMessage | Promise<OutgoingMessage> {
  return function prepare(message) {
    const domain = parseAddress(message.from)?.domain ?? '';
    const domainSigning = domains.findSigning(message.accountId, domain);
    const configurationSet = findConfigurationSet(message.accountId);
    // Only signed messages have the field Feedback-ID, because Gmail attributes its value to the signing domain.
    const feedbackIdField = { name: 'Feedback-ID', value: `transactional:${message.accountId}:${domain}:${SENDER_ID}` };
    const { data, bodyAt, envelopeFrom, envelopeTo, smtputf8 } = compose(message, [
      ...(domainSigning === null ? [] : [feedbackIdField]),
      ...metadata(message.id, configurationSet),
    ]);
    const from =
      returnPath === null
        ? envelopeFrom
        : `${createReturnPathToken(returnPath.key, message.id, message.acceptedAt)}@${domains.findReturnPath(message.accountId, domain) ?? returnPath.domain}`;
    const toOutgoingMessage = (bytes: Buffer): OutgoingMessage => ({
      id: message.id,
      envelope: { from, to: envelopeTo, smtputf8 },
      data: bytes,
      ...(configurationSet === null ? {} : { configurationSet }),
    });
    if (mustSign && domainSigning?.maySend !== true) {
      const reason =
        domainSigning === null
          ? `the account has no authenticated domain ${domain}; \`postrider domain list\` lists its domains`
          : `the domain ${domain} is no longer authenticated; \`postrider domain verify ${domain}\` shows the reason`;
      const error = new Error(reason);
      onError(error);
      throw error;
    }
    if (domainSigning === null) return toOutgoingMessage(data);
    const keys = domainSigning.keys
      .slice(0, acceptsOneSignature ? 1 : undefined)
      .map(({ selector, algorithm, sealed }) => ({
        domain: domainSigning.domain,
        selector,
        algorithm,
        sealed,
      }));
    return signer.sign(data, bodyAt, keys, message.acceptedAt).then(toOutgoingMessage, (error: unknown) => {
      onError(error);
      throw error;
    });
  };
}

// Signs messages with the keys of their domain. The signatures are computed on the thread pool of libuv, so that the
// event loop is not blocked.
//
// Guarantees: a signed message has one signature per key. If a signature cannot be created, `sign` rejects and never
// resolves with an unsigned message. Unsealed keys are cached. If the cache is full, the least recently used key is
// evicted. A key is never logged, and no error contains a key.

export interface SigningKey extends SignatureIdentity {
  /** The sealed private key. */
  readonly sealed: string;
}

interface Signer {
  /**
   * Resolves to the message with its DKIM-Signature fields prepended in the order of `keys`. `data` has CRLF line ends,
   * and its body begins at index `bodyAt`. `at` is the time of acceptance in milliseconds since the epoch. The
   * signatures use this time so that the bytes of all attempts are equal.
   */
  sign(data: Buffer, bodyAt: number, keys: readonly SigningKey[], at: number): Promise<Buffer>;
}

interface SignerParts {
  /** Returns the private key as PKCS#8 DER. Throws if the key cannot be unsealed. */
  readonly openKey: (domain: string, selector: string, sealed: string) => Buffer;
  /** The header fields that the next hop replaces, in lower case. These fields are not signed. */
  readonly unsignedHeaders?: ReadonlySet<string>;
  /** The maximum number of cached keys. */
  readonly maxKeys?: number;
}

/** The cache can contain two keys for each of 2,000 domains. A key needs about 4 KB. */
const MAX_KEYS = 4_000;

interface UnsealedKey {
  /**
   * The name of the key record. The same object is used for all signatures of the key, because `dkim.ts` looks up the
   * cached prefix of the signatures by this object.
   */
  readonly identity: SignatureIdentity;
  readonly sealed: string;
  readonly key: KeyObject;
}

/** Creates a signer with an empty cache. */
export function createSigner({ openKey, unsignedHeaders, maxKeys = MAX_KEYS }: SignerParts): Signer {
  /** Maps record names to unsealed keys. The least recently used key is first. */
  const unsealedKeys = new Map<string, UnsealedKey>();

  let hasLoweredPriority = false;

  const getUnsealedKey = (signingKey: SigningKey): UnsealedKey => {
    const name = `${signingKey.selector}._domainkey.${signingKey.domain}`;
    let entry = unsealedKeys.get(name);
    if (
      entry === undefined ||
      entry.sealed !== signingKey.sealed ||
      entry.identity.algorithm !== signingKey.algorithm
    ) {
      const { domain, selector, algorithm, sealed } = signingKey;
      entry = { identity: { domain, selector, algorithm }, sealed, key: loadKey(signingKey, name) };
    }
    unsealedKeys.delete(name);
    unsealedKeys.set(name, entry);
    if (unsealedKeys.size > maxKeys) unsealedKeys.delete(unsealedKeys.keys().next().value ?? name);
    return entry;
  };

  const loadKey = (signingKey: SigningKey, name: string): KeyObject => {
    // The selector and the domain are checked because they are written into the header unchanged.
    const host = `${signingKey.selector}.${signingKey.domain}`;
    if (parseHost(host, 0) !== host) throw new TypeError(`${JSON.stringify(name)} is not a valid name of a DKIM key`);
    const der = openKey(signingKey.domain, signingKey.selector, signingKey.sealed);
    let key: KeyObject;
    try {
      key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    } catch {
      throw new Error(`The DKIM key ${name} cannot be decoded`);
    } finally {
      der.fill(0);
    }
    if (key.asymmetricKeyType !== signingKey.algorithm)
      throw new Error(`The DKIM key ${name} is not ${signingKey.algorithm}`);
    return key;
  };

  return {
    sign(data, bodyAt, keys, at) {
      return new Promise((resolve, reject) => {
        if (keys.length === 0) throw new Error('There is no DKIM key to sign with');
        const signableMessage = prepareSignableMessage(data, bodyAt, unsignedHeaders);
        const fields = new Array<string>(keys.length).fill('');
        let pendingCount = keys.length;
        for (const [index, signingKey] of keys.entries()) {
          const { identity, key } = getUnsealedKey(signingKey);
          const signatureText = createSignatureInput(signableMessage, identity, at);
          signWith(identity.algorithm === 'rsa' ? 'sha256' : null, signatureText.bytes, key, (error, signature) => {
            if (error !== null) {
              reject(
                new Error(
                  `Signing with the DKIM key ${identity.selector}._domainkey.${identity.domain} failed: ${error.message}`,
                ),
              );
              return;
            }
            fields[index] = formatSignatureField(signatureText, signature);
            // The thread pool creates all its threads when it runs its first task.
            if (!hasLoweredPriority) {
              hasLoweredPriority = true;
              lowerSigningThreadPriority();
            }
            pendingCount -= 1;
            if (pendingCount === 0) resolve(prependSignatures(fields, data));
          });
        }
      });
    },
  };
}

// The niceness of the threads of libuv's pool. Signatures can use every core, but the acceptance and the commit of
// requests must have priority. Only Linux has a niceness per thread, and no privilege is required to increase it. On
// other systems the niceness does not change.

const POOL_THREAD = 'libuv-worker';
/**
 * If the pool threads have a niceness of 10, the event loop handles one event at a time. With a niceness of 5, the
 * event loop handles several events and commits together, which needs less processor time. docs/decisions/dkim.md
 * contains the figures and the cost for acceptance.
 */
const NICENESS = 5;

/** Lowers the priority of the existing threads of libuv's pool. Never throws. */
function lowerSigningThreadPriority(tasksFolder = '/proc/self/task'): void {
  try {
    for (const threadId of readdirSync(tasksFolder)) {
      const name = readFileSync(`${tasksFolder}/${threadId}/comm`, 'utf8').trim();
      if (name === POOL_THREAD) setPriority(Number(threadId), NICENESS);
    }
  } catch {
    // The system is not Linux, or a thread has just ended. Signing works with the normal priority.
  }
}
