import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DoctorStore } from '../checks/probes.ts';
import type { Clock, MonotonicClock } from '../clock.ts';
import type { DescribedSetting } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import { loadOperatorKey } from '../domains/setup.ts';
import { readEntity } from '../feedback/read/entity.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import { createOpenApiDocument } from '../http/openapi.ts';
import type { EventOf } from '../model/events.ts';
import type { Inbox } from '../model/inbox.ts';
import type { RuntimeStatus } from '../model/node.ts';
import type { Events } from '../observability/events.ts';
import { createListenerClient } from '../operations/listener-client.ts';
import type { ImportScheduler, InboxContext } from '../operations/operation.ts';
import { createImportScheduler } from '../operations/suppression-files.ts';
import type { ApiParts, OperatorOptions } from '../operator/api.ts';
import { createAuditedStore } from '../operator/audited-store.ts';
import { createOperatorListener } from '../operator/listener.ts';
import type { OperatorStore } from '../store/contract.ts';
import { createAttemptOverRoute, createInstallation } from './installation.ts';
import { createFailureReporter } from './node.ts';
import type { Observability } from './observability.ts';

/** `npm ci` builds the pages in a checkout, and the npm package contains them. */
const DASHBOARD_FOLDER = fileURLToPath(new URL('../../dashboard/dist', import.meta.url));

function requireDashboard(): void {
  if (existsSync(join(DASHBOARD_FOLDER, 'index.html'))) return;
  throw new Error(
    `the pages of the dashboard are missing in ${DASHBOARD_FOLDER}; run \`npm ci\` without --omit=dev in a checkout, or install the package again`,
  );
}

export interface OperatorApiOptions {
  readonly version: string;
  /** As read during the start, with masked secrets. */
  readonly describeSettings: () => readonly DescribedSetting[];
}

export interface OperatorParts {
  readonly settings: Settings;
  /** The clock that all nodes share. */
  readonly clock: MonotonicClock;
  readonly machineClock: MonotonicClock;
  readonly store: OperatorStore & DoctorStore;
  readonly directory: Pick<ApiKeyCache, 'isValid'>;
  readonly events: Events;
  readonly observability: Pick<Observability, 'scrape' | 'liveUpdates'>;
  readonly maxConnections: number;
  readonly inbox: Inbox | null;
  readonly status: () => RuntimeStatus;
  /** The raw key that the role `api` stores if the store has no account. */
  readonly firstKey: string | null;
  readonly api: OperatorApiOptions | null;
}

/** Disposal first ends the imports in progress, so that their clients are answered. Rejects with a one-line Error. */
export async function startOperator(parts: OperatorParts) {
  const { settings, clock, maxConnections } = parts;
  const { publish } = parts.events;
  requireDashboard();
  const inboxContext = { inbox: parts.inbox, readEntity };
  await using stack = new AsyncDisposableStack();
  const reportFailure = createFailureReporter(publish, clock);
  const imports = createImportScheduler(parts.store, clock);
  const listener = createOperatorListener({
    settings,
    clock,
    maxConnections,
    publish,
    scrapeMetrics: parts.observability.scrape,
    createOpenApi: () => `${JSON.stringify(createOpenApiDocument(), null, 2)}\n`,
    dashboard: DASHBOARD_FOLDER,
    inboxContext,
    api: parts.api === null ? null : createApiOptions(parts, parts.api, imports, inboxContext),
    onError: (error) => reportFailure('operator', error),
  });
  stack.defer(() => listener.close());
  stack.defer(() => imports.stop());
  const { url, signInUrl } = await listener.start();
  const startedComponents = stack.move();
  return { url, signInUrl, [Symbol.asyncDispose]: () => startedComponents.disposeAsync() };
}

function createApiOptions(
  parts: OperatorParts,
  { version, describeSettings }: OperatorApiOptions,
  imports: ImportScheduler,
  inboxContext: InboxContext,
): OperatorOptions['api'] {
  const { settings, clock, machineClock, store, directory, events, firstKey, status } = parts;
  const { publish, subscribe } = events;
  const getInstallationInfo = createInstallationInfo({ settings, version, clock, directory, subscribe, firstKey });
  const publicListener = createListenerClient(() => getInstallationInfo().publicUrl, settings.tls);
  return {
    store,
    createContext(actor, scope) {
      const auditedStore = createAuditedStore(store, actor, clock.now);
      return {
        actor,
        scope,
        clock,
        machineClock,
        settings,
        random: randomBytes,
        status,
        publish,
        store: auditedStore,
        installation: createInstallation(settings, machineClock, (work) => work(auditedStore)),
        describeSettings,
        showProgress: () => undefined,
        imports,
        publicListener,
        attemptOverRoute: createAttemptOverRoute(settings, machineClock),
        ...inboxContext,
      };
    },
    liveUpdates: parts.observability.liveUpdates,
    publish,
    version,
    getInstallationInfo,
    key: loadOperatorKey(settings),
  };
}

const FIRST_KEY_TTL_MS = 3_600_000;

export interface InstallationInfoParts {
  readonly settings: Pick<Settings, 'transport' | 'routes' | 'operatorPassword'>;
  readonly version: string;
  readonly clock: Clock;
  readonly directory: Pick<ApiKeyCache, 'isValid'>;
  readonly subscribe: Events['subscribe'];
  /** Valid only if the store had no account at the start, because the start stores the key only in this case. */
  readonly firstKey: string | null;
}

export function createInstallationInfo(parts: InstallationInfoParts): ApiParts['getInstallationInfo'] {
  const { settings, version, clock, directory, firstKey } = parts;
  let apiStarted: EventOf<'api.started'> | null = null;
  parts.subscribe({
    'api.started': (event) => {
      apiStarted = event;
    },
  });

  return () => {
    const now = clock.now();
    // For the curl command in the dashboard.
    const showsKey = firstKey !== null && apiStarted !== null && now - apiStarted.at < FIRST_KEY_TTL_MS;
    return {
      version,
      transport: settings.transport.kind,
      routes: settings.routes.map(({ name }) => name),
      password: settings.operatorPassword !== null,
      publicUrl: apiStarted?.publicUrl ?? null,
      firstKey: showsKey && directory.isValid(firstKey, now) ? firstKey : null,
    };
  };
}
