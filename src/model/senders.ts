/** Whether the sender of a message needs an authenticated domain. */

export interface SenderRule {
  readonly transport: { readonly kind: string };
  readonly senders: 'authenticated' | 'any';
}

/** False where every sender is accepted: the operator has set so, or no message leaves the machine. */
export function sendersBound({ transport, senders }: SenderRule): boolean {
  return senders === 'authenticated' && transport.kind !== 'capture';
}
