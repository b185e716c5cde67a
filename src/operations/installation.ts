/** The settings, the setup checklist and the providers of the installation. */
import type { Static } from 'typebox';
import { readSetupFacts, STEP_CODES } from '../checks/facts.ts';
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

import { listSteps } from '../checks/list.ts';
import type { TransportSetting } from '../config/settings.ts';
import { findTransportProvider, hasProviderRoute } from '../domains/setup.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import type { Provider } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/providers.ts';
import { ok } from './errors.ts';
import { type ConfigContext, defineOperation, reads } from './operation.ts';
import { Time, Type } from './schemas.ts';

export const EffectiveSettings = Type.Array(
  Type.Object({
    name: Type.String('The name of the setting, such as `POSTRIDER_LISTEN`.'),
    value: Type.NullableString('The value, with secrets masked; null if the setting has no value.'),
    source: Type.Enum(['default', '.env', 'environment', 'file'], 'The source of the value.'),
    meaning: Type.String('The meaning of the setting, as in docs/configuration.md.'),
  }),
);
export type EffectiveSettings = Static<typeof EffectiveSettings>;

export const showConfig = defineOperation({
  name: 'config.show',
  id: 'showConfig',
  summary: 'Show the effective settings, secrets masked',
  ...reads('operator'),
  input: Type.Object({}),
  result: EffectiveSettings,
  errors: ['conflict'],
  async run(_input, { describeSettings }: ConfigContext) {
    return ok(describeSettings().map(({ name, value, source, meaning }) => ({ name, value, source, meaning })));
  },
});

const SetupStep = Type.Object({
  step: Type.Enum(STEP_CODES, 'The step. Codes are stable.'),
  title: Type.String('The step in the imperative, without a full stop.'),
  state: Type.Enum(
    ['done', 'open', 'optional', 'not-needed'],
    '`open`: the setup is not complete without this step. `optional`: the setup is complete without this step. `not-needed`: the step has no effect with the current settings.',
  ),
  detail: Type.String('The fact from which the state follows, in one or two sentences.'),
  action: Type.NullableString('What completes the step; null for a step that is done or not needed.'),
  command: Type.NullableString('A command that completes the step or begins it; null if there is none.'),
  page: Type.NullableString('The page of the dashboard that belongs to the step, such as `/domains`.'),
});
export type SetupStep = Static<typeof SetupStep>;

const Setup = Type.Object({
  isComplete: Type.Boolean('True if no step is open.'),
  openCount: Type.Integer('The number of open steps.'),
  steps: Type.Array(SetupStep, 'All steps, in the recommended order.'),
});
export type Setup = Static<typeof Setup>;

export const showSetup = defineOperation({
  name: 'setup.show',
  id: 'showSetup',
  summary: 'Show the steps to set up the installation, with their states',
  ...reads('viewer'),
  input: Type.Object({}),
  result: Setup,
  errors: [],
  async run(_input, { store, settings, clock, status }) {
    const facts = await readSetupFacts(store, settings, status?.() ?? null, clock.now());
    const steps = listSteps(facts).map(({ code, text, remedy, title, state, command, page }) => ({
      ...{ step: code, title, state, detail: text, action: remedy, command, page },
    }));
    const openCount = steps.filter(({ state }) => state === 'open').length;
    return ok({ isComplete: openCount === 0, openCount, steps });
  },
});

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
    const isRelay = ({ name }: Provider) => hasProviderRoute(settings.routes, name);
    const toEvents = (provider: Provider): ProviderEntry['events'] => {
      if (!isRelay(provider) && !hasEventSettings(settings, provider)) return null;
      const { level, text, remedy } = checkEvents(
        provider,
        isRelay(provider) ? provider : relayProvider,
        settings,
        facts,
      );
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
        isRelay: isRelay(provider),
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
