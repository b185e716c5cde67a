/**
 * The part of the session that the page keeps. Cookies ignore ports, so a server on another port of this host receives the cookie.
 * It does not receive this secret, which the browser stores by origin and the page sends as a header. All tabs share it.
 */

const NAME = 'postrider-session';
/** Used if the browser stores nothing for this origin; the session then ends with the page. */
let inMemory: string | null = null;

export function readSessionSecret(): string | null {
  try {
    return localStorage.getItem(NAME) ?? inMemory;
  } catch {
    return inMemory;
  }
}

/** Null removes it. */
export function storeSessionSecret(secret: string | null): void {
  inMemory = secret;
  try {
    if (secret === null) localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, secret);
  } catch {
    // The browser forbids storage; the copy in memory is used.
  }
}

/** The session header that each request sends. */
export function sessionHeader(): Readonly<Record<string, string>> {
  const secret = readSessionSecret();
  return secret === null ? {} : { 'Postrider-Session': secret };
}
