/** The one error that a store rejects with. */

/** A fault of the store that a person can act on; the message is one clear line. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}
