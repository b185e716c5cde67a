/**
 * The signing of messages for their domain: a cache of the sending domains and their keys, a leased message as it goes out, and
 * the signatures themselves.
 *
 * The cache serves admission and signing without a query. The store's watch feeds it; what the last `apply` said holds from the
 * next question on.
 */
import { createPrivateKey, type KeyObject, sign as signWith } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { compose } from '../message/compose.ts';
import {
  prepareSignable,
  prependSignatures,
  type SignatureIdentity,
  signatureField,
  signatureInput,
} from '../message/dkim.ts';
import { returnPathToken } from '../message/return-path.ts';
import { parseAddress, parseHost } from '../model/address.ts';
import { type DkimKey, maySend, type SendingDomain, signingKeys } from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';
import type { LeasedMessage } from '../model/message.ts';
import type { OutgoingMessage } from '../transports/transport.ts';

/** What a message from an address of this domain is signed with. */
interface Signing {
  /** The `d=` of the signature: the sending domain itself, or the one it is a subdomain of. */
  readonly domain: string;
  readonly keys: readonly DkimKey[];
  /** False where it once was authenticated and may not send any more. */
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

  /** True where the account may send from this domain (lower-case A-label). */
  authenticated(accountId: number, name: string): boolean {
    const domain = this.#find(accountId, name);
    return domain !== null && maySend(domain);
  }

  /** The keys that must sign mail of the account from this domain, or null where none was ever authenticated for it. */
  signingFor(accountId: number, name: string): Signing | null {
    const domain = this.#find(accountId, name);
    if (domain === null || domain.authenticatedAt === null) return null;
    return { domain: domain.name, keys: signingKeys(domain), maySend: maySend(domain) };
  }

  /** The domain itself, else the nearest one above it whose owner lets subdomains send. */
  #find(accountId: number, name: string): SendingDomain | null {
    const exact = this.#byName.get(name);
    if (exact !== undefined) return exact.accountId === accountId ? exact : null;
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const above = this.#byName.get(name.slice(dot + 1));
      if (above !== undefined) return above.accountId === accountId && above.subdomains ? above : null;
    }
    return null;
  }
}

// A leased mail request as it goes out: composed, with the envelope sender of the return path, signed for its domain. The
// same bytes on every attempt, unless the keys that sign were changed in between. Rejects where it cannot be signed though it
// must be: it is then deferred, never unsigned.

/** The last field of Feedback-ID: who sends (Gmail's form, 5 to 15 characters). */
const SENDER_ID = 'postrider';

export interface PrepareParts {
  readonly domains: Pick<DomainCache, 'signingFor'>;
  readonly signer: Signer;
  /**
   * True where senders must be authenticated: mail of a domain that no longer is waits. Where false, mail of a domain that
   * never was goes unsigned, and mail of one that was and lost it is signed by the keys it has: never unsigned.
   */
  readonly mustSign: boolean;
  /** Told of mail that could not be signed and therefore waits; wants an operator. */
  readonly onError: (error: unknown) => void;
  /** Domain and key of return paths, or null: the envelope sender is the From address. */
  readonly returnPath: { readonly domain: string; readonly key: Buffer } | null;
}

/** Makes the queue's `prepare`. */
export function createPrepare({
  domains,
  signer,
  mustSign,
  onError: failed,
  returnPath,
}: PrepareParts): (mail: LeasedMessage) => OutgoingMessage | Promise<OutgoingMessage> {
  return function prepare(mail) {
    const domain = parseAddress(mail.from)?.domain ?? '';
    const signing = domains.signingFor(mail.accountId, domain);
    // Only signed mail carries it: Gmail counts a Feedback-ID for the domain that signed it.
    const feedback = { name: 'Feedback-ID', value: `transactional:${mail.accountId}:${domain}:${SENDER_ID}` };
    const { data, bodyAt, envelopeFrom, envelopeTo, smtputf8 } = compose(mail, signing === null ? [] : [feedback]);
    const from =
      returnPath === null
        ? envelopeFrom
        : `${returnPathToken(returnPath.key, mail.id, mail.acceptedAt)}@${returnPath.domain}`;
    const message = (bytes: Buffer): OutgoingMessage => ({
      id: mail.id,
      envelope: { from, to: envelopeTo, smtputf8 },
      data: bytes,
    });
    if (mustSign && signing?.maySend !== true) {
      const why =
        signing === null
          ? `the account has no authenticated domain ${domain}; \`postrider domain list\` shows those there are`
          : `the domain ${domain} is not authenticated any more; \`postrider domain verify ${domain}\` says why`;
      const waits = new Error(why);
      failed(waits);
      throw waits;
    }
    if (signing === null) return message(data);
    const keys = signing.keys.map(({ selector, algorithm, sealed }) => ({
      domain: signing.domain,
      selector,
      algorithm,
      sealed,
    }));
    return signer.sign(data, bodyAt, keys, mail.acceptedAt).then(message, (error: unknown) => {
      failed(error);
      throw error;
    });
  };
}

// Signs messages with the keys of their domain, on the threads of libuv's pool, so that the event loop goes on.
//
// Promises: what it resolves with carries one signature for each key; where one cannot be made it rejects, and nothing
// unsigned comes out. Keys are opened once and kept, the least used of too many forgotten. They are never logged, and no
// error holds one.

export interface SigningKey extends SignatureIdentity {
  /** The private key, sealed. */
  readonly sealed: string;
}

interface Signer {
  /**
   * The message with its DKIM-Signature fields on top, in the order of `keys`. `data` has CRLF line ends and its body at
   * `bodyAt`; `at` is when the message was accepted, in milliseconds since the epoch, so that attempts are alike.
   */
  sign(data: Buffer, bodyAt: number, keys: readonly SigningKey[], at: number): Promise<Buffer>;
}

interface SignerParts {
  /** The private key as PKCS#8 DER; throws where it cannot be opened. */
  readonly openKey: (domain: string, selector: string, sealed: string) => Buffer;
  /** Header fields, lower case, that the next hop writes anew. */
  readonly unsignedHeaders?: ReadonlySet<string>;
  /** Keys kept open at once. */
  readonly maxKeys?: number;
}

/** Two keys for each of 2,000 domains, about 4 KB a key. */
const MAX_KEYS = 4_000;

interface OpenKey {
  /** Kept with the key, so that what its signatures begin with is made once. */
  readonly name: SignatureIdentity;
  readonly sealed: string;
  readonly key: KeyObject;
}

export function createSigner({ openKey, unsignedHeaders: except, maxKeys = MAX_KEYS }: SignerParts): Signer {
  /** By record name, the least lately used first. */
  const opened = new Map<string, OpenKey>();

  let polite = false;

  const keyOf = (wanted: SigningKey): OpenKey => {
    const name = `${wanted.selector}._domainkey.${wanted.domain}`;
    let entry = opened.get(name);
    if (entry === undefined || entry.sealed !== wanted.sealed || entry.name.algorithm !== wanted.algorithm) {
      const { domain, selector, algorithm, sealed } = wanted;
      entry = { name: { domain, selector, algorithm }, sealed, key: load(wanted, name) };
    }
    opened.delete(name);
    opened.set(name, entry);
    if (opened.size > maxKeys) opened.delete(opened.keys().next().value ?? name);
    return entry;
  };

  const load = (wanted: SigningKey, name: string): KeyObject => {
    // Both go into the header as they are.
    const host = `${wanted.selector}.${wanted.domain}`;
    if (parseHost(host, 0) !== host) throw new TypeError(`${JSON.stringify(name)} is no name of a DKIM key`);
    const der = openKey(wanted.domain, wanted.selector, wanted.sealed);
    let key: KeyObject;
    try {
      key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    } catch {
      throw new Error(`The DKIM key ${name} is damaged`);
    } finally {
      der.fill(0);
    }
    if (key.asymmetricKeyType !== wanted.algorithm) throw new Error(`The DKIM key ${name} is not ${wanted.algorithm}`);
    return key;
  };

  return {
    sign(data, bodyAt, keys, at) {
      return new Promise((resolve, reject) => {
        if (keys.length === 0) throw new Error('There is no DKIM key to sign with');
        const shared = prepareSignable(data, bodyAt, except);
        const fields = new Array<string>(keys.length).fill('');
        let missing = keys.length;
        for (const [index, wanted] of keys.entries()) {
          const { name, key } = keyOf(wanted);
          const input = signatureInput(shared, name, at);
          signWith(name.algorithm === 'rsa' ? 'sha256' : null, input.bytes, key, (error, signature) => {
            if (error !== null) {
              reject(new Error(`Signing as ${name.selector}._domainkey.${name.domain} failed: ${error.message}`));
              return;
            }
            fields[index] = signatureField(input, signature);
            // The pool makes its threads with its first work, all at once.
            if (!polite) {
              polite = true;
              yieldSigningThreads();
            }
            missing -= 1;
            if (missing === 0) resolve(prependSignatures(fields, data));
          });
        }
      });
    },
  };
}

// Signatures are made on the threads of libuv's pool and can fill every core. There they shall take only what is left:
// accepting a request and committing it go first. Linux schedules threads by a niceness of their own, and raising it needs
// no right; elsewhere nothing happens.

const POOL_THREAD = 'libuv-worker';
/**
 * With 10 every event finds the event loop asleep and is dealt with alone; with 5 several come together, and commits too,
 * which costs less of the processor (docs/decisions/dkim.md has the figures, and what accepting pays for it).
 */
const NICENESS = 5;

/** Lets the pool's threads that exist by now yield to all others of this process. Never throws. */
function yieldSigningThreads(tasks = '/proc/self/task'): void {
  try {
    for (const id of readdirSync(tasks)) {
      const name = readFileSync(`${tasks}/${id}/comm`, 'utf8').trim();
      if (name === POOL_THREAD) setPriority(Number(id), NICENESS);
    }
  } catch {
    // No such folder (not Linux), or a thread that has just ended: signing works the same, only less politely.
  }
}
