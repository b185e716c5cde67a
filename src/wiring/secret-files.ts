/**
 * Watches the files of secret settings (`NAME_FILE`). A changed transport is applied to the next delivery attempts. Every other
 * changed file is reported once, because it takes effect only after a restart.
 *
 * Guarantees: a file that cannot be read, or whose content is not valid, is reported once and changes nothing. A change is applied
 * only if the file did not change between two checks, so a partially written file is never used.
 */
import type { Clock } from '../clock.ts';
import { readSecretFile } from '../config/load.ts';
import type { SecretFile, TransportSetting } from '../config/settings.ts';
import { SETTINGS_TABLE } from '../config/table.ts';
import { watchFile } from '../http/watch-file.ts';

export interface SecretFilesParts {
  readonly files: readonly SecretFile[];
  readonly clock: Clock;
  readonly intervalMs: number;
  /** Applies the new value of the setting. Returns null, or the reason why the change requires a restart. */
  readonly applyTransport: (setting: TransportSetting) => string | null;
  /** Receives one line for the operator. */
  readonly warn: (line: string) => void;
}

/** Starts watching. The returned function stops it. */
export function watchSecretFiles({ files, clock, intervalMs, applyTransport, warn }: SecretFilesParts): () => void {
  const apply = (file: SecretFile): string | null => {
    if (file.name !== SETTINGS_TABLE.transport.name) return 'the file has changed';
    const parsed = SETTINGS_TABLE.transport.parse(readSecretFile(file));
    return parsed.ok ? applyTransport(parsed.value) : parsed.fault;
  };
  const stops = files.map((file) =>
    watchFile([file.path], intervalMs, clock, () => {
      try {
        const reason = apply(file);
        if (reason === null) return;
        warn(`${file.name}_FILE: ${reason}; restart the service to apply it, until then the previous value is used`);
      } catch (error) {
        warn(`${error instanceof Error ? error.message : String(error)}; until then the previous value is used`);
      }
    }),
  );
  return () => {
    for (const stop of stops) stop();
  };
}

/** Returns the reason why a changed transport requires a restart, or null if it can be used at once. */
export function transportRestartReason(current: TransportSetting, next: TransportSetting): string | null {
  if (current.kind !== next.kind) return `the transport changes from ${current.kind} to ${next.kind}`;
  // The file descriptors of the process are divided among the listeners and the transport at the start.
  if (current.kind === 'smtp' && next.kind === 'smtp' && next.connections > current.connections) {
    return `connections= grows from ${current.connections} to ${next.connections}`;
  }
  return null;
}
