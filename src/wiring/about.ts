/** What the dashboard's first page says of the service: where it accepts, and for an hour the key that the start made. */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import type { EventOf } from '../model/events.ts';
import type { Events } from '../observability/events.ts';
import type { ApiParts } from '../operator/api.ts';

/** So long the dashboard shows the key that the start has printed. */
const FIRST_KEY_MS = 3_600_000;

export interface AboutParts {
  readonly settings: Pick<Settings, 'transport' | 'operatorPassword'>;
  readonly version: string;
  readonly clock: Clock;
  readonly directory: Pick<ApiKeyCache, 'isValid'>;
  readonly subscribe: Events['subscribe'];
  /** The raw key that the start stores where there is no account yet; elsewhere it works nowhere. */
  readonly firstKey: string;
}

/** Learns of the public listener by its event. */
export function aboutService(parts: AboutParts): ApiParts['about'] {
  const { settings, version, clock, directory, firstKey } = parts;
  let api: EventOf<'api.started'> | null = null;
  parts.subscribe({
    'api.started': (event) => {
      api = event;
    },
  });

  /** For the page's own curl line: not for ever, and not once it works no more. */
  function shownKey(started: EventOf<'api.started'> | null): string | null {
    const now = clock.now();
    if (started === null || now - started.at >= FIRST_KEY_MS) return null;
    return directory.isValid(firstKey, now) ? firstKey : null;
  }

  return () => ({
    version,
    transport: settings.transport.kind,
    password: settings.operatorPassword !== null,
    publicUrl: api?.publicUrl ?? null,
    firstKey: shownKey(api),
  });
}
