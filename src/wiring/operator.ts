/** The role `operator`: metrics, the dashboard with its live updates, and the operator API. */

import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { MonotonicClock } from '../clock.ts';
import type { DescribedSetting } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import type { DoctorStore } from '../doctor/installation.ts';
import { operatorKey } from '../domains/setup.ts';
import { readEntity } from '../feedback/read/entity.ts';
import { bind } from '../http/bind.ts';
import type { HttpConnections } from '../http/connections.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import { openApiDocument } from '../http/openapi.ts';
import type { Inbox } from '../model/inbox.ts';
import type { RuntimeStatus } from '../model/node.ts';
import type { Events } from '../observability/events.ts';
import type { InboxContext } from '../operations/context.ts';
import { createImportScheduler, type ImportScheduler } from '../operations/suppressions/import-scheduler.ts';
import { createAuditedStore } from '../operator/audited-store.ts';
import { createOperatorListener } from '../operator/listener.ts';
import type { OperatorOptions } from '../operator/ports.ts';
import type { OperatorStore } from '../store/contract.ts';
import { aboutService } from './about.ts';
import { createFailureReporter } from './events.ts';
import { createInstallation } from './installation.ts';
import type { Observability } from './observability.ts';

/** Where `npm ci` builds the operator's pages. */
const DASHBOARD = fileURLToPath(new URL('../../dashboard/dist', import.meta.url));

/** What the operator API needs of this installation. */
export interface OperatorApiOptions {
  readonly version: string;
  /** The settings that the service was started with, secrets masked. */
  readonly describeSettings: () => readonly DescribedSetting[];
}

export interface OperatorParts {
  readonly settings: Settings;
  /** Time as all nodes know it. */
  readonly clock: MonotonicClock;
  readonly machineClock: MonotonicClock;
  readonly store: OperatorStore & DoctorStore;
  readonly directory: Pick<ApiKeyCache, 'isValid'>;
  readonly events: Events;
  readonly observability: Pick<Observability, 'scrape' | 'liveUpdates'>;
  readonly connections: HttpConnections;
  /** Null where the transport captures nothing. */
  readonly inbox: Inbox | null;
  readonly status: () => RuntimeStatus;
  /** The raw key that the role `api` stores where there is no account yet. */
  readonly firstKey: string;
  /** Null where this process has no operator API. */
  readonly api: OperatorApiOptions | null;
}

export interface Operator extends AsyncDisposable {
  readonly url: string;
  /** Signs in once, where no password is set; else null. */
  readonly signInUrl: string | null;
}

/** Listens. Disposing first ends imports, so that whoever follows one is told. Rejects with an Error of one line. */
export async function startOperator(parts: OperatorParts): Promise<Operator> {
  const { settings, clock, connections } = parts;
  const captured = { inbox: parts.inbox, readEntity };
  await using stack = new AsyncDisposableStack();
  const failed = createFailureReporter(parts.events.publish, clock);
  const imports = createImportScheduler(parts.store, clock);
  const operator = createOperatorListener({
    settings,
    clock,
    bind,
    connections,
    metrics: parts.observability.scrape,
    openApi: `${JSON.stringify(openApiDocument(), null, 2)}\n`,
    dashboard: DASHBOARD,
    inboxContext: captured,
    api: parts.api === null ? null : apiOf(parts, parts.api, imports, captured),
    onError: (error) => failed('operator', error),
  });
  stack.defer(() => operator.close());
  stack.defer(() => imports.stop());
  const { url, signInUrl } = await operator.start();
  // An operator's first look finds the store's reader at work and the queue counted.
  if (parts.api !== null) void parts.store.queueFigures().catch(() => undefined);
  const started = stack.move();
  return { url, signInUrl, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

function apiOf(
  parts: OperatorParts,
  { version, describeSettings }: OperatorApiOptions,
  imports: ImportScheduler,
  captured: InboxContext,
): OperatorOptions['api'] {
  const { settings, clock, machineClock, store, directory, events, firstKey, status } = parts;
  const { publish, subscribe } = events;
  return {
    store,
    operate(actor) {
      const own = createAuditedStore(store, actor, clock.now);
      return {
        actor,
        clock,
        machineClock,
        settings,
        random: randomBytes,
        status,
        publish,
        store: own,
        installation: createInstallation(settings, machineClock, (work) => work(own)),
        describeSettings,
        progress: () => undefined,
        imports,
        ...captured,
      };
    },
    liveUpdates: parts.observability.liveUpdates,
    publish,
    version,
    about: aboutService({ settings, version, clock, directory, subscribe, firstKey }),
    key: operatorKey(settings),
  };
}
