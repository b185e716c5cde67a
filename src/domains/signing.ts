/**
 * Caches sending domains, and composes and signs messages. Acceptance and signing need no database query: the change
 * feed of the store updates the cache, from the next call after `apply`.
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

interface DomainSigning {
  /** `d=`: the domain of the address, or a parent of it. */
  readonly domain: string;
  readonly keys: readonly DkimKey[];
  /** False if the domain was authenticated in the past and is no longer. */
  readonly maySend: boolean;
}

export interface DomainCacheParts {
  readonly clock: { now(): number };
  readonly publish: PublishOf<'domain.changed'>;
}

export class DomainCache {
  readonly #byName = new Map<string, SendingDomain>();
  /** The name of the domain by return path. */
  readonly #byReturnPath = new Map<string, string>();
  readonly #parts: DomainCacheParts;

  constructor(parts: DomainCacheParts) {
    this.#parts = parts;
  }

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

  /** `name` is in lower-case A-labels. */
  isAuthenticated(accountId: number, name: string): boolean {
    const domain = this.#findDomain(accountId, name);
    return domain !== null && maySend(domain);
  }

  readonly findByName = (name: string): SendingDomain | null => this.#byName.get(name) ?? null;

  hasSendingDomain(): boolean {
    return [...this.#byName.values()].some(maySend);
  }

  /** Null if the domain was never authenticated for the account. */
  findSigning(accountId: number, name: string): DomainSigning | null {
    const domain = this.#findDomain(accountId, name);
    if (domain === null || domain.authenticatedAt === null) return null;
    return { domain: domain.name, keys: getSigningKeys(domain), maySend: maySend(domain) };
  }

  /** Null if it is not verified. */
  findReturnPath(accountId: number, name: string): string | null {
    const returnPath = this.#findDomain(accountId, name)?.returnPath ?? null;
    return returnPath?.isVerified === true ? returnPath.name : null;
  }

  /** Verified or not. */
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

// Preparation of an attempt. The bytes are the same on every attempt unless the keys change. A message whose required
// signature cannot be created is deferred and never sent unsigned.

/** The last element of Feedback-ID. Gmail requires 5 to 15 characters. */
const SENDER_ID = 'postrider';

export interface PrepareParts {
  readonly domains: Pick<DomainCache, 'findSigning' | 'findReturnPath'>;
  readonly signer: Signer;
  /** The relay refuses a message with more than one signature, so only the first key signs. */
  readonly acceptsOneSignature: boolean;
  /**
   * Messages from a domain that is no longer authenticated are deferred. If false, they are signed with its keys, and
   * messages from a domain that never was authenticated are sent unsigned.
   */
  readonly mustSign: boolean;
  /** A message could not be signed. An operator must correct the cause. */
  readonly onError: (error: unknown) => void;
  /** The default, which the verified return path of the domain precedes. Null: the From address. */
  readonly returnPath: { readonly domain: string; readonly key: Buffer } | null;
  /** The header fields by which the provider of the relay identifies the message. */
  readonly metadata: (messageId: string, configurationSet: string | null) => readonly ExtraHeader[];
  /** Of the account at Amazon SES. */
  readonly findConfigurationSet: (accountId: number) => string | null;
}

type PreparedMessage = Omit<LeasedMessage, 'heldMs' | 'attempts' | 'lease'>;

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
    // Gmail attributes the value to the signing domain.
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

// A message has one signature for each key, or `sign` rejects. No key is logged, and no error contains one.

export interface SigningKey extends SignatureIdentity {
  readonly sealed: string;
}

interface Signer {
  /**
   * Prepends the fields in the order of `keys`. `data` has CRLF line ends, and its body begins at `bodyAt`. `at` is the
   * time of acceptance, so that the bytes of all attempts are equal.
   */
  sign(data: Buffer, bodyAt: number, keys: readonly SigningKey[], at: number): Promise<Buffer>;
}

interface SignerParts {
  /** PKCS#8 DER. Throws if the key cannot be unsealed. */
  readonly openKey: (domain: string, selector: string, sealed: string) => Buffer;
  /** Replaced by the next hop and therefore not signed. In lower case. */
  readonly unsignedHeaders?: ReadonlySet<string>;
  readonly maxKeys?: number;
}

/** Two keys for each of 2,000 domains. A key needs about 4 KB. */
const MAX_KEYS = 4_000;

interface UnsealedKey {
  /** One object for all signatures of the key, because dkim.ts finds the cached prefix by it. */
  readonly identity: SignatureIdentity;
  readonly sealed: string;
  readonly key: KeyObject;
}

export function createSigner({ openKey, unsignedHeaders, maxKeys = MAX_KEYS }: SignerParts): Signer {
  /** By record name. The least recently used key is first. */
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
    // Selector and domain are written into the header unchanged.
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
            // The pool creates all its threads when it runs its first task.
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

// Acceptance and commit have priority over signatures, which can use every core. Only Linux has a niceness per thread.

const POOL_THREAD = 'libuv-worker';
/** With 10 the event loop handles one event at a time, with 5 several, which is faster (docs/decisions/dkim.md). */
const NICENESS = 5;

/** Never throws. */
function lowerSigningThreadPriority(tasksFolder = '/proc/self/task'): void {
  try {
    for (const threadId of readdirSync(tasksFolder)) {
      const name = readFileSync(`${tasksFolder}/${threadId}/comm`, 'utf8').trim();
      if (name === POOL_THREAD) setPriority(Number(threadId), NICENESS);
    }
  } catch {
    // The system is not Linux, or a thread has just ended.
  }
}
