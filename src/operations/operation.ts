/** An operation is one action of an operator: typed input and result, error codes, audit. CLI and API are adapters. */
import type { Static, TArray, TObject, TSchema } from 'typebox';
import type { Installation } from '../checks/probes.ts';
import type { Clock, MonotonicClock } from '../clock.ts';
import type { DescribedSetting } from '../config/load.ts';
import type { Settings, TransportSetting } from '../config/settings.ts';
import type { Entity } from '../feedback/read/entity.ts';
import type { AccessRule, Role, Scope } from '../model/audit.ts';
import type { PublishOf } from '../model/events.ts';
import type { Inbox } from '../model/inbox.ts';
import type { RuntimeStatus } from '../model/node.ts';
import type { Attempt } from '../model/outcome.ts';
import { describeError } from '../printing/escape.ts';
import type { OperatorStore } from '../store/contract.ts';
import type { OutgoingMessage } from '../transports/transport.ts';
import { createConflict, createUnavailable, type ErrorCode, type Result } from './errors.ts';
import { readInput } from './input.ts';
import type { ListenerClient } from './listener-client.ts';

export interface OperationContext {
  /** The actor in the audit log: `cli:NAME`, `page` or `token:NAME`. */
  readonly actor: string;
  readonly scope: Scope;
  readonly clock: Clock;
  readonly store: OperatorStore;
  readonly settings: Settings;
  readonly random: (bytes: number) => Buffer;
  /** The runtime status of this process. Null for a command. */
  readonly status: (() => RuntimeStatus) | null;
  /** Publishes an event after the commit. In a command, no subscriber receives the event. */
  readonly publish: PublishOf<'message.accepted' | 'message.suppressed' | 'message.cancelled' | 'message.retried'>;
  warn(code: string, message: string): void;
}

/** The imports of this process. Their batches run one at a time. */
export interface ImportScheduler {
  getMaxBatchRows(): number;
  runBatch<T>(add: () => Promise<T>): Promise<T>;
  isStopping(): boolean;
  runImport<T>(work: () => Promise<T>): Promise<T>;
  /** Ends each import after its current batch. Resolves when all imports have ended. */
  stop(): Promise<void>;
}

export interface ImportContext extends OperationContext {
  readonly imports: ImportScheduler;
}

export interface DoctorContext {
  /** The clock of this machine. Nodes of a shared database use the time of the database. */
  readonly machineClock: MonotonicClock;
  readonly settings: Settings;
  readonly installation: Installation;
  readonly status: (() => RuntimeStatus) | null;
  showProgress(line: string): void;
}

export interface ConfigContext {
  describeSettings(): readonly DescribedSetting[];
}

export interface InboxContext {
  /** Null unless the transport is `capture:`. */
  readonly inbox: Inbox | null;
  /** Splits a message into its MIME entities. At most `maxBytes` bytes of a leaf are decoded. */
  readonly readEntity: (raw: Uint8Array, maxBytes: number) => Entity;
}

export interface PublicListenerContext {
  readonly publicListener: ListenerClient;
}

export interface RouteTestContext {
  /** Opens the next hop for one message. Never rejects. */
  attemptOverRoute(transport: TransportSetting, message: OutgoingMessage): Promise<Attempt>;
}

export type ServiceContext = Omit<ImportContext, 'warn'> &
  DoctorContext &
  ConfigContext &
  InboxContext &
  PublicListenerContext &
  RouteTestContext;

interface OperationAccess extends AccessRule {
  readonly makesChange: boolean;
}

export const reads = (role: Role): OperationAccess => ({ role, makesChange: false, readsContent: false });
export const readsContent = (role: Role): OperationAccess => ({ role, makesChange: false, readsContent: true });
export const changes = (role: Role): OperationAccess => ({ role, makesChange: true, readsContent: false });

interface OperationBase<I extends TObject = TObject> extends OperationAccess {
  /** `noun.verb`, the action in the audit log: `suppression.remove`. */
  readonly name: string;
  /** The `operationId` of the OpenAPI document: `removeSuppression`. */
  readonly id: string;
  /** One line in the imperative, without a full stop. */
  readonly summary: string;
  readonly input: I;
  /** The error codes of `run`, besides `invalid` and `unavailable`, which every operation can return. */
  readonly errors: readonly ErrorCode[];
}

export interface Operation<
  I extends TObject = TObject,
  R extends TSchema = TSchema,
  C extends object = Omit<OperationContext, 'warn'>,
> extends OperationBase<I> {
  readonly result: R;
  run(input: Static<I>, context: C & Pick<OperationContext, 'warn'>): Promise<Result<Static<R>>>;
}

/** An operation on an uploaded file of any size. It reads the whole file before the first change. */
export interface UploadOperation<I extends TObject = TObject, P extends TSchema = TSchema, R extends TSchema = TSchema>
  extends OperationBase<I> {
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

export interface DownloadOperation<I extends TObject = TObject, R extends TArray = TArray> extends OperationBase<I> {
  readonly downloadType: string;
  readonly result: R;
  readonly header: string;
  formatPage(page: Static<R>): string;
  /** Resolves after the first page was read, so an error precedes all output. A later page may reject. */
  run(input: Static<I>, context: OperationContext): Promise<Result<AsyncIterable<Static<R>>>>;
}

export interface FileContent {
  readonly name: string;
  /** Opens the content. Called once, after all other input was validated; its exceptions are not caught. */
  open(): Promise<OpenedFile>;
}

export interface OpenedFile {
  readonly bytes: AsyncIterable<Buffer>;
  /** Reads the first `size` bytes of the file again. Null if the file can be read only once. */
  readonly reread: ((size: number) => AsyncIterable<Buffer>) | null;
  close(): Promise<void>;
}

export interface UploadObserver<P> {
  readonly onRowsRead: (rowCount: number) => void;
  readonly onProgress: (progress: P) => void;
}

type Definition<O extends OperationBase> = Omit<O, 'errors'> & Partial<Pick<O, 'errors'>>;

/** Defines an operation. The types of `run` are inferred from the schemas, `C` from the type of its context. */
export function defineOperation<
  I extends TObject,
  R extends TSchema,
  C extends object = Omit<OperationContext, 'warn'>,
>(definition: Definition<Operation<I, R, C>>): Operation<I, R, C> {
  return { errors: [], ...definition };
}

export function defineUpload<I extends TObject, P extends TSchema, R extends TSchema>(
  definition: UploadOperation<I, P, R>,
): UploadOperation<I, P, R> {
  return definition;
}

export function defineDownload<I extends TObject, R extends TArray>(
  definition: DownloadOperation<I, R>,
): DownloadOperation<I, R> {
  return definition;
}

export type OperationResult<T> = Result<T> & {
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
};

/** `rawInput` contains strings (command line, path, query) or JSON values (body). */
export function perform<I extends TObject, R extends TSchema, C extends object>(
  { input, run }: Operation<I, R, C>,
  rawInput: Readonly<Record<string, unknown>>,
  context: C,
): Promise<OperationResult<Static<R>>> {
  return performWith(input, rawInput, context, (parsedInput, warn) => run(parsedInput, { ...context, warn }));
}

export function performUpload<I extends TObject, P extends TSchema, R extends TSchema>(
  { input, run }: UploadOperation<I, P, R>,
  rawInput: Readonly<Record<string, unknown>>,
  content: FileContent,
  context: Omit<ImportContext, 'warn'>,
  observer: UploadObserver<Static<P>>,
): Promise<OperationResult<Static<R>>> {
  return performWith(input, rawInput, context, (input, warn) => run(input, content, { ...context, warn }, observer));
}

export function performDownload<I extends TObject, R extends TArray>(
  { input, run }: DownloadOperation<I, R>,
  rawInput: Readonly<Record<string, unknown>>,
  context: Omit<OperationContext, 'warn'>,
): Promise<OperationResult<AsyncIterable<Static<R>>>> {
  return performWith(input, rawInput, context, (input, warn) => run(input, { ...context, warn }));
}

async function performWith<I extends TObject, T>(
  input: I,
  rawInput: Readonly<Record<string, unknown>>,
  context: { readonly clock?: Pick<Clock, 'now'> },
  run: (parsedInput: Static<I>, warn: OperationContext['warn']) => Promise<Result<T>>,
): Promise<OperationResult<T>> {
  const warnings: { code: string; message: string }[] = [];
  const parsedInput = readInput(input, rawInput, context.clock?.now());
  if (!parsedInput.ok) return { ...parsedInput, warnings };
  try {
    const result = await run(parsedInput.value, (code, message) => warnings.push({ code, message }));
    return { ...result, warnings };
  } catch (error) {
    switch (error instanceof Error ? error.name : '') {
      // The message of a StoreError is one line that names the remedy.
      case 'StoreError':
        return { ...createUnavailable(describeError(error)), warnings };
      // A setting is invalid, or the secret of the installation is lost or wrong. The message names the remedy, without
      // which a repeated request fails too.
      case 'SettingsError':
      case 'SecretError':
        return { ...createConflict(null, describeError(error)), warnings };
      default:
        throw error;
    }
  }
}
