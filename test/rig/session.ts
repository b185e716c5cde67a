export type SessionHeaders = {
  readonly Cookie: string;
  readonly 'Postrider-Session': string;
};

/** @throws Error that contains the response if the sign-in is refused */
export async function signIn(
  operatorUrl: string,
  credential: { readonly link: string } | { readonly password: string },
): Promise<SessionHeaders> {
  const answer = await fetch(`${operatorUrl}/api/v1/sign-in`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(credential),
  });
  const text = await answer.text();
  const cookie = answer.headers.get('set-cookie')?.split(';')[0];
  if (cookie === undefined) throw new Error(`the response to the sign-in is ${answer.status} ${text}`);
  const { session } = JSON.parse(text) as { readonly session: string };
  return { Cookie: cookie, 'Postrider-Session': session };
}

export function signInByLink(link: string): Promise<SessionHeaders> {
  const { origin, searchParams } = new URL(link);
  return signIn(origin, { link: searchParams.get('link') ?? '' });
}
