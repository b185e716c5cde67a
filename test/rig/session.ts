/** Signing in at a listener as its page does: by the one-time link or the password, over the operator API. */

/** The two parts of a session, as the headers that a page of the listener sends. */
export type SessionHeaders = {
  readonly Cookie: string;
  readonly 'Postrider-Session': string;
};

/** Signs in with a word or password; throws what was answered where that lets nobody in. */
export async function signIn(
  operatorUrl: string,
  by: { readonly link: string } | { readonly password: string },
): Promise<SessionHeaders> {
  const answer = await fetch(`${operatorUrl}/api/v1/sign-in`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(by),
  });
  const text = await answer.text();
  const cookie = answer.headers.get('set-cookie')?.split(';')[0];
  if (cookie === undefined) throw new Error(`signing in was answered with ${answer.status} ${text}`);
  const { session } = JSON.parse(text) as { readonly session: string };
  return { Cookie: cookie, 'Postrider-Session': session };
}

/** Signs in with the link that a start printed. */
export function signInByLink(link: string): Promise<SessionHeaders> {
  const { origin, searchParams } = new URL(link);
  return signIn(origin, { link: searchParams.get('link') ?? '' });
}
