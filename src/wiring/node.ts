/**
 * One node and its place among the others: its name, its time, and whether what it holds is still its own. On the embedded
 * store a service is alone; on PostgreSQL nodes follow the server's clock and watch each other.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { SteadyClock } from '../clock.ts';
import { followingClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import type { NodeBeat } from '../model/node.ts';
import { type Ages, ALONE, joinNodes, keepAges, type Membership } from '../queue/membership.ts';
import type { NodeStore } from '../store/contract.ts';

/** How long a lone service is listed after its start without a further beat. */
const ALONE_MS = 3_600_000;

export interface NodePlace {
  readonly name: string;
  readonly clock: SteadyClock;
  readonly ages: Ages;
  readonly membership: Membership;
  /** True where other nodes may share the store. */
  readonly shared: boolean;
  /** Tells the others, and keeps the running time a last time. */
  leave(): Promise<void>;
}

/** A name unique for this start of the process: host, process, chance. */
export function nodeName(): string {
  return `${hostname().split('.')[0]}-${process.pid}-${randomBytes(3).toString('hex')}`;
}

/** Takes this node's place; rejects where the store takes no writes. `clock` is the machine's own. */
export async function takePlace(
  name: string,
  settings: Settings,
  store: Pick<NodeStore, 'beat' | 'leave' | 'keepRunningTime'>,
  clock: SteadyClock,
  failed: (what: string, error: unknown) => void,
): Promise<NodePlace> {
  const node: NodeBeat = { name, roles: [...settings.roles], version: ownVersion() };
  if (settings.database.kind === 'sqlite') {
    await store.beat(node, ALONE_MS, clock.now());
    const membership = { ...ALONE, leave: () => store.leave(name) };
    return withAges({ name, clock, membership, shared: false }, store, failed);
  }
  const { monotonic } = clock;
  const following = followingClock(clock, monotonic);
  const membership = await joinNodes({ node, store, clock: following, monotonic, told: following.follow, failed });
  return withAges({ name, clock: following, membership, shared: true }, store, failed);
}

async function withAges(
  place: Pick<NodePlace, 'name' | 'clock' | 'membership' | 'shared'>,
  store: Pick<NodeStore, 'beat' | 'leave' | 'keepRunningTime'>,
  failed: (what: string, error: unknown) => void,
): Promise<NodePlace> {
  try {
    const { ages, stop } = await keepAges({ clock: place.clock, store, failed });
    const leave = async () => {
      await stop();
      await place.membership.leave();
    };
    return { ...place, ages, leave };
  } catch (error) {
    await place.membership.leave().catch(() => undefined);
    throw error;
  }
}

/** This Postrider's version, as package.json has it. */
function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
