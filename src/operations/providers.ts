import type { Static } from 'typebox';
import {
  checkEvents,
  type EventFacts,
  findLastEventAt,
  getEventsUrl,
  getManualPage,
  getSetupSettings,
  hasEventSettings,
  selectRefusedReports,
  sumRefusedReports,
} from '../checks/feedback.ts';
import type { TransportSetting } from '../config/settings.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../config/units.ts';
import { findTransportProvider } from '../domains/setup.ts';
import type { Provider } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/providers.ts';
import { ok } from './errors.ts';
import { defineOperation, reads } from './operation.ts';
import { Time, Type } from './schemas.ts';

const ProviderEvents = Type.Object({
  isSetUp: Type.Boolean('True if the settings contain a secret, topic or queue for the events.'),
  url: Type.NullableString('The URL to register at the provider; null if POSTRIDER_FEEDBACK_URL is not set.'),
  setting: Type.String('The settings that are required to receive the events.'),
  lastEventAt: Type.Nullable(Time),
  refused: Type.Array(
    Type.Object({
      reason: Type.String('The reason for the refusal, such as `signature`.'),
      count: Type.Integer('The number of requests that all live nodes refused since their start.'),
      lastAt: Time,
    }),
  ),
  result: Type.Enum(['ok', 'warning', 'failure'], 'The finding of `doctor` about the events.'),
  detail: Type.String('The finding in one line.'),
  remedy: Type.NullableString('The remedy, or null.'),
});

export const ProviderEntry = Type.Object({
  name: Type.String('The name of the provider, such as `postmark`.'),
  title: Type.String('The display name.'),
  isRelay: Type.Boolean('True if the transport sends to the relay of this provider.'),
  events: Type.Nullable(ProviderEvents),
  guide: Type.String('The page of the manual with the setup steps.'),
});
export type ProviderEntry = Static<typeof ProviderEntry>;

export const ProviderList = Type.Object({
  transport: Type.Object({
    kind: Type.Enum(['capture', 'ses', 'smtp']),
    host: Type.NullableString('The relay with its port, or the region of Amazon SES; null for `capture:`.'),
    provider: Type.NullableString('The title of the provider whose profile is in use, or null.'),
  }),
  feedbackUrl: Type.NullableString('POSTRIDER_FEEDBACK_URL, or null.'),
  providers: Type.Array(ProviderEntry, 'The supported providers. `events` is null for a provider that is not in use.'),
});
export type ProviderList = Static<typeof ProviderList>;

export const listProviders = defineOperation({
  name: 'provider.list',
  id: 'listProviders',
  summary: 'List the supported providers, with the relay in use and the state of the events',
  ...reads('viewer'),
  input: Type.Object({}),
  result: ProviderList,
  async run(_input, { store, settings, clock, status }) {
    const now = clock.now();
    const [lastFeedback, nodes] = await Promise.all([store.listLastFeedback(), store.listNodes(now)]);
    const facts: EventFacts = { lastFeedback, refusedReports: sumRefusedReports(nodes, status?.() ?? null), now };
    const relayProvider = findTransportProvider(settings.transport);
    const toEvents = (provider: Provider): ProviderEntry['events'] => {
      if (provider !== relayProvider && !hasEventSettings(settings, provider)) return null;
      const { level, text, remedy } = checkEvents(provider, relayProvider, settings, facts);
      return {
        isSetUp: hasEventSettings(settings, provider),
        url: getEventsUrl(settings, provider),
        setting: getSetupSettings(provider),
        lastEventAt: formatIsoTimeOrNull(findLastEventAt(lastFeedback, provider)),
        refused: selectRefusedReports(provider, facts.refusedReports).map((entry) => ({
          ...entry,
          lastAt: formatIsoTime(entry.lastAt),
        })),
        ...{ result: level, detail: text, remedy },
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
