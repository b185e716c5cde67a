/** What every operation is given. Nothing is opened here: adapters hand in what they have. */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { Store } from '../store/contract.ts';

export interface OperationContext {
  /** Who asks, as the audit log names them: `cli:NAME`, `page` or `token:NAME`. */
  readonly actor: string;
  readonly clock: Clock;
  /** Writes an audit log entry with every change. */
  readonly store: Store;
  readonly settings: Settings;
  /** A cryptographic source of so many bytes, for keys and tokens. */
  readonly random: (bytes: number) => Buffer;
  /** Adds a warning to the result. `code` is stable, `message` one sentence. */
  warn(code: string, message: string): void;
}
