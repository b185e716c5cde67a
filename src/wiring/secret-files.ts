/**
 * A file that cannot be read or is not valid is reported once and changes nothing. A change of any other setting than
 * the secrets is only reported, because it takes effect after a restart.
 */
import type { Clock } from '../clock.ts';
import { findRouteOfSetting, readSecretFile } from '../config/load.ts';
import type { SecretFile, Settings, TransportSetting } from '../config/settings.ts';
import { EVENT_SECRET_SPECS, ROUTE_SPEC, SETTINGS_TABLE } from '../config/table.ts';
import { watchFiles } from '../http/tls.ts';
import { DEFAULT_ROUTE } from '../model/route.ts';
import { getErrorText } from '../printing/text.ts';
import type { Authenticate } from '../providers/authentication.ts';
import type { AuthenticationResult, ProviderRequest } from '../providers/event-reader.ts';
import type { EventProviderName } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/providers.ts';

export interface SecretFilesParts {
  readonly files: readonly SecretFile[];
  readonly clock: Clock;
  readonly intervalMs: number;
  /** Returns null, or the reason why the change requires a restart. It applies to the next attempts. */
  readonly applyTransport: (route: string, setting: TransportSetting) => string | null;
  /** Returns null, or the reason why they are not valid. */
  readonly applyEventSecrets: (provider: EventProviderName, secrets: readonly string[]) => string | null;
  readonly applyNotifySecrets: (secrets: readonly string[]) => void;
  /** Null after a change that is applied. */
  readonly recordRouteFault: (route: string, fault: string | null) => void;
  readonly warn: (line: string) => void;
}

export function watchSecretFiles(parts: SecretFilesParts): () => void {
  const { files, clock, intervalMs, warn } = parts;
  const stopFunctions = files.map((file) =>
    watchFiles([file.path], intervalMs, clock, () => {
      const fault = applyChange(file, parts);
      const route = findRouteOfSetting(file.name);
      if (route !== null) parts.recordRouteFault(route, fault);
      if (fault !== null) warn(`${fault}; until then the previous value is used`);
    }),
  );
  return () => {
    for (const stop of stopFunctions) stop();
  };
}

const RESTART = 'restart the service to apply it';

function applyChange(
  file: SecretFile,
  { applyTransport, applyEventSecrets, applyNotifySecrets }: SecretFilesParts,
): string | null {
  const variable = `${file.name}_FILE`;
  const { notifySecrets, transport } = SETTINGS_TABLE;
  const describe = (fault: string | null, remedy = 'correct the file') =>
    fault === null ? null : `${variable}: ${fault}; ${remedy}`;
  try {
    const eventSpec = Object.entries(EVENT_SECRET_SPECS).find(([, spec]) => spec.name === file.name);
    if (eventSpec !== undefined) {
      const [provider, spec] = eventSpec;
      const parsed = spec.parse(readSecretFile(file));
      return describe(parsed.ok ? applyEventSecrets(provider as EventProviderName, parsed.value) : parsed.fault);
    }
    if (file.name === notifySecrets.name) {
      const parsed = notifySecrets.parse(readSecretFile(file));
      if (parsed.ok) applyNotifySecrets(parsed.value);
      return describe(parsed.ok ? null : parsed.fault);
    }
    const route = findRouteOfSetting(file.name);
    if (route === null) return describe('the file has changed', RESTART);
    const parsed = (route === DEFAULT_ROUTE ? transport : ROUTE_SPEC).parse(readSecretFile(file));
    return parsed.ok ? describe(applyTransport(route, parsed.value), RESTART) : describe(parsed.fault);
  } catch (error) {
    return getErrorText(error);
  }
}

export type EventAuthenticators = ReturnType<typeof createEventAuthenticators>;

/** The secrets were validated when the settings were loaded. */
export function createEventAuthenticators(secrets: Settings['eventSecrets']) {
  const authenticators = new Map<
    EventProviderName,
    { readonly secretTexts: readonly string[]; readonly authenticate: Authenticate }
  >();
  const replaceSecrets = (name: EventProviderName, secretTexts: readonly string[]): string | null => {
    const eventFormat = PROVIDERS.find((provider) => provider.name === name)?.events ?? null;
    if (eventFormat === null) return `the provider ${name} has no events`;
    const createdAuthenticator = eventFormat.createAuthenticator(secretTexts);
    if (!createdAuthenticator.ok) return createdAuthenticator.fault;
    authenticators.set(name, { secretTexts, authenticate: createdAuthenticator.secret });
    return null;
  };
  for (const { name } of PROVIDERS) {
    const secretTexts = name === 'ses' ? undefined : secrets[name];
    if (name !== 'ses' && secretTexts !== undefined) replaceSecrets(name, secretTexts);
  }
  return {
    authenticate(name: EventProviderName, request: ProviderRequest, now: number): AuthenticationResult {
      const authenticate = authenticators.get(name)?.authenticate;
      return authenticate?.(request, now) ?? { kind: 'refused', reason: 'the endpoint has no secret' };
    },
    /** In the form in which they were configured. */
    getSecrets: (name: EventProviderName) => authenticators.get(name)?.secretTexts ?? [],
    replace: replaceSecrets,
  };
}
