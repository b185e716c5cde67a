import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { findTransportProvider } from '../domains/setup.ts';
import { getLoopRecipient } from '../message/return-path.ts';
import { MAX_OVERVIEW_ITEMS } from '../model/attention.ts';
import type { LastFeedback } from '../model/feedback.ts';
import type { StoredMessage } from '../model/message.ts';
import {
  BROKEN_HTTP_REASON,
  formatUnmatchedReason,
  type NodeStatus,
  type RefusedReports,
  type RuntimeStatus,
  UNKNOWN_PATH_REASON,
} from '../model/node.ts';
import { formatSpan, getErrorText, toSentence } from '../printing/text.ts';
import type { Provider } from '../providers/provider.ts';
import {
  type Check,
  type Finding,
  hasFeedbackSource,
  report,
  reportHealth,
  reportStep,
  type SetupFacts,
  type Step,
} from './facts.ts';

export const feedback: Check = {
  problems({ store: { notUnderstoodCount }, settings }) {
    if (notUnderstoodCount === 0 || !hasFeedbackSource(settings)) return [];
    const count = notUnderstoodCount < MAX_OVERVIEW_ITEMS ? notUnderstoodCount : `${MAX_OVERVIEW_ITEMS} or more`;
    const [noun, verb] = notUnderstoodCount === 1 ? ['report', 'was'] : ['reports', 'were'];
    return [
      report('reports-not-understood', null, '/feedback').warning(
        `${count} ${noun} of the last 24 h ${verb} not understood`,
        'Read the reports with `postrider feedback list` and `postrider feedback show ID`',
      ),
    ];
  },
  health({ settings, lastFeedbackAt, now }) {
    if (!hasFeedbackSource(settings)) return null;
    const text =
      lastFeedbackAt === null ? 'no report received yet' : `last report ${formatSpan(now - lastFeedbackAt)} ago`;
    return reportHealth('feedback', 'ok', text);
  },
  steps: (facts) => [createFeedbackStep(facts)],
};

function createFeedbackStep({ settings, lastFeedback, nodes, status, now }: SetupFacts): Step {
  const title = 'Receive bounces and complaints';
  const { done, notNeeded, open } = reportStep('feedback', title, '/providers');
  if (settings.transport.kind === 'capture')
    return notNeeded('The transport `capture:` sends no message, so no message bounces later.');
  const provider = findTransportProvider(settings.transport);
  // If the events fail later, `doctor` reports the failure, and this step remains done.
  if (provider !== null && findLastEventAt(lastFeedback, provider) !== null)
    return done(`An event of ${provider.title} has been received.`);
  if (provider !== null && (provider.relay?.keepsEnvelopeSender !== true || hasEventSettings(settings, provider))) {
    const facts = { lastFeedback, refusedReports: sumRefusedReports(nodes, status), now };
    const { text, remedy } = checkEvents(provider, provider, settings, facts);
    const action = remedy === null ? null : toSentence(capitalizeText(remedy));
    return open(toSentence(capitalizeText(text)), action, 'postrider provider list');
  }
  if (settings.feedbackListen !== null)
    return done('POSTRIDER_FEEDBACK_LISTEN is set, and bounces return to this service.');
  if (lastFeedback.some(({ source }) => source === 'smtp')) return done('Reports arrive by SMTP at another node.');
  return reportStep('feedback', title, '/feedback').open(
    'POSTRIDER_FEEDBACK_LISTEN is not set, so bounces and complaints that arrive later are lost.',
    'Set POSTRIDER_FEEDBACK_LISTEN and POSTRIDER_RETURN_PATH_DOMAIN (docs/feedback.md), then restart the service.',
    'postrider doctor',
  );
}

function capitalizeText(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

export interface EventFacts {
  readonly lastFeedback: readonly LastFeedback[];
  readonly refusedReports: readonly RefusedReports[];
  readonly now: number;
}

/** By reason, over the live nodes. `ownStatus` replaces the older entry of this node in `nodes`. */
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

export function hasEventSettings({ eventSecrets, sesTopics, sesQueue }: Settings, { name }: Provider): boolean {
  return name === 'ses' ? sesTopics.length > 0 || sesQueue !== null : eventSecrets[name] !== undefined;
}

export function findLastEventAt(lastFeedback: readonly LastFeedback[], { name }: Provider): number | null {
  const sources = listSources(name);
  const eventTimes = lastFeedback.flatMap(({ source, at }) => (sources.includes(source) ? [at] : []));
  return eventTimes.length === 0 ? null : Math.max(...eventTimes);
}

function listSources(name: Provider['name']): readonly string[] {
  return name === 'ses' ? ['sns', 'sqs'] : [name];
}

export function getEventsUrl({ feedbackUrl }: Pick<Settings, 'feedbackUrl'>, { name }: Provider): string | null {
  return feedbackUrl === null ? null : `${feedbackUrl}${getEventsPath(name)}`;
}

function getEventsPath(name: Provider['name']): string {
  return name === 'ses' ? '/ses' : `/events/${name}`;
}

export function getManualPage({ name }: Pick<Provider, 'name'>): string {
  return `docs/providers/${name}.md`;
}

export function createSetupRemedy(provider: Pick<Provider, 'name'>): string {
  return `set ${getSetupSettings(provider)} (${getManualPage(provider)})`;
}

export function getSetupSettings({ name }: Pick<Provider, 'name'>): string {
  return name === 'ses'
    ? 'POSTRIDER_SES_QUEUE, or POSTRIDER_FEEDBACK_HTTP_LISTEN and POSTRIDER_SES_TOPICS'
    : `POSTRIDER_FEEDBACK_HTTP_LISTEN, POSTRIDER_FEEDBACK_URL and POSTRIDER_EVENTS_${name.toUpperCase()}`;
}

export function checkEvents(
  provider: Provider,
  relayProvider: Provider | null,
  settings: Settings,
  facts: EventFacts,
): Finding {
  const { name, title, relay } = provider;
  const { feedbackUrl } = settings;
  const { ok, warning } = report('events', name);
  const lastEventAt = findLastEventAt(facts.lastFeedback, provider);
  const lastEventText =
    lastEventAt === null
      ? `no event of ${title} is recorded`
      : `the last event of ${title} was recorded ${formatSpan(Math.max(0, facts.now - lastEventAt))} ago`;
  if (!hasEventSettings(settings, provider)) {
    if (provider === relayProvider && relay?.keepsEnvelopeSender === true)
      return ok(`not needed: the relay of ${title} does not change the envelope sender`);
    // Another node may receive the events, with settings of its own.
    if (!settings.roles.has('feedback') && lastEventAt !== null) return ok(`${lastEventText}, by another node`);
    const cause = relay?.keepsEnvelopeSender === false ? 'replaces' : 'may replace';
    return warning(
      `asynchronous bounces and complaints are not received: the relay of ${title} ${cause} the envelope sender, and its events are not set up`,
      createSetupRemedy(provider),
    );
  }
  const endpoint = `${feedbackUrl ?? 'POSTRIDER_FEEDBACK_URL'}${getEventsPath(name)}`;
  const refusals = selectRefusedReports(provider, facts.refusedReports);
  const unmatched = describeUnmatched(name, facts.refusedReports);
  const texts = [lastEventText, unmatched, describeRefusals(refusals), ...describeForeign(name, facts.refusedReports)];
  const text = texts.filter((part) => part !== null).join('; ');
  const lastRefusal = refusals.toSorted((a, b) => b.lastAt - a.lastAt)[0];
  if (lastRefusal !== undefined && (lastEventAt === null || lastRefusal.lastAt > lastEventAt))
    return warning(
      text,
      name === 'ses' || lastRefusal.reason !== 'unauthenticated'
        ? 'see postrider_feedback_refused_total and docs/troubleshooting.md'
        : `compare POSTRIDER_EVENTS_${name.toUpperCase()} with the secret at ${title} (docs/troubleshooting.md)`,
    );
  if (feedbackUrl === null && name !== 'ses')
    return warning(
      `${text}; the URL to register is unknown`,
      `set POSTRIDER_FEEDBACK_URL to the public URL of POSTRIDER_FEEDBACK_HTTP_LISTEN, and register ${endpoint} at ${title}`,
    );
  const manual = getManualPage(provider);
  if (lastEventAt === null && unmatched !== null)
    return warning(
      text,
      `send a message through the account of ${title} whose events reach this service (${manual}); the received events may be those of another program that uses this account`,
    );
  if (lastEventAt === null) {
    const setup =
      name === 'ses' ? `subscribe this service to the topic of ${title}` : `register ${endpoint} at ${title}`;
    return warning(text, `${setup} (${manual}), and send a message`);
  }
  return ok(name === 'ses' ? text : `${text}; the URL to register is ${endpoint}`);
}

/** Selects the refused requests of a provider. The returned reasons do not contain the name of the provider. */
export function selectRefusedReports(
  { name }: Pick<Provider, 'name'>,
  refusedReports: readonly RefusedReports[],
): readonly RefusedReports[] {
  const prefix = name === 'ses' ? 'sns-' : `${name}-`;
  const unmatchedSuffix = formatUnmatchedReason('');
  return refusedReports
    .filter(({ reason }) => reason.startsWith(prefix) && !reason.endsWith(unmatchedSuffix))
    .map(({ reason, ...entry }) => ({ ...entry, reason: reason.slice(prefix.length) }));
}

function sumCounts(reports: readonly RefusedReports[]): number {
  return reports.reduce((sum, { count }) => sum + count, 0);
}

function describeRefusals(refusals: readonly RefusedReports[]): string | null {
  if (refusals.length === 0) return null;
  const count = sumCounts(refusals);
  const reasons = refusals.map((entry) => `${entry.reason} ${entry.count}`).join(', ');
  return `${count === 1 ? 'one request was' : `${count} requests were`} refused since the start of the nodes (${reasons})`;
}

function describeUnmatched(name: Provider['name'], refusedReports: readonly RefusedReports[]): string | null {
  const reasons = listSources(name).map(formatUnmatchedReason);
  const count = sumCounts(refusedReports.filter(({ reason }) => reasons.includes(reason)));
  if (count === 0) return null;
  const events = count === 1 ? 'one event' : `${count} events`;
  return `${events} without a message of this installation to the same recipient since the start of the nodes`;
}

/** Describes the requests to unknown paths, and those that were not HTTP. They may be for any provider except SES. */
function describeForeign(name: Provider['name'], refusedReports: readonly RefusedReports[]): readonly string[] {
  if (name === 'ses') return [];
  const count = (reason: string) => sumCounts(refusedReports.filter((entry) => entry.reason === reason));
  const [unknownCount, brokenCount] = [count(UNKNOWN_PATH_REASON), count(BROKEN_HTTP_REASON)];
  const unknown = unknownCount === 1 ? 'one request' : `${unknownCount} requests`;
  const broken = brokenCount === 1 ? 'one request was' : `${brokenCount} requests were`;
  return [
    ...(unknownCount === 0 ? [] : [`${unknown} below /events received the response 404 since the start of the nodes`]),
    ...(brokenCount === 0 ? [] : [`${broken} not valid HTTP or too slow since the start of the nodes`]),
  ];
}

export interface LoopTest {
  readonly to: string;
  readonly expectedState: 'bounced' | 'complained';
  readonly remedy: string;
}

export function planLoopTests(settings: Settings): readonly LoopTest[] | Finding {
  const { transport, returnPathDomain, feedbackListen, feedbackHttpListen, sesQueue } = settings;
  const { failure } = report('loop');
  switch (transport.kind) {
    case 'capture':
      return failure(
        'capture: sends no message and receives no feedback',
        'set POSTRIDER_TRANSPORT to a provider or a relay',
      );
    case 'ses': {
      const remedy =
        feedbackHttpListen === null && sesQueue === null
          ? createSetupRemedy({ name: 'ses' })
          : 'check that the identity or configuration set publishes bounces and complaints to the topic, and that a service runs with the role feedback';
      return [
        { to: 'bounce@simulator.amazonses.com', expectedState: 'bounced', remedy },
        { to: 'complaint@simulator.amazonses.com', expectedState: 'complained', remedy },
      ];
    }
    case 'smtp': {
      if (returnPathDomain === null || feedbackListen === null)
        return failure(
          'this service receives no bounces: it has no return path',
          'set POSTRIDER_RETURN_PATH_DOMAIN and POSTRIDER_FEEDBACK_LISTEN (docs/feedback.md)',
        );
      const remedy = `check that the relay keeps the envelope sender, that the MX of ${returnPathDomain} points to the feedback listener, and that port 25 of that host is open`;
      return [{ to: getLoopRecipient(returnPathDomain) ?? '', expectedState: 'bounced', remedy }];
    }
  }
}

export interface LoopTestParts {
  readonly tests: readonly LoopTest[];
  readonly send: (to: string) => Promise<string>;
  readonly readMessage: (id: string) => Promise<StoredMessage | null>;
  readonly clock: Pick<Clock, 'now'>;
  readonly waitForPoll: () => Promise<void>;
  readonly timeoutMs: number;
}

export function runLoopTests(parts: LoopTestParts): Promise<readonly Finding[]> {
  return Promise.all(parts.tests.map((test) => runTest(test, parts)));
}

function reportTest({ expectedState }: LoopTest) {
  return report('loop', expectedState === 'bounced' ? 'bounce' : 'complaint');
}

async function runTest(test: LoopTest, parts: LoopTestParts): Promise<Finding> {
  const { send, readMessage, clock, waitForPoll, timeoutMs } = parts;
  let id: string;
  try {
    id = await send(test.to);
  } catch (error) {
    const text = getErrorText(error);
    return reportTest(test).failure(text, 'correct the cause, then run the test again');
  }
  const startedAt = clock.now();
  for (;;) {
    const message = await readMessage(id);
    const elapsedMs = clock.now() - startedAt;
    const finding = message === null ? null : findResult(test, message, elapsedMs);
    if (finding !== null) return finding;
    if (elapsedMs >= timeoutMs) return createTimeoutFinding(test, id, message, timeoutMs);
    await waitForPoll();
  }
}

/** Returns null while a report can still arrive. */
function findResult(test: LoopTest, { state, events }: StoredMessage, elapsedMs: number): Finding | null {
  const { to, expectedState, remedy } = test;
  const { ok, warning, failure } = reportTest(test);
  const lastEvent = events.at(-1);
  const reason = lastEvent?.detail ?? 'no reason given';
  if (state === expectedState) {
    if (lastEvent?.by.startsWith('feedback:') === true) {
      const source = lastEvent.by.slice('feedback:'.length);
      return ok(`the feedback report for ${to} arrived over ${source} after ${Math.round(elapsedMs / 100) / 10} s`);
    }
    return warning(
      `the relay refused ${to} at once (${reason}), so no bounce message was sent`,
      'no action is required: the relay verifies recipients, so the test cannot cause an asynchronous bounce',
    );
  }
  if (state === 'suppressed')
    return failure(
      `${to} is on a suppression list, so the message was not sent`,
      `find the list with \`postrider suppression show ${to}\`, remove the entry with \`postrider suppression remove ACCOUNT ${to}\`, then run the test again`,
    );
  if (state === 'queued' || state === 'sending' || state === 'delivered') return null;
  return failure(`the message to ${to} ended as ${state} (${reason})`, remedy);
}

function createTimeoutFinding(test: LoopTest, id: string, message: StoredMessage | null, timeoutMs: number): Finding {
  const { to, remedy } = test;
  const { failure } = reportTest(test);
  const time = `within ${Math.round(timeoutMs / 1000)} s`;
  if (message?.state === 'delivered')
    return failure(`the message to ${to} was delivered, but no feedback report arrived ${time}`, remedy);
  const lastAttempt = message?.events.at(-1)?.detail ?? 'there was no delivery attempt';
  return failure(
    `the message to ${to} was not delivered ${time}: ${lastAttempt}`,
    `check that a service with the role deliver runs, and run \`postrider message explain ${id}\``,
  );
}
