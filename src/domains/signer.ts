/**
 * Signs messages with the keys of their domain, on the threads of libuv's pool, so that the event loop goes on.
 *
 * Promises: what it resolves with carries one signature for each key; where one cannot be made it rejects, and nothing
 * unsigned comes out. Keys are opened once and kept, the least used of too many forgotten. They are never logged, and no
 * error holds one.
 */
import { createPrivateKey, type KeyObject, sign as signWith } from 'node:crypto';
import { type SignatureName, signable, signatureField, signatureInput, withSignatures } from '../message/dkim.ts';
import { parseHost } from '../model/host.ts';
import { yieldSigningThreads } from './signing-threads.ts';

export interface SigningKey extends SignatureName {
  /** The private key, sealed. */
  readonly sealed: string;
}

export interface Signer {
  /**
   * The message with its DKIM-Signature fields on top, in the order of `keys`. `data` has CRLF line ends and its body at
   * `bodyAt`; `at` is when the message was accepted, in milliseconds since the epoch, so that attempts are alike.
   */
  sign(data: Buffer, bodyAt: number, keys: readonly SigningKey[], at: number): Promise<Buffer>;
}

export interface SignerParts {
  /** The private key as PKCS#8 DER; throws where it cannot be opened. */
  readonly openKey: (domain: string, selector: string, sealed: string) => Buffer;
  /** Header fields, lower case, that the next hop writes anew. */
  readonly except?: ReadonlySet<string>;
  /** Keys kept open at once. */
  readonly maxKeys?: number;
}

/** Two keys for each of 2,000 domains, about 4 KB a key. */
const MAX_KEYS = 4_000;

interface OpenKey {
  /** Kept with the key, so that what its signatures begin with is made once. */
  readonly name: SignatureName;
  readonly sealed: string;
  readonly key: KeyObject;
}

export function createSigner({ openKey, except, maxKeys = MAX_KEYS }: SignerParts): Signer {
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
        const shared = signable(data, bodyAt, except);
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
            if (missing === 0) resolve(withSignatures(fields, data));
          });
        }
      });
    },
  };
}
