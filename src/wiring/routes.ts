/** Opens the next hop of each route, and replaces it when the file of its setting changes. */
import type { MonotonicClock } from '../clock.ts';
import { getRouteLimits, type RouteSetting, type Settings, type TransportSetting } from '../config/settings.ts';
import { createSigningParts } from '../domains/setup.ts';
import { createPrepare, type DomainCache } from '../domains/signing.ts';
import type { ApiKeyCache } from '../http/keys.ts';
import type { Publish } from '../model/events.ts';
import type { Inbox } from '../model/inbox.ts';
import { createDeferral, type Outcome } from '../model/outcome.ts';
import { DEFAULT_ROUTE, NO_ROUTING, type Routing } from '../model/route.ts';
import { describeError } from '../printing/escape.ts';
import { createRouteHealth } from '../queue/route-health.ts';
import type { Route } from '../queue/routes.ts';
import { createReplaceableTransport, openTransport } from '../transports/open.ts';
import type { Transport } from '../transports/transport.ts';

const MAX_PROBE_MS = 20_000;

export interface OpenedRoutes {
  /** With the transports of today, in the order of the settings. */
  readonly settings: Settings;
  readonly transports: readonly OpenedTransport[];
  /** Of the route `default`, if it is `capture:`. */
  readonly inbox: Inbox | null;
  /** Returns null, or the reason why the change requires a restart. Messages under way end on the former next hop. */
  replace(route: string, next: TransportSetting): string | null;
  /** Of the file of its setting. */
  recordFault(route: string, fault: string | null): void;
  findFault(route: string): string | null;
  replaceRouting(next: Routing): void;
  /** Calls `listener` at once, and after each change. */
  watchRouting(listener: (routing: Routing) => void): void;
  /** For the dispatcher. */
  create(parts: RouteParts): readonly [Route, ...Route[]];
}

interface OpenedTransport {
  readonly name: string;
  readonly transport: Transport;
}

export interface RouteParts {
  readonly domains: DomainCache;
  readonly directory: ApiKeyCache;
  readonly publish: Publish;
  readonly clock: MonotonicClock;
}

export function openRoutes(
  startSettings: Settings,
  openParts: Parameters<typeof openTransport>[1],
  drainMs: number,
  wrap: (transport: Transport) => Transport,
): OpenedRoutes {
  const current = new Map<string, TransportSetting>(
    startSettings.routes.map(({ name, transport }) => [name, transport]),
  );
  const opened = startSettings.routes.map(({ name, transport: setting }) => {
    const { transport, inbox } = openTransport(setting, openParts);
    const replaceable = createReplaceableTransport(transport);
    return { name, inbox, replaceable, transport: wrap(replaceable) };
  });
  const getSetting = (name: string): TransportSetting => current.get(name) ?? startSettings.transport;
  // Parts that read the settings at each use see the next hop of today.
  const settings: Settings = Object.freeze({
    ...startSettings,
    get transport() {
      return getSetting(DEFAULT_ROUTE);
    },
    get routes(): readonly RouteSetting[] {
      return startSettings.routes.map(({ name }) => ({ name, transport: getSetting(name) }));
    },
  });

  let routing: Routing = NO_ROUTING;
  const listeners: ((routing: Routing) => void)[] = [];

  const faults = new Map<string, string>();

  return {
    settings,
    recordFault(name, fault) {
      if (fault === null) faults.delete(name);
      else faults.set(name, fault);
    },
    findFault: (name) => faults.get(name) ?? null,
    replaceRouting(next) {
      routing = next;
      for (const listener of listeners) listener(next);
    },
    watchRouting(listener) {
      listeners.push(listener);
      listener(routing);
    },
    transports: opened,
    inbox: opened[0]?.inbox ?? null,
    replace(name, next) {
      const route = opened.find((candidate) => candidate.name === name);
      const former = getSetting(name);
      if (route === undefined) return `the route ${name} is new`;
      if (former.kind === 'capture' || next.kind === 'capture')
        return former.kind === next.kind ? null : `the transport changes from ${former.kind} to ${next.kind}`;
      route.replaceable.replace(openTransport(next, openParts).transport, drainMs);
      current.set(name, next);
      return null;
    },
    create({ domains, directory, publish, clock }) {
      const createRoute = ({ name, transport }: OpenedTransport): Route => {
        const createPrepareFor = (setting: TransportSetting) =>
          createPrepare({
            domains,
            ...createSigningParts({ ...startSettings, transport: setting }),
            findConfigurationSet: (accountId) => directory.findAccount(accountId)?.sesConfigurationSet ?? null,
            onError: (error) => publish({ type: 'message.signing_failed', at: clock.now(), error }),
          });
        let prepared = { setting: getSetting(name), prepare: createPrepareFor(getSetting(name)) };
        return {
          name,
          transport,
          health: createRouteHealth({ route: name, random: Math.random, publish }),
          prepare(message) {
            const setting = getSetting(name);
            if (setting !== prepared.setting) prepared = { setting, prepare: createPrepareFor(setting) };
            return prepared.prepare(message);
          },
          limits: () => getRouteLimits(getSetting(name)),
          nextHop: () => getSetting(name),
          probe: () => probeNextHop(getSetting(name), clock),
        };
      };
      const [first, ...others] = opened;
      if (first === undefined) throw new RangeError('the settings name no route');
      return [createRoute(first), ...others.map(createRoute)];
    },
  };
}

/** Connects and signs in, without a message. Null if the next hop answers. */
async function probeNextHop(setting: TransportSetting, clock: MonotonicClock): Promise<Outcome | null> {
  switch (setting.kind) {
    case 'capture':
      return null;
    case 'smtp': {
      const { probeRelay } = await import('../transports/smtp/probe.ts');
      const { session } = await probeRelay(setting, clock, MAX_PROBE_MS);
      return session.kind === 'ready' ? null : createDeferral('connect', session.text, 'connection', 'route');
    }
    case 'ses': {
      const { createSesClient } = await import('../transports/ses/client.ts');
      const client = await createSesClient(setting, 1, clock);
      try {
        const { sendingEnabled } = await client.getAccount(AbortSignal.timeout(MAX_PROBE_MS));
        return sendingEnabled ? null : createDeferral('connect', 'sending is paused', 'configuration', 'route');
      } catch (error) {
        return createDeferral('connect', describeError(error), 'connection', 'route');
      } finally {
        client.close();
      }
    }
  }
}
