import { StoreError } from '../error.ts';

/** The primary result code (sqlite.org/rescode.html), or 0 for any other error. */
export function getResultCode(error: unknown): number {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0;
}

export const SQLITE_BUSY = 5;

export function toStoreError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  switch (getResultCode(error)) {
    case 26: // SQLITE_NOTADB
    case 11: // SQLITE_CORRUPT
      return new StoreError(
        `the database ${path} is damaged (${getErrorText(error)}). The file was left unchanged. Restore a backup or move the file away.`,
      );
    case 13: // SQLITE_FULL
      return new StoreError(`the disk of ${path} is full. Free disk space. No acknowledged message is lost.`);
    case 8: // SQLITE_READONLY
    case 14: // SQLITE_CANTOPEN
      return new StoreError(
        `cannot write the database ${path} (${getErrorText(error)}). Check its owner and permissions.`,
      );
    case SQLITE_BUSY:
      return new StoreError(`the database ${path} is locked by another process. Try again.`);
    default:
      return new StoreError(`the database ${path} failed: ${getErrorText(error)}`);
  }
}

export function getErrorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Such as `ENOSPC`. For any other error, its message. */
export function getSystemErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : getErrorText(error);
}
