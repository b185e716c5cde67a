/**
 * Operations whose input or result is a file of any size. These operations have a typed input, error codes and an audit
 * log entry, as other operations do (operation.ts). Adapters only stream the bytes of uploads and the pages of
 * downloads.
 */
import type { Static, TArray, TObject, TSchema } from 'typebox';
import type { ImportContext, OperationContext } from './context.ts';
import type { Result } from './errors.ts';
import { type OperationBase, type OperationResult, performWith } from './operation.ts';

/** The file of an upload. */
export interface FileContent {
  /** The name in error messages: `the upload`, `"list.csv"`. */
  readonly name: string;
  /**
   * Opens the content. An upload calls `open` once, after all other input was validated. `performUpload` does not catch
   * an exception of `open`.
   */
  open(): Promise<OpenedFile>;
}

export interface OpenedFile {
  /** The content of the whole file. This stream can be read only once. */
  readonly bytes: AsyncIterable<Buffer>;
  /** Reads the first `size` bytes of the file again. Null if the file can be read only once. */
  readonly reread: ((size: number) => AsyncIterable<Buffer>) | null;
  close(): Promise<void>;
}

/** The functions that observe an upload. */
export interface UploadObserver<P> {
  /** Receives the number of rows read while the file is validated, before any change. */
  readonly onRowsRead: (rowCount: number) => void;
  /** Receives the progress of the changes. At the first call, the file has been read to its end and is valid. */
  readonly onProgress: (progress: P) => void;
}

/** An operation on an uploaded file. It reads the whole file before the first change. */
export interface UploadOperation<I extends TObject = TObject, P extends TSchema = TSchema, R extends TSchema = TSchema>
  extends OperationBase<I> {
  /** The media type of the file. */
  readonly uploadType: string;
  readonly progress: P;
  readonly result: R;
  run(
    input: Static<I>,
    content: FileContent,
    context: ImportContext,
    observer: UploadObserver<Static<P>>,
  ): Promise<Result<Static<R>>>;
}

/** An operation whose result is an array, returned page by page. */
export interface DownloadOperation<I extends TObject = TObject, R extends TArray = TArray> extends OperationBase<I> {
  /** The media type of the result as a file. */
  readonly downloadType: string;
  readonly result: R;
  /** The file is `header` followed by `formatPage` of each page. */
  readonly header: string;
  formatPage(page: Static<R>): string;
  /**
   * Resolves after the first page has been read, so an error precedes all output. A later page may reject with a
   * StoreError.
   */
  run(input: Static<I>, context: OperationContext): Promise<Result<AsyncIterable<Static<R>>>>;
}

/** Defines an upload. The types of `run` are inferred from the schemas. */
export function defineUpload<I extends TObject, P extends TSchema, R extends TSchema>(
  definition: UploadOperation<I, P, R>,
): UploadOperation<I, P, R> {
  return definition;
}

/** Defines a download. The types of `run` are inferred from the schemas. */
export function defineDownload<I extends TObject, R extends TArray>(
  definition: DownloadOperation<I, R>,
): DownloadOperation<I, R> {
  return definition;
}

/** Performs an upload; see `perform`. */
export function performUpload<I extends TObject, P extends TSchema, R extends TSchema>(
  { input, run }: UploadOperation<I, P, R>,
  rawInput: Readonly<Record<string, unknown>>,
  content: FileContent,
  context: Omit<ImportContext, 'warn'>,
  observer: UploadObserver<Static<P>>,
): Promise<OperationResult<Static<R>>> {
  return performWith(input, rawInput, (input, warn) => run(input, content, { ...context, warn }, observer));
}

/** Performs a download; see `perform`. */
export function performDownload<I extends TObject, R extends TArray>(
  { input, run }: DownloadOperation<I, R>,
  rawInput: Readonly<Record<string, unknown>>,
  context: Omit<OperationContext, 'warn'>,
): Promise<OperationResult<AsyncIterable<Static<R>>>> {
  return performWith(input, rawInput, (input, warn) => run(input, { ...context, warn }));
}
