/** The sender and the recipient of the first message that an operator submits. The functions are pure. */

/** A simulator address, which works with every transport. Messages to this address never leave the service. */
export const SIMULATOR_SUCCESS_ADDRESS = 'success@simulator.postrider.test';

export const FIRST_SENDER = 'hello@example.org';

/** `capture:` sends nothing. Other transports get a simulator address. */
export function getFirstRecipient(transport: string): string {
  return transport === 'capture' ? 'ada@example.com' : SIMULATOR_SUCCESS_ADDRESS;
}
