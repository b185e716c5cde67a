/** The sender and the recipient of the first message that an operator submits. The functions are pure. */

/** A simulator address, which works with every transport. Messages to this address never leave the service. */
export const SIMULATOR_SUCCESS_ADDRESS = 'success@simulator.postrider.test';

export const FIRST_SENDER = 'hello@example.org';

/**
 * Returns the recipient of the first message. For the transport `capture:`, which sends no message, the recipient is an
 * example address. For other transports, the recipient is a simulator address.
 */
export function getFirstRecipient(transport: string): string {
  return transport === 'capture' ? 'ada@example.com' : SIMULATOR_SUCCESS_ADDRESS;
}
