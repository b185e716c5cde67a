/**
 * Stores the secret of the session in the browser. Browsers send cookies to every port of a host, so a server on
 * another port of this host receives the session cookie. That server does not receive this secret. The browser stores
 * the secret per origin, and the page sends it in a header. All tabs share the secret.
 */

const STORAGE_KEY = 'postrider-session';
/** The secret if the browser stores nothing for this origin. In this case the session ends when the page is closed. */
let secretInMemory: string | null = null;

export function readSessionSecret(): string | null {
  try {
    return localStorage.getItem(STORAGE_KEY) ?? secretInMemory;
  } catch {
    return secretInMemory;
  }
}

/** Stores the secret; null removes it. */
export function storeSessionSecret(secret: string | null): void {
  secretInMemory = secret;
  try {
    if (secret === null) localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, secret);
  } catch {
    // If the browser forbids storage, the copy in memory is used.
  }
}

/** Returns the session header that each request sends. */
export function getSessionHeader(): Readonly<Record<string, string>> {
  const secret = readSessionSecret();
  return secret === null ? {} : { 'Postrider-Session': secret };
}
