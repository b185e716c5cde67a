/** Signs in and out, and creates URLs that contain a ticket in place of the session header. */
import type { SignInResponse, Ticket } from '../../../src/operator/schemas.ts';
import { buildApiUrl, post } from './client';
import { storeSessionSecret } from './session-secret';

/** Signs in with the password, or with the secret of the link that the service printed. */
export async function signIn(credential: { readonly password: string } | { readonly link: string }): Promise<void> {
  const { session } = await post<SignInResponse>('/sign-in', credential);
  storeSessionSecret(session);
}

export async function signOut(): Promise<void> {
  await post('/sign-out');
  storeSessionSecret(null);
}

/** Returns the URL for a frame, which the browser loads without the session header. The URL is valid for 30 s. */
export async function createTicketedUrl(apiPath: string): Promise<string> {
  const path = buildApiUrl(apiPath);
  const { ticket } = await post<Ticket>('/ticket', { path });
  return `${path}?${new URLSearchParams({ ticket })}`;
}
