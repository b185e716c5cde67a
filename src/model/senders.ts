/** Whether a sender needs an authenticated domain. Pure. */
import type { Settings } from '../config/settings.ts';

/** False where mail of every sender is taken: the operator says so, or nothing leaves the machine. */
export function sendersBound({ transport, senders }: Pick<Settings, 'transport' | 'senders'>): boolean {
  return senders === 'authenticated' && transport.kind !== 'capture';
}
