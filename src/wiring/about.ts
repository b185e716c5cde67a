import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import type { EventOf } from '../model/events.ts';
import type { Events } from '../observability/events.ts';
import type { ApiParts } from '../operator/api.ts';

const FIRST_KEY_TTL_MS = 3_600_000;

export interface InstallationInfoParts {
  readonly settings: Pick<Settings, 'transport' | 'operatorPassword'>;
  readonly version: string;
  readonly clock: Clock;
  readonly directory: Pick<ApiKeyCache, 'isValid'>;
  readonly subscribe: Events['subscribe'];
  /** Valid only if the store had no account at the start, because the start stores the key only in this case. */
  readonly firstKey: string | null;
}

export function createInstallationInfo(parts: InstallationInfoParts): ApiParts['getInstallationInfo'] {
  const { settings, version, clock, directory, firstKey } = parts;
  let apiStarted: EventOf<'api.started'> | null = null;
  parts.subscribe({
    'api.started': (event) => {
      apiStarted = event;
    },
  });

  /** For the curl command in the dashboard, during the first hour. */
  function findVisibleFirstKey(started: EventOf<'api.started'> | null): string | null {
    const now = clock.now();
    if (firstKey === null || started === null || now - started.at >= FIRST_KEY_TTL_MS) return null;
    return directory.isValid(firstKey, now) ? firstKey : null;
  }

  return () => ({
    version,
    transport: settings.transport.kind,
    password: settings.operatorPassword !== null,
    publicUrl: apiStarted?.publicUrl ?? null,
    firstKey: findVisibleFirstKey(apiStarted),
  });
}
