/**
 * Checks that this service receives the events of the providers that it uses: of the provider whose relay sends the
 * messages, and of each provider whose events are set up.
 */
import {
  BROKEN_HTTP_REASON,
  formatUnmatchedReason,
  type NodeStatus,
  type RefusedReports,
  type RuntimeStatus,
  UNKNOWN_PATH_REASON,
} from '../model/node.ts';
import { formatSpan } from '../printing/text.ts';
import type { Provider } from '../providers/provider.ts';
import { createOkFinding, createWarning, type Finding } from './finding.ts';

export interface ProviderEventsParts {
  readonly provider: Pick<Provider, 'name' | 'title' | 'relay'>;
  /** True if the transport uses the relay of this provider. */
  readonly isRelay: boolean;
  /** True if the settings of this process contain a secret, topic or queue for the events of the provider. */
  readonly isSetUp: boolean;
  /** True if this process receives events. Otherwise another node may receive them, with settings of its own. */
  readonly hasFeedbackRole: boolean;
  /** POSTRIDER_FEEDBACK_URL, or null. */
  readonly feedbackUrl: string | null;
  /** The time of the last event about a message of this installation, or null. */
  readonly lastEventAt: number | null;
  /** The refused requests, and the events that match no message, since the start of each node (`sumRefusedReports`). */
  readonly refusedReports: readonly RefusedReports[];
  readonly now: number;
}

/** The suffix of the reasons that `formatUnmatchedReason` returns. */
const UNMATCHED_SUFFIX = formatUnmatchedReason('');

/**
 * Returns, for each reason, the number of reports and requests that the live nodes refused, and the time of the last
 * refusal. `ownStatus` is the current status of this process, and replaces the older entry of this node in `nodes`.
 * `ownStatus` is null if the process is a command.
 */
export function sumRefusedReports(
  nodes: readonly Pick<NodeStatus, 'name' | 'isAlive' | 'refusedReports'>[],
  ownStatus: Pick<RuntimeStatus, 'node' | 'refusedReports'> | null,
): readonly RefusedReports[] {
  const otherNodes = nodes.filter(({ name, isAlive }) => isAlive && name !== ownStatus?.node);
  const sums = new Map<string, RefusedReports>();
  for (const { refusedReports } of ownStatus === null ? otherNodes : [ownStatus, ...otherNodes])
    for (const { reason, count, lastAt } of refusedReports) {
      const sum = sums.get(reason) ?? { count: 0, lastAt };
      sums.set(reason, { reason, count: sum.count + count, lastAt: Math.max(sum.lastAt, lastAt) });
    }
  return [...sums.values()];
}

export function checkProviderEvents(parts: ProviderEventsParts): Finding {
  const { provider, isRelay, isSetUp, hasFeedbackRole, feedbackUrl, lastEventAt, now } = parts;
  const { name, title, relay } = provider;
  const check = `events ${name}`;
  const lastEventText =
    lastEventAt === null
      ? `no event of ${title} is recorded`
      : `the last event of ${title} was recorded ${formatSpan(Math.max(0, now - lastEventAt))} ago`;
  if (!isSetUp) {
    if (isRelay && relay?.keepsEnvelopeSender === true)
      return createOkFinding(check, `not needed: the relay of ${title} does not change the envelope sender`);
    if (!hasFeedbackRole && lastEventAt !== null) return createOkFinding(check, `${lastEventText}, by another node`);
    const cause =
      relay?.keepsEnvelopeSender === false ? 'replaces the envelope sender' : 'may replace the envelope sender';
    return createWarning(
      check,
      `asynchronous bounces and complaints are not received: the relay of ${title} ${cause}, and its events are not set up`,
      createSetupRemedy(provider),
    );
  }
  const endpoint = `${feedbackUrl ?? 'POSTRIDER_FEEDBACK_URL'}${getEventsPath(provider)}`;
  const refusals = describeRefusals(parts);
  const unmatchedText = describeUnmatched(parts);
  const detail = [
    lastEventText,
    unmatchedText,
    refusals?.text ?? null,
    describeUnknownPaths(parts),
    describeBrokenHttp(parts),
  ]
    .filter((text) => text !== null)
    .join('; ');
  if (refusals?.isLatest === true)
    return createWarning(check, detail, createRefusalRemedy(provider, refusals.lastReason));
  if (feedbackUrl === null && name !== 'ses')
    return createWarning(
      check,
      `${detail}; the URL to register is unknown`,
      `set POSTRIDER_FEEDBACK_URL to the public URL of POSTRIDER_FEEDBACK_HTTP_LISTEN, and register ${endpoint} at ${title}`,
    );
  if (lastEventAt === null && unmatchedText !== null)
    return createWarning(
      check,
      detail,
      `send a message through the account of ${title} whose events reach this service (${getManualPage(provider)}); the received events may be those of another program that uses this account`,
    );
  if (lastEventAt === null)
    return createWarning(
      check,
      detail,
      name === 'ses'
        ? `subscribe this service to the topic of ${title} (${getManualPage(provider)}), and send a message`
        : `register ${endpoint} at ${title} (${getManualPage(provider)}), and send a message`,
    );
  return createOkFinding(check, name === 'ses' ? detail : `${detail}; the URL to register is ${endpoint}`);
}

/** Returns the URL path to which a provider sends its events. */
export function getEventsPath({ name }: Pick<Provider, 'name'>): string {
  return name === 'ses' ? '/ses' : `/events/${name}`;
}

/** Returns the page of the manual that shows how to set up the events of a provider. */
export function getManualPage({ name }: Pick<Provider, 'name'>): string {
  return `docs/providers/${name}.md`;
}

/** Returns the remedy for a provider whose events are not set up. */
export function createSetupRemedy(provider: Pick<Provider, 'name'>): string {
  return `set ${getSetupSettings(provider)} (${getManualPage(provider)})`;
}

/** Returns the names of the settings that set up the events of a provider. */
export function getSetupSettings({ name }: Pick<Provider, 'name'>): string {
  return name === 'ses'
    ? 'POSTRIDER_SES_QUEUE, or POSTRIDER_FEEDBACK_HTTP_LISTEN and POSTRIDER_SES_TOPICS'
    : `POSTRIDER_FEEDBACK_HTTP_LISTEN, POSTRIDER_FEEDBACK_URL and POSTRIDER_EVENTS_${name.toUpperCase()}`;
}

/** `reason` is the reason for the last refusal, without the name of the provider. */
function createRefusalRemedy({ name, title }: Pick<Provider, 'name' | 'title'>, reason: string): string {
  return name === 'ses' || reason !== 'unauthenticated'
    ? 'see postrider_feedback_refused_total and docs/troubleshooting.md'
    : `compare POSTRIDER_EVENTS_${name.toUpperCase()} with the secret at ${title} (docs/troubleshooting.md)`;
}

/** Selects the refused requests of a provider. The returned reasons do not contain the name of the provider. */
export function selectRefusedReports(
  { name }: Pick<Provider, 'name'>,
  refusedReports: readonly RefusedReports[],
): readonly RefusedReports[] {
  const prefix = name === 'ses' ? 'sns-' : `${name}-`;
  return refusedReports.flatMap(({ reason, ...entry }) =>
    reason.startsWith(prefix) && !reason.endsWith(UNMATCHED_SUFFIX)
      ? [{ ...entry, reason: reason.slice(prefix.length) }]
      : [],
  );
}

/**
 * Returns, as text, the refused requests of the provider, or null if there are none. `isLatest` is true if no event was
 * recorded after the last refusal.
 */
function describeRefusals({
  provider,
  refusedReports,
  lastEventAt,
}: ProviderEventsParts): { readonly text: string; readonly isLatest: boolean; readonly lastReason: string } | null {
  const providerRefusals = selectRefusedReports(provider, refusedReports);
  if (providerRefusals.length === 0) return null;
  const count = providerRefusals.reduce((sum, entry) => sum + entry.count, 0);
  const reasons = providerRefusals.map((entry) => `${entry.reason} ${entry.count}`).join(', ');
  const countText = count === 1 ? 'one request was' : `${count} requests were`;
  const lastRefusal = providerRefusals.reduce((latest, entry) => (entry.lastAt > latest.lastAt ? entry : latest));
  return {
    text: `${countText} refused since the start of the nodes (${reasons})`,
    isLatest: lastEventAt === null || lastRefusal.lastAt > lastEventAt,
    lastReason: lastRefusal.reason,
  };
}

/** Returns, as text, the events that matched no message. Null if there are none. */
function describeUnmatched({ provider, refusedReports }: ProviderEventsParts): string | null {
  const sources = provider.name === 'ses' ? ['sns', 'sqs'] : [provider.name];
  const reasons = sources.map(formatUnmatchedReason);
  const count = refusedReports
    .filter(({ reason }) => reasons.includes(reason))
    .reduce((sum, entry) => sum + entry.count, 0);
  if (count === 0) return null;
  return `${count === 1 ? 'one event' : `${count} events`} without a message of this installation to the same recipient since the start of the nodes`;
}

/**
 * Describes the requests to paths below `/events` that received the response 404. The requests may be for any provider.
 * Returns null if there are none.
 */
function describeUnknownPaths({ provider, refusedReports }: ProviderEventsParts): string | null {
  const count = refusedReports.find(({ reason }) => reason === UNKNOWN_PATH_REASON)?.count ?? 0;
  if (provider.name === 'ses' || count === 0) return null;
  return `${count === 1 ? 'one request' : `${count} requests`} below /events received the response 404 since the start of the nodes`;
}

/**
 * Describes the requests that were too slow or not valid HTTP. The requests may be for any provider. Returns null if
 * there are none.
 */
function describeBrokenHttp({ provider, refusedReports }: ProviderEventsParts): string | null {
  const count = refusedReports.find(({ reason }) => reason === BROKEN_HTTP_REASON)?.count ?? 0;
  if (provider.name === 'ses' || count === 0) return null;
  const countText = count === 1 ? 'one request was' : `${count} requests were`;
  return `${countText} not valid HTTP or too slow since the start of the nodes`;
}
