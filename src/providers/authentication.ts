/**
 * Authenticates requests of providers. The functions are pure and compare secrets in constant time. The functions never
 * throw for any request.
 */
import { createHash, createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import type { AuthenticationResult, ProviderRequest } from './event-reader.ts';

/** A parsed secret of POSTRIDER_EVENTS_<PROVIDER>, or the reason why the text is not a secret. */
export type ParsedSecret<Secret> =
  | { readonly ok: true; readonly secret: Secret }
  /**
   * One line that does not contain the secret, for example `the secret has fewer than 8 characters; copy it from the
   * provider`.
   */
  | { readonly ok: false; readonly fault: string };

/** Authenticates a POST request before its events are interpreted. `now` is milliseconds since the epoch. */
export type Authenticate = (request: ProviderRequest, now: number) => AuthenticationResult;

export const AUTHENTICATED: AuthenticationResult = { kind: 'authenticated' };

const MIN_SECRET_LENGTH = 8;

/** Returns true if both values are equal. The duration does not depend on the position of the first difference. */
export function equalsInConstantTime(first: string | Buffer, second: string | Buffer): boolean {
  return timingSafeEqual(createHash('sha256').update(first).digest(), createHash('sha256').update(second).digest());
}

/**
 * Returns true if `matches` returns true for one of the secrets. Compares all secrets, so that the duration does not
 * reveal which secret matches.
 */
export function matchesAny<Secret>(secrets: readonly Secret[], matches: (secret: Secret) => boolean): boolean {
  let hasMatch = false;
  for (const secret of secrets) hasMatch = matches(secret) || hasMatch;
  return hasMatch;
}

/**
 * Returns the function that parses a list of secrets with `parse` and creates the authenticator for all of them. If a
 * secret is invalid, the function returns the fault of this secret.
 */
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

/** Parses a signing secret whose characters are the key. */
export function parseTextSecret(text: string): ParsedSecret<string> {
  return text.length < MIN_SECRET_LENGTH
    ? { ok: false, fault: `the secret has fewer than ${MIN_SECRET_LENGTH} characters; copy it from the provider` }
    : { ok: true, secret: text };
}

/**
 * Parses `USER:PASSWORD` of HTTP basic authentication (RFC 7617). Returns the expected value of `Authorization` with
 * the scheme in lower case.
 */
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

/**
 * Parses `USER:PASSWORD` or `Bearer TOKEN` (RFC 6750). Returns the expected value of `Authorization` with the scheme in
 * lower case.
 */
export function parseBasicOrBearerSecret(text: string): ParsedSecret<string> {
  if (!text.toLowerCase().startsWith('bearer ')) return parseBasicSecret(text);
  const token = text.slice('bearer '.length).trim();
  return token.length < MIN_SECRET_LENGTH
    ? { ok: false, fault: `the token has fewer than ${MIN_SECRET_LENGTH} characters; choose a longer token` }
    : { ok: true, secret: `bearer ${token}` };
}

/**
 * Authenticates a request if its header field `Authorization` has one of the expected values. The scheme is
 * case-insensitive (RFC 9110 section 11.1).
 */
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

/** The authentication of the providers that send a user name and a password. */
export const BASIC_AUTHENTICATION = {
  secretForm: 'USER:PASSWORD',
  secretExample: 'postrider:4ad0c3f1e7b2',
  createAuthenticator: createAuthenticatorFactory(parseBasicSecret, authenticateByAuthorization),
  authenticatesByHeader: true,
} as const;

/** Returns true if `signature` is the hexadecimal HMAC-SHA256 of `content`. */
export function isHexHmacSha256(secret: string | Buffer, content: string | Buffer, signature: string): boolean {
  return equalsInConstantTime(createHmac('sha256', secret).update(content).digest('hex'), signature);
}

/** Returns true if `signature` is the base64-encoded HMAC of `content`. */
export function isBase64Hmac(
  algorithm: 'sha1' | 'sha256',
  secret: string | Buffer,
  content: string | Buffer,
  signature: string,
): boolean {
  return equalsInConstantTime(createHmac(algorithm, secret).update(content).digest('base64'), signature);
}

export type PublicKey = ReturnType<typeof createPublicKey>;

/** Parses a public key (DER, SPKI) in base64 without PEM lines. `type` is the key type of `node:crypto`. */
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

/**
 * Returns true if `signature` is a valid base64-encoded signature of `content` for this public key. Returns false for
 * a malformed signature.
 */
export function isSignedBy(key: PublicKey, algorithm: 'sha1' | 'sha256', content: Buffer, signature: string): boolean {
  try {
    return verify(algorithm, content, key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
}
