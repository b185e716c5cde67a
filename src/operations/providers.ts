/** The operation on the providers, and the state of the events of each provider in use. */
import type { Static } from 'typebox';
import type { Settings, TransportSetting } from '../config/settings.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../config/units.ts';
import type { Finding } from '../doctor/finding.ts';
import {
  checkProviderEvents,
  getEventsPath,
  getManualPage,
  getSetupSettings,
  selectRefusedReports,
  sumRefusedReports,
} from '../doctor/provider-events.ts';
import { findTransportProvider } from '../domains/setup.ts';
import type { LastFeedback } from '../model/feedback.ts';
import type { RefusedReports } from '../model/node.ts';
import { Type } from '../model/schema.ts';
import type { Provider } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/providers.ts';
import { ok } from './errors.ts';
import { defineOperation, reads } from './operation.ts';
import { createNullable, createStringEnum, Time } from './schemas.ts';

const ProviderEvents = Type.Object({
  isSetUp: Type.Boolean({ description: 'True if the settings contain a secret, topic or queue for the events.' }),
  url: createNullable(
    Type.String({ description: 'The URL to register at the provider; null if POSTRIDER_FEEDBACK_URL is not set.' }),
  ),
  setting: Type.String({ description: 'The settings that are required to receive the events.' }),
  lastEventAt: createNullable(Time),
  refused: Type.Array(
    Type.Object({
      reason: Type.String({ description: 'The reason for the refusal, such as `signature`.' }),
      count: Type.Integer({ description: 'The number of requests that all live nodes refused since their start.' }),
      lastAt: Time,
    }),
  ),
  result: createStringEnum(['ok', 'warning', 'failure'], { description: 'The finding of `doctor` about the events.' }),
  detail: Type.String({ description: 'The finding in one line.' }),
  remedy: createNullable(Type.String({ description: 'The remedy, or null.' })),
});

export const ProviderEntry = Type.Object({
  name: Type.String({ description: 'The name of the provider, such as `postmark`.' }),
  title: Type.String({ description: 'The display name.' }),
  isRelay: Type.Boolean({ description: 'True if the transport sends to the relay of this provider.' }),
  events: createNullable(ProviderEvents),
  guide: Type.String({ description: 'The page of the manual with the setup steps.' }),
});
export type ProviderEntry = Static<typeof ProviderEntry>;

export const ProviderList = Type.Object({
  transport: Type.Object({
    kind: createStringEnum(['capture', 'ses', 'smtp']),
    host: createNullable(
      Type.String({ description: 'The relay with its port, or the region of Amazon SES; null for `capture:`.' }),
    ),
    provider: createNullable(
      Type.String({ description: 'The title of the provider whose profile is in use, or null.' }),
    ),
  }),
  feedbackUrl: createNullable(Type.String({ description: 'POSTRIDER_FEEDBACK_URL, or null.' })),
  providers: Type.Array(ProviderEntry, {
    description: 'The supported providers. `events` is null for a provider that is not in use.',
  }),
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

/** The facts about received events. */
export interface EventFacts {
  readonly lastFeedback: readonly LastFeedback[];
  /** The feedback reports and provider-event requests that the nodes refused since their start. */
  readonly refusedReports: readonly RefusedReports[];
  readonly now: number;
}

/**
 * Checks that the events of a provider arrive. `relayProvider` is the provider to which the transport sends, or null.
 */
export function checkEvents(
  provider: Provider,
  relayProvider: Provider | null,
  settings: Settings,
  { lastFeedback, refusedReports, now }: EventFacts,
): Finding {
  return checkProviderEvents({
    provider,
    isRelay: provider === relayProvider,
    isSetUp: hasEventSettings(settings, provider),
    hasFeedbackRole: settings.roles.has('feedback'),
    feedbackUrl: settings.feedbackUrl,
    lastEventAt: findLastEventAt(lastFeedback, provider),
    refusedReports,
    now,
  });
}

/** Returns true if the settings contain a source of the provider's events. */
export function hasEventSettings({ eventSecrets, sesTopics, sesQueue }: Settings, { name }: Provider): boolean {
  return name === 'ses' ? sesTopics.length > 0 || sesQueue !== null : eventSecrets[name] !== undefined;
}

/** Returns the time of the last event of a provider about a message of this installation, or null. */
export function findLastEventAt(lastFeedback: readonly LastFeedback[], { name }: Provider): number | null {
  const sources: readonly string[] = name === 'ses' ? ['sns', 'sqs'] : [name];
  const eventTimes = lastFeedback.flatMap(({ source, at }) => (sources.includes(source) ? [at] : []));
  return eventTimes.length === 0 ? null : Math.max(...eventTimes);
}

/** Returns the URL to register at the provider, or null if it is not known. */
export function getEventsUrl({ feedbackUrl }: Pick<Settings, 'feedbackUrl'>, provider: Provider): string | null {
  return feedbackUrl === null ? null : `${feedbackUrl}${getEventsPath(provider)}`;
}
