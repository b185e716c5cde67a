/** Signing in and out, and what stands for the session in a URL. */
import type { SignedIn, Ticket } from '../../../src/operator/schemas.ts';
import { post, url } from './client';
import { keepSessionSecret } from './secret';

/** By the password, or by the word of the link that the service printed. */
export async function signIn(by: { readonly password: string } | { readonly link: string }): Promise<void> {
  const { session } = await post<SignedIn>('/sign-in', by);
  keepSessionSecret(session);
}

export async function signOut(): Promise<void> {
  await post('/sign-out');
  keepSessionSecret(null);
}

/** The URL of what the browser loads without headers, a frame or a download; good for half a minute. */
export async function ticketedUrl(at: string): Promise<string> {
  const path = url(at);
  const { ticket } = await post<Ticket>('/ticket', { path });
  return `${path}?${new URLSearchParams({ ticket })}`;
}

/** Lets the browser download it, whatever its size. */
export async function download(at: string, name: string): Promise<void> {
  const anchor = document.createElement('a');
  anchor.href = await ticketedUrl(at);
  anchor.download = name;
  anchor.click();
}
