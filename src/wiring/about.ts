/**
 * The information about the service that the dashboard shows: the URL of the public listener and, for one hour, the
 * first API key.
 */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import type { EventOf } from '../model/events.ts';
import type { Events } from '../observability/events.ts';
import type { ApiParts } from '../operator/api.ts';

/** The time after the start for which the dashboard shows the first API key. */
const FIRST_KEY_TTL_MS = 3_600_000;

export interface InstallationInfoParts {
  readonly settings: Pick<Settings, 'transport' | 'operatorPassword'>;
  readonly version: string;
  readonly clock: Clock;
  readonly directory: Pick<ApiKeyCache, 'isValid'>;
  readonly subscribe: Events['subscribe'];
  /**
   * The raw API key of the first account, or null for no key. The key is valid only if the store had no account at the
   * start, because the start stores the key only in this case.
   */
  readonly firstKey: string | null;
}

/**
 * Creates the function that returns the information about the service. The event `api.started` contains the URL of the
 * public listener.
 */
export function createInstallationInfo(parts: InstallationInfoParts): ApiParts['getInstallationInfo'] {
  const { settings, version, clock, directory, firstKey } = parts;
  let apiStarted: EventOf<'api.started'> | null = null;
  parts.subscribe({
    'api.started': (event) => {
      apiStarted = event;
    },
  });

  /**
   * Returns the key for the curl command in the dashboard. Returns null if the key is not valid, or if the start was
   * more than one hour ago.
   */
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
