/**
 * Operations whose input or result is a file, longer than memory. They are operations like the others (operation.ts): a typed
 * input, error codes, an audit log entry; only bytes stream in and pieces stream out, and adapters do no more than that.
 */
import type { Static, TArray, TObject, TSchema } from 'typebox';
import type { ImportContext, OperationContext } from './context.ts';
import type { Result } from './errors.ts';
import { type OperationBase, type OperationResult, performWith } from './operation.ts';

/** A file as an operation is given it. */
export interface FileContent {
  /** What messages call it: `the upload`, `"list.csv"`. */
  readonly name: string;
  /** Called once, when the rest of the input is valid. What it throws is thrown on by `performUpload`. */
  open(): Promise<OpenedFile>;
}

export interface OpenedFile {
  /** From its beginning to its end, once. */
  readonly bytes: AsyncIterable<Buffer>;
  /** Its first `size` bytes once more; null where it can be read only once. */
  readonly again: ((size: number) => AsyncIterable<Buffer>) | null;
  close(): Promise<void>;
}

/** Follows an upload. */
export interface UploadObserver<P> {
  /** The file is being read, and nothing is changed yet: so many rows so far. */
  readonly reading: (rows: number) => void;
  /** The first call says that the file was read to its end and is valid, and that the change begins. */
  readonly progress: (at: P) => void;
}

/** An operation that takes a file and reports its progress. It reads the whole file before it changes anything. */
export interface UploadOperation<I extends TObject = TObject, P extends TSchema = TSchema, R extends TSchema = TSchema>
  extends OperationBase<I> {
  /** The media type of the file. */
  readonly takes: string;
  readonly progress: P;
  readonly result: R;
  run(
    input: Static<I>,
    content: FileContent,
    context: ImportContext,
    watch: UploadObserver<Static<P>>,
  ): Promise<Result<Static<R>>>;
}

/** An operation whose result is an array that comes in pieces. */
export interface DownloadOperation<I extends TObject = TObject, R extends TArray = TArray> extends OperationBase<I> {
  /** The media type of the result as a file. */
  readonly gives: string;
  readonly result: R;
  /** The file: `head`, then `text` of each piece. */
  readonly header: string;
  formatPage(piece: Static<R>): string;
  /** Resolves when the first piece is there, so that an error stands alone. A later piece rejects with a StoreError. */
  run(input: Static<I>, context: OperationContext): Promise<Result<AsyncIterable<Static<R>>>>;
}

/** Defines an upload; the types of `run` follow from the schemas. */
export function uploadOperation<I extends TObject, P extends TSchema, R extends TSchema>(
  definition: UploadOperation<I, P, R>,
): UploadOperation<I, P, R> {
  return definition;
}

/** Defines a download; the types of `run` follow from the schemas. */
export function downloadOperation<I extends TObject, R extends TArray>(
  definition: DownloadOperation<I, R>,
): DownloadOperation<I, R> {
  return definition;
}

/** Performs an upload, as `perform` does an operation. */
export function performUpload<I extends TObject, P extends TSchema, R extends TSchema>(
  { input, run }: UploadOperation<I, P, R>,
  given: Readonly<Record<string, unknown>>,
  content: FileContent,
  context: Omit<ImportContext, 'warn'>,
  watch: UploadObserver<Static<P>>,
): Promise<OperationResult<Static<R>>> {
  return performWith(input, given, (read, warn) => run(read, content, { ...context, warn }, watch));
}

/** Performs a download, as `perform` does an operation. */
export function performDownload<I extends TObject, R extends TArray>(
  { input, run }: DownloadOperation<I, R>,
  given: Readonly<Record<string, unknown>>,
  context: Omit<OperationContext, 'warn'>,
): Promise<OperationResult<AsyncIterable<Static<R>>>> {
  return performWith(input, given, (read, warn) => run(read, { ...context, warn }));
}
