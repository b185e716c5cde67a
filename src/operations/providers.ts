/**
 * The operation on the providers: the profile of the relay in use, and for each provider in use the state of its
 * events.
 */
import type { TransportSetting } from '../config/settings.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../config/units.ts';
import { getManualPage, getSetupSettings, selectRefusedReports, sumRefusedReports } from '../doctor/provider-events.ts';
import { findTransportProvider } from '../domains/setup.ts';
import { Type } from '../model/schema.ts';
import type { Provider } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/providers.ts';
import { ok } from './errors.ts';
import { defineOperation } from './operation.ts';
import { checkEvents, type EventFacts, findLastEventAt, getEventsUrl, hasEventSettings } from './providers/events.ts';
import { type ProviderEntry, ProviderList } from './providers/schemas.ts';

export const listProviders = defineOperation({
  name: 'provider.list',
  id: 'listProviders',
  summary: 'List the supported providers, with the relay in use and the state of the events',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({}),
  result: ProviderList,
  errors: [],
  async run(_input, { store, settings, clock, status }) {
    const now = clock.now();
    const [lastFeedback, nodes] = await Promise.all([store.listLastFeedback(), store.listNodes(now)]);
    const facts: EventFacts = { lastFeedback, refusedReports: sumRefusedReports(nodes, status?.() ?? null), now };
    const relayProvider = findTransportProvider(settings.transport);
    const toEvents = (provider: Provider): ProviderEntry['events'] => {
      if (provider !== relayProvider && !hasEventSettings(settings, provider)) return null;
      const { result, detail, remedy } = checkEvents(provider, relayProvider, settings, facts);
      return {
        isSetUp: hasEventSettings(settings, provider),
        url: getEventsUrl(settings, provider),
        setting: getSetupSettings(provider),
        lastEventAt: formatIsoTimeOrNull(findLastEventAt(lastFeedback, provider)),
        refused: selectRefusedReports(provider, facts.refusedReports).map((entry) => ({
          ...entry,
          lastAt: formatIsoTime(entry.lastAt),
        })),
        ...{ result, detail, remedy },
      };
    };
    return ok({
      transport: { ...describeTransport(settings.transport), provider: relayProvider?.title ?? null },
      feedbackUrl: settings.feedbackUrl,
      providers: PROVIDERS.map((provider) => ({
        name: provider.name,
        title: provider.title,
        isRelay: provider === relayProvider,
        events: toEvents(provider),
        guide: getManualPage(provider),
      })),
    });
  },
});

function describeTransport(transport: TransportSetting): Pick<ProviderList['transport'], 'kind' | 'host'> {
  switch (transport.kind) {
    case 'capture':
      return { kind: 'capture', host: null };
    case 'ses':
      return { kind: 'ses', host: transport.region };
    case 'smtp':
      return { kind: 'smtp', host: `${transport.host}:${transport.port}` };
  }
}
