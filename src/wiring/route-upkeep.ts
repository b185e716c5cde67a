/** Each second: stores what this node handed over and learned, and asks where another node found a route failing. */
import type { MonotonicClock } from '../clock.ts';
import { getRouteDay, type RouteSender, type RouteUse } from '../model/route.ts';
import { repeatHeartbeats } from '../queue/membership.ts';
import type { Routes } from '../queue/routes.ts';
import type { NodeStore, RouteStore } from '../store/contract.ts';

const INTERVAL_MS = 1_000;

export interface RouteUpkeepParts {
  readonly node: string;
  readonly clock: MonotonicClock;
  readonly sharesStore: boolean;
  readonly store: Pick<RouteStore, 'recordRouteUse' | 'recordRouteSenders' | 'listRouteUses'> &
    Pick<NodeStore, 'listNodes'>;
  readonly routes: Pick<Routes, 'list' | 'applyUsage' | 'takeUnstoredUse' | 'takeUnstoredSenders' | 'probeNow'>;
  readonly onError: (error: unknown) => void;
}

/** The function stops the upkeep after a last write. */
export async function startRouteUpkeep(parts: RouteUpkeepParts): Promise<() => Promise<void>> {
  const { node, clock, sharesStore, store, routes } = parts;
  /** Of writes that failed, for the next one. */
  let uses: readonly RouteUse[] = [];
  let senders: readonly RouteSender[] = [];
  let knownFindings: ReadonlySet<string> = new Set();
  let hasFailed = false;

  async function write(): Promise<void> {
    uses = sumUses([...uses, ...routes.takeUnstoredUse()]);
    senders = [...senders, ...routes.takeUnstoredSenders()];
    if (uses.length > 0) {
      const totals = await store.recordRouteUse(uses, clock.now());
      uses = [];
      applyUses(totals);
    }
    if (senders.length > 0) {
      await store.recordRouteSenders(senders);
      senders = [];
    }
  }

  function applyUses(totals: readonly RouteUse[]): void {
    for (const day of new Set(totals.map((total) => total.day))) {
      const ofDay = totals.filter((total) => total.day === day);
      routes.applyUsage(day, new Map(ofDay.map(({ route, count }) => [route, count])));
    }
  }

  async function applyStoredUses(): Promise<void> {
    const today = getRouteDay(clock.now());
    applyUses((await store.listRouteUses()).filter(({ day }) => day === today));
  }

  /** A broken way out of one node must not close the route for all, so each node asks for itself, once. */
  async function probeFindings(): Promise<void> {
    const now = clock.now();
    const findings = new Map<string, string>();
    for (const { name, aliveUntil, delivery } of await store.listNodes(now))
      for (const route of name === node || aliveUntil <= now ? [] : (delivery?.routes ?? []))
        if (route.state !== 'usable') findings.set(`${name} ${route.name} ${route.failingSince}`, route.name);
    for (const [finding, route] of findings) if (!knownFindings.has(finding)) routes.probeNow(route);
    knownFindings = new Set(findings.keys());
  }

  async function run(): Promise<void> {
    await write();
    if (sharesStore) {
      await probeFindings();
      if (routes.list.some(({ limits }) => limits().daily !== null)) await applyStoredUses();
    }
    hasFailed = false;
  }

  function reportOnce(error: unknown): void {
    if (!hasFailed) parts.onError(error);
    hasFailed = true;
  }

  await applyStoredUses();
  const upkeep = repeatHeartbeats(clock, INTERVAL_MS, run, (_operation, error) => reportOnce(error));
  return async () => {
    await upkeep.stop();
    await write().catch(reportOnce);
  };
}

function sumUses(uses: readonly RouteUse[]): readonly RouteUse[] {
  const sums = new Map<string, RouteUse>();
  for (const use of uses) {
    const key = `${use.route} ${use.day}`;
    sums.set(key, { ...use, count: use.count + (sums.get(key)?.count ?? 0) });
  }
  return [...sums.values()];
}
