/** Secrets are compared in constant time. No request makes it throw. */
import { createHmac, createPublicKey, verify } from 'node:crypto';
import { equalsInConstantTime } from '../model/credentials.ts';
import type { AuthenticationResult, ProviderRequest } from './event-reader.ts';

export type ParsedSecret<Secret> =
  | { readonly ok: true; readonly secret: Secret }
  | { readonly ok: false; readonly fault: string };

/** Before its events are interpreted. `now` is milliseconds since the epoch. */
export type Authenticate = (request: ProviderRequest, now: number) => AuthenticationResult;

export const AUTHENTICATED: AuthenticationResult = { kind: 'authenticated' };

const MIN_SECRET_LENGTH = 8;

/** Compares all secrets, so that the duration does not reveal which one matches. */
export function matchesAny<Secret>(secrets: readonly Secret[], matches: (secret: Secret) => boolean): boolean {
  let hasMatch = false;
  for (const secret of secrets) hasMatch = matches(secret) || hasMatch;
  return hasMatch;
}

export function createAuthenticatorFactory<Secret>(
  parse: (text: string) => ParsedSecret<Secret>,
  authenticate: (request: ProviderRequest, secrets: readonly Secret[], now: number) => AuthenticationResult,
): (texts: readonly string[]) => ParsedSecret<Authenticate> {
  return (texts) => {
    const secrets: Secret[] = [];
    for (const text of texts) {
      const parsed = parse(text);
      if (!parsed.ok) return parsed;
      secrets.push(parsed.secret);
    }
    return { ok: true, secret: (request, now) => authenticate(request, secrets, now) };
  };
}

export function createRefusal(reason: string): AuthenticationResult {
  return { kind: 'refused', reason };
}

export function parseTextSecret(text: string): ParsedSecret<string> {
  return text.length < MIN_SECRET_LENGTH
    ? { ok: false, fault: `the secret has fewer than ${MIN_SECRET_LENGTH} characters; copy it from the provider` }
    : { ok: true, secret: text };
}

/** `USER:PASSWORD` (RFC 7617), to the expected `Authorization` with the scheme in lower case. */
function parseBasicSecret(text: string): ParsedSecret<string> {
  const colonIndex = text.indexOf(':');
  if (colonIndex < 1) return { ok: false, fault: 'the value has no user name before a colon; give USER:PASSWORD' };
  if (text.length - colonIndex - 1 < MIN_SECRET_LENGTH)
    return {
      ok: false,
      fault: `the password has fewer than ${MIN_SECRET_LENGTH} characters; choose a longer password`,
    };
  return { ok: true, secret: `basic ${Buffer.from(text).toString('base64')}` };
}

/** `USER:PASSWORD` or `Bearer TOKEN` (RFC 6750), like `parseBasicSecret`. */
export function parseBasicOrBearerSecret(text: string): ParsedSecret<string> {
  if (!text.toLowerCase().startsWith('bearer ')) return parseBasicSecret(text);
  const token = text.slice('bearer '.length).trim();
  return token.length < MIN_SECRET_LENGTH
    ? { ok: false, fault: `the token has fewer than ${MIN_SECRET_LENGTH} characters; choose a longer token` }
    : { ok: true, secret: `bearer ${token}` };
}

/** The scheme is case-insensitive (RFC 9110 section 11.1). */
export function authenticateByAuthorization(
  { headers }: ProviderRequest,
  expectedValues: readonly string[],
): AuthenticationResult {
  const authorization = headers.authorization;
  if (authorization === undefined) return createRefusal('the request has no Authorization header field');
  const spaceIndex = authorization.indexOf(' ');
  const scheme = authorization.slice(0, Math.max(spaceIndex, 0)).toLowerCase();
  const normalizedAuthorization = `${scheme} ${authorization.slice(spaceIndex + 1).trimStart()}`;
  return matchesAny(expectedValues, (value) => equalsInConstantTime(value, normalizedAuthorization))
    ? AUTHENTICATED
    : createRefusal('the user name, the password or the token is wrong');
}

export const BASIC_AUTHENTICATION = {
  secretForm: 'USER:PASSWORD',
  secretExample: 'postrider:4ad0c3f1e7b2',
  createAuthenticator: createAuthenticatorFactory(parseBasicSecret, authenticateByAuthorization),
  authenticatesByHeader: true,
} as const;

/** By the header field `name`, an HMAC-SHA256 of the body in hexadecimal. */
export function createHmacAuthenticator(name: string, normalize: (signature: string) => string = (text) => text) {
  return ({ headers, body }: ProviderRequest, secrets: readonly string[]): AuthenticationResult => {
    const signature = headers[name.toLowerCase()];
    if (signature === undefined) return createRefusal(`the request has no ${name} header field`);
    const normalizedSignature = normalize(signature);
    return matchesAny(secrets, (secret) =>
      equalsInConstantTime(createHmac('sha256', secret).update(body).digest('hex'), normalizedSignature),
    )
      ? AUTHENTICATED
      : createRefusal('the signature is invalid');
  };
}

export function isBase64Hmac(
  algorithm: 'sha1' | 'sha256',
  secret: string | Buffer,
  content: string | Buffer,
  signature: string,
): boolean {
  return equalsInConstantTime(createHmac(algorithm, secret).update(content).digest('base64'), signature);
}

export type PublicKey = ReturnType<typeof createPublicKey>;

/** DER, SPKI, in base64 without PEM lines. */
export function parsePublicKey(text: string, type: 'ec' | 'rsa'): ParsedSecret<PublicKey> {
  const fault = 'the value is not a public key in base64 DER; copy the key without its PEM lines';
  const key = Buffer.from(text, 'base64');
  if (key.toString('base64') !== text) return { ok: false, fault };
  try {
    const secret = createPublicKey({ key, format: 'der', type: 'spki' });
    return secret.asymmetricKeyType === type
      ? { ok: true, secret }
      : { ok: false, fault: `the key has the type ${secret.asymmetricKeyType ?? 'unknown'} and not ${type}` };
  } catch {
    return { ok: false, fault };
  }
}

/** `signature` is in base64. A malformed one is not valid. */
export function isSignedBy(key: PublicKey, algorithm: 'sha1' | 'sha256', content: Buffer, signature: string): boolean {
  try {
    return verify(algorithm, content, key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
}
