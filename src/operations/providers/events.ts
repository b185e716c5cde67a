/** Decides which providers are in use, and checks that their events arrive. */
import type { Settings } from '../../config/settings.ts';
import type { Finding } from '../../doctor/finding.ts';
import { checkProviderEvents, getEventsPath } from '../../doctor/provider-events.ts';
import type { LastFeedback } from '../../model/feedback.ts';
import type { RefusedReports } from '../../model/node.ts';
import type { Provider } from '../../providers/provider.ts';

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
