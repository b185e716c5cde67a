/**
 * Signs messages with DKIM: caches sending domains and their keys, composes outgoing messages and adds the signatures.
 *
 * Guarantees: acceptance and signing need no query. The change feed of the store updates the cache. A change applies from the
 * next call after `apply`.
 */
import { createPrivateKey, type KeyObject, sign as signWith } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { compose } from '../message/compose.ts';
import {
  createSignatureInput,
  formatSignatureField,
  prepareSignable,
  prependSignatures,
  type SignatureIdentity,
} from '../message/dkim.ts';
import { createReturnPathToken } from '../message/return-path.ts';
import { parseAddress, parseHost } from '../model/address.ts';
import { type DkimKey, getSigningKeys, maySend, type SendingDomain } from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';
import type { LeasedMessage } from '../model/message.ts';
import type { OutgoingMessage } from '../transports/transport.ts';

/** The keys that sign messages from addresses of a domain. */
interface DomainSigning {
  /** The `d=` of the signature: the sending domain, or its parent domain if the address belongs to a subdomain. */
  readonly domain: string;
  readonly keys: readonly DkimKey[];
  /** False if the domain was authenticated in the past and is now blocked. */
  readonly maySend: boolean;
}

export interface DomainCacheParts {
  readonly clock: { now(): number };
  readonly publish: PublishOf<'domain.changed'>;
}

export class DomainCache {
  readonly #byName = new Map<string, SendingDomain>();
  readonly #parts: DomainCacheParts;

  constructor(parts: DomainCacheParts) {
    this.#parts = parts;
  }

  apply({
    domains,
    removed,
  }: {
    readonly domains: readonly SendingDomain[];
    readonly removed: readonly string[];
  }): void {
    for (const name of removed) this.#byName.delete(name);
    for (const domain of domains) this.#byName.set(domain.name, domain);
    const { clock, publish } = this.#parts;
    if (domains.length + removed.length > 0) publish({ type: 'domain.changed', at: clock.now() });
  }

  /** Returns true if the account can send from this domain (lower-case A-label). */
  isAuthenticated(accountId: number, name: string): boolean {
    const domain = this.#find(accountId, name);
    return domain !== null && maySend(domain);
  }

  /** Returns true if a domain of any account may send. */
  hasSendingDomain(): boolean {
    return [...this.#byName.values()].some(maySend);
  }

  /**
   * Returns the keys that must sign messages of the account from this domain, or null if the domain was never authenticated for
   * the account.
   */
  signingFor(accountId: number, name: string): DomainSigning | null {
    const domain = this.#find(accountId, name);
    if (domain === null || domain.authenticatedAt === null) return null;
    return { domain: domain.name, keys: getSigningKeys(domain), maySend: maySend(domain) };
  }

  /** Returns the domain itself, or the nearest parent domain if that allows subdomains. */
  #find(accountId: number, name: string): SendingDomain | null {
    const exact = this.#byName.get(name);
    if (exact !== undefined) return exact.accountId === accountId ? exact : null;
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const parent = this.#byName.get(name.slice(dot + 1));
      if (parent !== undefined) return parent.accountId === accountId && parent.subdomains ? parent : null;
    }
    return null;
  }
}

// Prepares a leased message for an attempt: composes it, sets the envelope sender of the return path, and signs it for its domain. The
// bytes are the same on every attempt unless the signing keys change. Rejects if a required signature cannot be made; the message is
// then deferred and never sent unsigned.

/** The last field of Feedback-ID, which identifies the sender. Gmail requires 5 to 15 characters. */
const SENDER_ID = 'postrider';

export interface PrepareParts {
  readonly domains: Pick<DomainCache, 'signingFor'>;
  readonly signer: Signer;
  /**
   * True if senders must be authenticated: messages of a domain that is no longer authenticated are deferred. If false,
   * messages of a domain that never was authenticated are sent unsigned, and those of a domain that lost its authentication are
   * signed with its keys.
   */
  readonly mustSign: boolean;
  /** Called for each message that could not be signed and is deferred. An operator has to act. */
  readonly onError: (error: unknown) => void;
  /** Domain and key of return paths. If null, the envelope sender is the From address. */
  readonly returnPath: { readonly domain: string; readonly key: Buffer } | null;
}

/** Creates the function that the queue calls to prepare a message for an attempt. */
export function createPrepare({
  domains,
  signer,
  mustSign,
  onError,
  returnPath,
}: PrepareParts): (message: LeasedMessage) => OutgoingMessage | Promise<OutgoingMessage> {
  return function prepare(message) {
    const domain = parseAddress(message.from)?.domain ?? '';
    const signing = domains.signingFor(message.accountId, domain);
    // Only signed messages have the field: Gmail assigns a Feedback-ID to the signing domain.
    const feedback = { name: 'Feedback-ID', value: `transactional:${message.accountId}:${domain}:${SENDER_ID}` };
    const { data, bodyAt, envelopeFrom, envelopeTo, smtputf8 } = compose(message, signing === null ? [] : [feedback]);
    const from =
      returnPath === null
        ? envelopeFrom
        : `${createReturnPathToken(returnPath.key, message.id, message.acceptedAt)}@${returnPath.domain}`;
    const toOutgoing = (bytes: Buffer): OutgoingMessage => ({
      id: message.id,
      envelope: { from, to: envelopeTo, smtputf8 },
      data: bytes,
    });
    if (mustSign && signing?.maySend !== true) {
      const reason =
        signing === null
          ? `the account has no authenticated domain ${domain}; \`postrider domain list\` lists its domains`
          : `the domain ${domain} is no longer authenticated; \`postrider domain verify ${domain}\` shows the reason`;
      const error = new Error(reason);
      onError(error);
      throw error;
    }
    if (signing === null) return toOutgoing(data);
    const keys = signing.keys.map(({ selector, algorithm, sealed }) => ({
      domain: signing.domain,
      selector,
      algorithm,
      sealed,
    }));
    return signer.sign(data, bodyAt, keys, message.acceptedAt).then(toOutgoing, (error: unknown) => {
      onError(error);
      throw error;
    });
  };
}

// Signs messages with the keys of their domain on the threads of libuv's pool, which does not block the event loop.
//
// Guarantees: a signed message has one signature per key. If a signature cannot be made, `sign` rejects and never resolves with
// an unsigned message. Keys are unsealed once and cached; the least recently used keys are evicted. They are never logged, and
// no error contains one.

export interface SigningKey extends SignatureIdentity {
  /** The private key, sealed. */
  readonly sealed: string;
}

interface Signer {
  /**
   * Returns the message with its DKIM-Signature fields prepended in the order of `keys`. `data` has CRLF line ends; its
   * body begins at `bodyAt`. `at` is the time of acceptance in milliseconds since the epoch, which makes the bytes of
   * all attempts equal.
   */
  sign(data: Buffer, bodyAt: number, keys: readonly SigningKey[], at: number): Promise<Buffer>;
}

interface SignerParts {
  /** Returns the private key as PKCS#8 DER. Throws if the key cannot be unsealed. */
  readonly openKey: (domain: string, selector: string, sealed: string) => Buffer;
  /** Header fields, in lower case, that the next hop replaces. These fields are not signed. */
  readonly unsignedHeaders?: ReadonlySet<string>;
  /** The maximum number of cached keys. */
  readonly maxKeys?: number;
}

/** The cache has two keys for each of 2,000 domains. A key needs about 4 KB. */
const MAX_KEYS = 4_000;

interface OpenKey {
  /** Cached with the key, because the prefix of its signatures is cached for this object. */
  readonly identity: SignatureIdentity;
  readonly sealed: string;
  readonly key: KeyObject;
}

export function createSigner({ openKey, unsignedHeaders: except, maxKeys = MAX_KEYS }: SignerParts): Signer {
  /** Unsealed keys by record name, the least recently used first. */
  const openKeys = new Map<string, OpenKey>();

  let hasLoweredPriority = false;

  const getKey = (signingKey: SigningKey): OpenKey => {
    const name = `${signingKey.selector}._domainkey.${signingKey.domain}`;
    let entry = openKeys.get(name);
    if (
      entry === undefined ||
      entry.sealed !== signingKey.sealed ||
      entry.identity.algorithm !== signingKey.algorithm
    ) {
      const { domain, selector, algorithm, sealed } = signingKey;
      entry = { identity: { domain, selector, algorithm }, sealed, key: loadKey(signingKey, name) };
    }
    openKeys.delete(name);
    openKeys.set(name, entry);
    if (openKeys.size > maxKeys) openKeys.delete(openKeys.keys().next().value ?? name);
    return entry;
  };

  const loadKey = (signingKey: SigningKey, name: string): KeyObject => {
    // The selector and the domain are written into the header unchanged.
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
        const signable = prepareSignable(data, bodyAt, except);
        const fields = new Array<string>(keys.length).fill('');
        let pending = keys.length;
        for (const [index, signingKey] of keys.entries()) {
          const { identity: name, key } = getKey(signingKey);
          const input = createSignatureInput(signable, name, at);
          signWith(name.algorithm === 'rsa' ? 'sha256' : null, input.bytes, key, (error, signature) => {
            if (error !== null) {
              reject(new Error(`Signing as ${name.selector}._domainkey.${name.domain} failed: ${error.message}`));
              return;
            }
            fields[index] = formatSignatureField(input, signature);
            // The pool creates all its threads when it runs its first task.
            if (!hasLoweredPriority) {
              hasLoweredPriority = true;
              yieldSigningThreads();
            }
            pending -= 1;
            if (pending === 0) resolve(prependSignatures(fields, data));
          });
        }
      });
    },
  };
}

// Signatures can use every core on the threads of libuv's pool. Accepting and committing requests have priority, so these threads get a
// higher niceness. Linux has a niceness per thread, and raising it needs no privilege; on other systems nothing happens.

const POOL_THREAD = 'libuv-worker';
/**
 * With 10 the event loop handles one event at a time. With 5 it handles several events and commits together, which
 * needs less processor time. docs/decisions/dkim.md has the figures and the cost for acceptance.
 */
const NICENESS = 5;

/** Lowers the priority of the pool's existing threads. Never throws. */
function yieldSigningThreads(tasks = '/proc/self/task'): void {
  try {
    for (const id of readdirSync(tasks)) {
      const name = readFileSync(`${tasks}/${id}/comm`, 'utf8').trim();
      if (name === POOL_THREAD) setPriority(Number(id), NICENESS);
    }
  } catch {
    // Not Linux, or a thread has just ended: signing works with the normal priority.
  }
}
