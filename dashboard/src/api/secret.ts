/**
 * The page's half of its session. Cookies ignore ports: a server on another port of this host receives the cookie, but never this
 * secret, which is kept by origin and sent as a header. All tabs share it.
 */

const NAME = 'postrider-session';
/** Where the browser keeps nothing for this origin, the session lasts as long as the page. */
let kept: string | null = null;

export function sessionSecret(): string | null {
  try {
    return localStorage.getItem(NAME) ?? kept;
  } catch {
    return kept;
  }
}

/** Null forgets it. */
export function keepSessionSecret(secret: string | null): void {
  kept = secret;
  try {
    if (secret === null) localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, secret);
  } catch {
    // The browser forbids it.
  }
}

/** The header of each request. */
export function sessionHeader(): Readonly<Record<string, string>> {
  const secret = sessionSecret();
  return secret === null ? {} : { 'Postrider-Session': secret };
}
