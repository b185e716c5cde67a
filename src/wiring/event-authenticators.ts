/** Authenticates the events of providers. The secrets can be replaced while the service runs. */
import type { Settings } from '../config/settings.ts';
import type { Authenticate } from '../providers/authentication.ts';
import type { AuthenticationResult, ProviderRequest } from '../providers/event-reader.ts';
import type { EventProviderName } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/providers.ts';

export interface EventAuthenticators {
  authenticate(name: EventProviderName, request: ProviderRequest, now: number): AuthenticationResult;
  /** Returns the current secrets of a provider, in the form in which they were configured. */
  getSecrets(name: EventProviderName): readonly string[];
  /**
   * Replaces the secrets of a provider. Returns null on success, or one line with the reason why a secret is invalid.
   */
  replace(name: EventProviderName, secrets: readonly string[]): string | null;
}

/** Creates the authenticators of all configured providers. The secrets were validated when the settings were loaded. */
export function createEventAuthenticators(secrets: Settings['eventSecrets']): EventAuthenticators {
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
    authenticate(name, request, now) {
      return (
        authenticators.get(name)?.authenticate(request, now) ?? {
          kind: 'refused',
          reason: 'the endpoint has no secret',
        }
      );
    },
    getSecrets: (name) => authenticators.get(name)?.secretTexts ?? [],
    replace: replaceSecrets,
  };
}
