/**
 * Derives the steps of the setup checklist from the settings and from facts of the store. Pure. No step stores a state,
 * so a step that an operator completes outside the checklist, for example with a command, is also complete in the
 * checklist.
 */
import type { TransportSetting } from '../../config/settings.ts';
import type { Finding } from '../../doctor/finding.ts';
import { toSentence } from '../../printing/text.ts';
import type { SetupStep } from './schemas.ts';

/** The facts that determine the states of the steps. */
export interface SetupFacts {
  readonly transport: TransportSetting;
  /** The display name of the provider of the transport, or null. */
  readonly providerTitle: string | null;
  /** True if messages of a sender without an authenticated domain are refused. */
  readonly requiresDomain: boolean;
  readonly everAccepted: boolean;
  /** The number of sending domains, and the number of authenticated sending domains. */
  readonly domainCount: number;
  readonly authenticatedCount: number;
  /** The name of a domain that is not authenticated, or null. */
  readonly unauthenticatedDomain: string | null;
  /** The name of an account to which a domain can be added, or null without an account. */
  readonly account: string | null;
  /** An address from which a test message is accepted, or null if every sender is refused. */
  readonly testSender: string | null;
  readonly testRecipient: string;
  /** The finding about the events of the provider of the transport, or null if they are not needed. */
  readonly eventsFinding: Pick<Finding, 'detail' | 'remedy'> | null;
  /** True if an event of the provider of the transport is recorded. */
  readonly hasProviderEvent: boolean;
  /** True if POSTRIDER_FEEDBACK_LISTEN is set on this node. */
  readonly hasFeedbackListener: boolean;
  /** True if a report that arrived by SMTP is recorded. Another node may have the listener. */
  readonly hasSmtpReport: boolean;
  /** The number of endpoints, and the number of enabled endpoints. */
  readonly webhookCount: number;
  readonly enabledWebhookCount: number;
}

/** Returns all steps in the recommended order. */
export function listSetupSteps(facts: SetupFacts): readonly SetupStep[] {
  return [
    createMessageStep(facts),
    createProviderStep(facts),
    createDomainStep(facts),
    createRecordsStep(facts),
    createFeedbackStep(facts),
    createWebhookStep(facts),
  ];
}

function createMessageStep({ everAccepted, testSender, testRecipient, transport }: SetupFacts): SetupStep {
  const step = { step: 'first-message', title: 'Send a test message', page: '/messages' } as const;
  if (everAccepted) return toDone(step, 'A message has been accepted.');
  if (testSender === null)
    return {
      ...step,
      state: 'open',
      detail: 'No message has been accepted. Messages of every sender are refused until a domain is authenticated.',
      action: 'Add a domain and publish its records first.',
      command: null,
    };
  return {
    ...step,
    state: 'open',
    detail: 'No message has been accepted.',
    action:
      transport.kind === 'capture'
        ? 'Submit a message. The Inbox page shows the message.'
        : 'Submit a message. The mailbox simulator receives the message, so Postrider does not send it to the provider.',
    command: `postrider send --to ${testRecipient} --from ${testSender} --subject Hello --message 'It works.'`,
  };
}

/** The command that sets a transport. docs/quick-start.md contains a copy of this command. */
const SET_TRANSPORT = `echo 'POSTRIDER_TRANSPORT="smtp://user:password@smtp.example.com:587?tls=required"' >> .env`;

function createProviderStep({ transport, providerTitle }: SetupFacts): SetupStep {
  const step = { step: 'provider', title: 'Choose a provider', page: '/providers' } as const;
  switch (transport.kind) {
    case 'capture':
      return {
        ...step,
        state: 'open',
        detail: 'The transport is `capture:`, which stores every message on this machine and sends none.',
        action: 'Set POSTRIDER_TRANSPORT to the relay of your provider or to Amazon SES, then restart the service.',
        command: SET_TRANSPORT,
      };
    case 'ses':
      return toDone(step, `Messages are sent through Amazon SES in ${transport.region}.`);
    case 'smtp': {
      const relay = `${transport.host}:${transport.port}`;
      return toDone(step, `Messages are sent to ${providerTitle === null ? relay : `${providerTitle}, ${relay}`}.`);
    }
  }
}

function createDomainStep(facts: SetupFacts): SetupStep {
  const step = { step: 'domain', title: 'Add a sending domain', page: '/domains' } as const;
  const { domainCount, transport, requiresDomain, account } = facts;
  if (domainCount > 0)
    return toDone(step, domainCount === 1 ? 'There is one domain.' : `There are ${domainCount} domains.`);
  if (transport.kind === 'capture')
    return toNotNeeded(
      step,
      'The transport `capture:` accepts every sender. A provider needs an authenticated domain.',
    );
  return {
    ...step,
    state: requiresDomain ? 'open' : 'optional',
    detail: requiresDomain
      ? 'There is no domain, so messages of every sender are refused.'
      : 'POSTRIDER_SENDERS is `any`, so every sender is accepted. Messages are not signed without a domain.',
    action:
      account === null ? 'Create an account, then add a domain to it.' : 'Add the domain of your sender addresses.',
    command: account === null ? null : `postrider domain add ${account} example.com`,
  };
}

function createRecordsStep(facts: SetupFacts): SetupStep {
  const { domainCount, authenticatedCount, unauthenticatedDomain, transport, requiresDomain } = facts;
  const step = { step: 'records', title: 'Publish the DNS records', page: '/domains' } as const;
  if (authenticatedCount > 0)
    return toDone(
      step,
      domainCount === 1
        ? 'The domain is authenticated.'
        : `${authenticatedCount} of ${domainCount} domains are authenticated.`,
    );
  if (domainCount === 0)
    return requiresDomain
      ? {
          ...step,
          state: 'open',
          detail: 'The records are created with the domain.',
          action: 'Add a domain first.',
          command: null,
        }
      : toNotNeeded(step, 'There is no domain.');
  return {
    ...step,
    page: unauthenticatedDomain === null ? '/domains' : `/domains/${encodeURIComponent(unauthenticatedDomain)}`,
    state: requiresDomain ? 'open' : 'optional',
    detail:
      transport.kind === 'capture'
        ? 'No domain is authenticated. The transport `capture:` accepts messages nevertheless.'
        : requiresDomain
          ? 'No domain is authenticated, so messages of every sender are refused.'
          : 'No domain is authenticated. POSTRIDER_SENDERS is `any`, so messages are accepted nevertheless.',
    action: 'Publish the records at the DNS provider of the domain, then verify the domain.',
    command: unauthenticatedDomain === null ? null : `postrider domain verify ${unauthenticatedDomain}`,
  };
}

function createFeedbackStep(facts: SetupFacts): SetupStep {
  const step = { step: 'feedback', title: 'Receive bounces and complaints', page: '/providers' } as const;
  const { transport, eventsFinding, hasProviderEvent, hasFeedbackListener, hasSmtpReport, providerTitle } = facts;
  if (transport.kind === 'capture')
    return toNotNeeded(step, 'The transport `capture:` sends no message, so no message bounces later.');
  // If the events fail later, `doctor` reports the failure, and this step remains done.
  if (hasProviderEvent) return toDone(step, `An event of ${providerTitle ?? 'the provider'} has been received.`);
  if (eventsFinding !== null)
    return {
      ...step,
      state: 'open',
      detail: toSentence(capitalizeText(eventsFinding.detail)),
      action: eventsFinding.remedy === null ? null : toSentence(capitalizeText(eventsFinding.remedy)),
      command: 'postrider provider list',
    };
  if (hasFeedbackListener) return toDone(step, 'POSTRIDER_FEEDBACK_LISTEN is set, and bounces return to this service.');
  if (hasSmtpReport) return toDone(step, 'Reports arrive by SMTP at another node.');
  return {
    ...step,
    page: '/feedback',
    state: 'open',
    detail: 'POSTRIDER_FEEDBACK_LISTEN is not set, so bounces and complaints that arrive later are lost.',
    action:
      'Set POSTRIDER_FEEDBACK_LISTEN and POSTRIDER_RETURN_PATH_DOMAIN (docs/feedback.md), then restart the service.',
    command: 'postrider doctor',
  };
}

function createWebhookStep({ webhookCount, enabledWebhookCount }: SetupFacts): SetupStep {
  const step = { step: 'webhook', title: 'Send events to your application', page: '/webhooks' } as const;
  if (enabledWebhookCount > 0)
    return toDone(
      step,
      enabledWebhookCount === 1 ? 'One endpoint is enabled.' : `${enabledWebhookCount} endpoints are enabled.`,
    );
  return {
    ...step,
    state: 'optional',
    detail: webhookCount === 0 ? 'There is no endpoint.' : 'Every endpoint is disabled.',
    action: 'Create an endpoint, which receives the outcome of each message.',
    command: 'postrider webhook create https://app.example.com/webhooks',
  };
}

function capitalizeText(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

type StepBase = Pick<SetupStep, 'step' | 'title' | 'page'>;

function toDone(step: StepBase, detail: string): SetupStep {
  return { ...step, state: 'done', detail, action: null, command: null };
}

function toNotNeeded(step: StepBase, detail: string): SetupStep {
  return { ...step, state: 'not-needed', detail, action: null, command: null };
}
