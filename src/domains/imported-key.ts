/**
 * Reads a DKIM key that was created elsewhere, and its selector. No fault contains a part of the input, which may be a
 * private key. Pure.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { parseHost } from '../model/address.ts';
import { getDkimRecordName } from '../model/domain.ts';
import { formatPublicKey, type KeyPair } from './keys.ts';

/** The PEM of an RSA-4096 key has about 3,300 characters. */
export const MAX_KEY_CHARACTERS = 16_384;
/** RFC 8301 section 3.2. */
const MIN_RSA_BITS = 1024;
const MAX_RSA_BITS = 4096;
const RECOMMENDED_RSA_BITS = 2048;
/** Without the final dot (RFC 1035 section 2.3.4). */
const MAX_RECORD_NAME_LENGTH = 253;

export type ParsedPrivateKey =
  | { readonly ok: true; readonly keyPair: KeyPair; readonly warning: string | null }
  | { readonly ok: false; readonly fault: string };

/** RSA in PKCS#1 or PKCS#8, or Ed25519 in PKCS#8. The caller must overwrite the private key of the result. */
export function parsePrivateKey(pem: string): ParsedPrivateKey {
  const formFault = findFormFault(pem);
  if (formFault !== null) return createKeyFault(formFault);
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    return createKeyFault('the PEM block cannot be decoded; copy the whole file, from the BEGIN line to the END line');
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  switch (key.asymmetricKeyType) {
    case 'ed25519':
      return createKeyPair(key, 'ed25519', null);
    case 'rsa':
      if (bits < MIN_RSA_BITS) {
        return createKeyFault(
          `the RSA key has ${bits} bits, and receivers ignore signatures with less than ${MIN_RSA_BITS}; let Postrider create a key`,
        );
      }
      if (bits > MAX_RSA_BITS) {
        return createKeyFault(
          `the RSA key has ${bits} bits, and receivers need not support more than ${MAX_RSA_BITS}; let Postrider create a key`,
        );
      }
      return createKeyPair(
        key,
        'rsa',
        bits < RECOMMENDED_RSA_BITS
          ? `the RSA key has ${bits} bits, and ${RECOMMENDED_RSA_BITS} are recommended; replace it with \`postrider domain rotate DOMAIN\` after the move to Postrider`
          : null,
      );
    default:
      return createKeyFault('the key is neither RSA nor Ed25519, so it cannot sign DKIM; let Postrider create a key');
  }
}

function createKeyPair(key: KeyObject, algorithm: KeyPair['algorithm'], warning: string | null): ParsedPrivateKey {
  const sampleData = Buffer.from('postrider');
  const digest = algorithm === 'rsa' ? 'sha256' : null;
  try {
    if (!verify(digest, sampleData, createPublicKey(key), sign(digest, sampleData, key)))
      throw new Error('no valid signature');
  } catch {
    return createKeyFault('the key is damaged: its signatures are invalid; give the original file');
  }
  const privateKey = key.export({ format: 'der', type: 'pkcs8' });
  return { ok: true, keyPair: { algorithm, publicKey: formatPublicKey(key), privateKey }, warning };
}

function findFormFault(text: string): string | null {
  const labels = findPemLabels(text);
  const [label] = labels;
  if (label === undefined) {
    return text.trimStart().startsWith('v=DKIM1') || text.includes('p=MI')
      ? 'this is the public record of a key; give the private key in PEM'
      : 'there is no PEM block; give the private key in PEM, which begins with -----BEGIN PRIVATE KEY----- or -----BEGIN RSA PRIVATE KEY-----';
  }
  if (labels.length > 1) return `there are ${labels.length} PEM blocks; give one private key`;
  if (label === 'OPENSSH PRIVATE KEY') {
    return "the key has the format of OpenSSH; convert a copy of an RSA key with `ssh-keygen -p -N '' -m PKCS8 -f COPY`";
  }
  if (label === 'ENCRYPTED PRIVATE KEY' || text.includes('Proc-Type: 4,ENCRYPTED')) {
    return 'the key is encrypted with a passphrase; decrypt it with `openssl pkey -in FILE -out DECRYPTED`';
  }
  if (label.endsWith('PUBLIC KEY') || label.startsWith('CERTIFICATE')) {
    return `this is a ${label.startsWith('CERTIFICATE') ? 'certificate' : 'public key'}; give the private key in PEM`;
  }
  return null;
}

/** Such as `PRIVATE KEY` (RFC 7468 section 2). */
function findPemLabels(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const trimmedLine = line.trim();
    const isBegin = trimmedLine.startsWith('-----BEGIN ') && trimmedLine.endsWith('-----');
    return isBegin ? [trimmedLine.slice('-----BEGIN '.length, -'-----'.length)] : [];
  });
}

function createKeyFault(fault: string): { readonly ok: false; readonly fault: string } {
  return { ok: false, fault };
}

export type ParsedSelector =
  | { readonly ok: true; readonly selector: string }
  | { readonly ok: false; readonly fault: string };

/** RFC 6376 section 3.1. */
export function parseSelector(text: string, domain: string): ParsedSelector {
  const selector = text.toLowerCase();
  if (selector.includes('_domainkey')) {
    return { ok: false, fault: 'give only the part of the record name before ._domainkey, such as s1' };
  }
  // The signer requires that the selector and the domain together form a host name.
  if (!isAscii(selector) || parseHost(`${selector}.${domain}`, 0) !== `${selector}.${domain}`) {
    return {
      ok: false,
      fault:
        'a selector consists of labels of letters, digits and inner hyphens, separated by dots, such as s1 or mail.2024',
    };
  }
  const { length } = getDkimRecordName(domain, selector);
  return length > MAX_RECORD_NAME_LENGTH
    ? { ok: false, fault: `the name of the record has ${length} characters; the maximum is ${MAX_RECORD_NAME_LENGTH}` }
    : { ok: true, selector };
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 127) return false;
  return true;
}
