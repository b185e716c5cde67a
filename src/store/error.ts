/** Defines the error with which every store operation rejects. */

/** A failure of the store. The message is one line and names the remedy if an operator can correct the cause. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}
