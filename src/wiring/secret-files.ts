/**
 * Watches the files of secret settings (`NAME_FILE`). A changed transport is applied to the next delivery attempts,
 * changed secrets of a provider's events to the next request, and changed secrets of notifications to the next attempt.
 * A change of the file of any other setting is reported, because it takes effect only after a restart.
 *
 * Guarantees: each change of a file is reported at most once. A file that cannot be read, or whose content is not
 * valid, is reported and changes no setting. A change is applied only if the next check finds no further change, so
 * that a file is not read while it is being written.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../clock.ts';
import { readSecretFile } from '../config/load.ts';
import type { SecretFile, TransportSetting } from '../config/settings.ts';
import { EVENT_SECRET_SPECS, SETTINGS_TABLE } from '../config/table.ts';
import { watchFiles } from '../http/tls.ts';
import type { EventProviderName } from '../providers/provider.ts';

export interface SecretFilesParts {
  readonly files: readonly SecretFile[];
  readonly clock: Clock;
  readonly intervalMs: number;
  /** Applies a new transport setting. Returns null, or the reason why the change requires a restart. */
  readonly applyTransport: (setting: TransportSetting) => string | null;
  /** Applies new secrets of a provider's events. Returns null, or the reason why they are not valid. */
  readonly applyEventSecrets: (provider: EventProviderName, secrets: readonly string[]) => string | null;
  /** Replaces the secrets that sign the notifications to operators. */
  readonly applyNotifySecrets: (secrets: readonly string[]) => void;
  /** Called with one line for the operator. */
  readonly warn: (line: string) => void;
}

/** Starts to watch the files. The returned function stops watching. */
export function watchSecretFiles(parts: SecretFilesParts): () => void {
  const { files, clock, intervalMs, warn } = parts;
  const stopFunctions = files.map((file) =>
    watchFiles([file.path], intervalMs, clock, () => {
      const fault = applyChange(file, parts);
      if (fault !== null) warn(`${fault}; until then the previous value is used`);
    }),
  );
  return () => {
    for (const stop of stopFunctions) stop();
  };
}

/** Applies the changed content of a file. Returns null, or one line with the problem and the remedy. */
function applyChange(
  file: SecretFile,
  { applyTransport, applyEventSecrets, applyNotifySecrets }: SecretFilesParts,
): string | null {
  const variable = `${file.name}_FILE`;
  try {
    for (const [provider, spec] of Object.entries(EVENT_SECRET_SPECS)) {
      if (spec.name !== file.name) continue;
      const parsedSetting = spec.parse(readSecretFile(file));
      const fault = parsedSetting.ok
        ? applyEventSecrets(provider as EventProviderName, parsedSetting.value)
        : parsedSetting.fault;
      return fault === null ? null : `${variable}: ${fault}; correct the file`;
    }
    if (file.name === SETTINGS_TABLE.notifySecrets.name) {
      const parsedSetting = SETTINGS_TABLE.notifySecrets.parse(readSecretFile(file));
      if (!parsedSetting.ok) return `${variable}: ${parsedSetting.fault}; correct the file`;
      applyNotifySecrets(parsedSetting.value);
      return null;
    }
    if (file.name !== SETTINGS_TABLE.transport.name)
      return `${variable}: the file has changed; restart the service to apply it`;
    const parsedSetting = SETTINGS_TABLE.transport.parse(readSecretFile(file));
    if (!parsedSetting.ok) return `${variable}: ${parsedSetting.fault}; correct the file`;
    const reason = applyTransport(parsedSetting.value);
    return reason === null ? null : `${variable}: ${reason}; restart the service to apply it`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Returns the reason why a changed transport requires a restart, or null if it can be used at once. */
export function findRestartReason(current: TransportSetting, next: TransportSetting): string | null {
  if (current.kind !== next.kind) return `the transport changes from ${current.kind} to ${next.kind}`;
  // The header fields for the provider and the fields that are signed are determined at the start.
  if (current.kind === 'smtp' && next.kind === 'smtp' && !isSameProvider(current, next)) {
    return 'the provider of the relay, or a parameter that only this provider accepts, changes';
  }
  // The file descriptors of the process are divided among the listeners and the transport at the start.
  if (current.kind === 'smtp' && next.kind === 'smtp' && next.connections > current.connections) {
    return `connections= grows from ${current.connections} to ${next.connections}`;
  }
  return null;
}

type SmtpSetting = Extract<TransportSetting, { kind: 'smtp' }>;

function isSameProvider(one: SmtpSetting, other: SmtpSetting): boolean {
  return one.provider === other.provider && isDeepStrictEqual(one.relayParameters, other.relayParameters);
}
