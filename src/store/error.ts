/** The error that every store rejects with. */

/** A fault of the store that an operator can correct. The message is one line. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}
