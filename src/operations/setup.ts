/**
 * The operation of the setup checklist: the steps from an empty installation to one that sends messages, with their
 * states. The states are computed from the settings of this node and from the store, and none is stored.
 */
import type { Settings } from '../config/settings.ts';
import { sumRefusedReports } from '../doctor/provider-events.ts';
import { findTransportProvider } from '../domains/setup.ts';
import { maySend } from '../model/domain.ts';
import { FIRST_SENDER, getFirstRecipient } from '../model/first-message.ts';
import { Type } from '../model/schema.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import type { OperatorStore } from '../store/contract.ts';
import { ok } from './errors.ts';
import { defineOperation, type OperationContext } from './operation.ts';
import { checkEvents, findLastEventAt, hasEventSettings } from './providers.ts';
import { Setup } from './setup/schemas.ts';
import { listSetupSteps, type SetupFacts } from './setup/steps.ts';

/** Shows the setup checklist. The lists of accounts and domains are read only if a step needs them. */
export const showSetup = defineOperation({
  name: 'setup.show',
  id: 'showSetup',
  summary: 'Show the steps to set up the installation, with their states',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({}),
  result: Setup,
  errors: [],
  async run(_input, context) {
    const steps = listSetupSteps(await readSetupFacts(context));
    const openCount = steps.filter(({ state }) => state === 'open').length;
    return ok({ isComplete: openCount === 0, openCount, steps: [...steps] });
  },
});

async function readSetupFacts({
  store,
  settings,
  clock,
  status,
}: Pick<OperationContext, 'store' | 'settings' | 'clock' | 'status'>): Promise<SetupFacts> {
  const now = clock.now();
  const [{ everAccepted, domains }, lastFeedback, nodes, webhooks] = await Promise.all([
    store.readOverviewData(now, 1),
    store.listLastFeedback(),
    store.listNodes(now),
    store.listWebhooks(),
  ]);
  const provider = findTransportProvider(settings.transport);
  const areEventsNeeded = provider !== null && provider.relay?.keepsEnvelopeSender !== true;
  const eventFacts = { lastFeedback, refusedReports: sumRefusedReports(nodes, status?.() ?? null), now };
  const [unauthenticatedDomain] = domains.problems.filter(
    ({ status: domainStatus }) => domainStatus !== 'authenticated',
  );
  return {
    transport: settings.transport,
    providerTitle: provider?.title ?? null,
    requiresDomain: requiresAuthenticatedSender(settings),
    everAccepted,
    domainCount: domains.all,
    authenticatedCount: domains.authenticated,
    unauthenticatedDomain: unauthenticatedDomain?.name ?? null,
    account: domains.all === 0 ? ((await store.listAccounts())[0]?.name ?? null) : null,
    testSender: everAccepted ? null : await findTestSender(store, settings),
    testRecipient: getFirstRecipient(settings.transport.kind),
    eventsFinding:
      provider !== null && (areEventsNeeded || hasEventSettings(settings, provider))
        ? checkEvents(provider, provider, settings, eventFacts)
        : null,
    hasProviderEvent: provider !== null && findLastEventAt(lastFeedback, provider) !== null,
    hasFeedbackListener: settings.feedbackListen !== null,
    hasSmtpReport: lastFeedback.some(({ source }) => source === 'smtp'),
    webhookCount: webhooks.length,
    enabledWebhookCount: webhooks.filter(({ disabled }) => disabled === null).length,
  };
}

/** Returns an address from which a message is accepted, or null if every sender is refused. */
async function findTestSender(store: Pick<OperatorStore, 'listDomains'>, settings: Settings): Promise<string | null> {
  if (!requiresAuthenticatedSender(settings)) return FIRST_SENDER;
  const domain = (await store.listDomains()).find(maySend);
  return domain === undefined ? null : `hello@${domain.name}`;
}
