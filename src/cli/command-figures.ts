/**
 * Adds the changes of a command to the overview figures and the deliverability figures. The service counts its own
 * changes, but a command such as `message resend` changes the store without the service.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { parseAddress } from '../model/address.ts';
import type { MailboxProvider } from '../model/mailbox-provider.ts';
import type { OperationContext } from '../operations/context.ts';
import type { TrafficStore } from '../store/contract.ts';
import type { DeliverabilityStore } from '../store/deliverability-store.ts';

type PublishEvent = OperationContext['publish'];
type CommandEvent = Parameters<PublishEvent>[0];

export interface CommandFiguresParts {
  readonly clock: Clock;
  readonly store: Pick<TrafficStore, 'writeTraffic'> &
    Pick<DeliverabilityStore, 'writeDeliverability' | 'findMailboxProviders'>;
  /** Receives the error of a failed write of the figures. The changes of the command are stored nevertheless. */
  readonly onError: (error: unknown) => void;
}

/** Runs `work`, and then writes the figures of the events that `work` has published, even if `work` rejects. */
export async function withCommandFigures<T>(
  parts: CommandFiguresParts,
  work: (publish: PublishEvent) => Promise<T>,
): Promise<T> {
  const events: CommandEvent[] = [];
  try {
    return await work((event) => void events.push(event));
  } finally {
    if (events.length > 0) await writeFigures(events, parts).catch(parts.onError);
  }
}

async function writeFigures(
  publishedEvents: readonly CommandEvent[],
  { clock, store, onError }: CommandFiguresParts,
): Promise<void> {
  // The modules are loaded only by a command that changes messages, because most commands change no message.
  const [{ createEvents }, traffic, deliverability] = await Promise.all([
    import('../observability/events.ts'),
    import('../observability/traffic.ts'),
    import('../observability/deliverability.ts'),
  ]);
  // The node name is unique, because the rows of a node replace the earlier rows of the same node.
  const parts = { node: `command-${randomUUID()}`, clock, onWriteError: onError };
  const trafficCounter = traffic.startTrafficCounter({ ...parts, writeRows: store.writeTraffic });
  const providers = await readMailboxProviders(publishedEvents, store);
  const deliverabilityCounter = deliverability.startDeliverabilityCounter({
    ...parts,
    writeRows: store.writeDeliverability,
    findMailboxProvider: (domain) => providers.get(domain) ?? 'unknown',
  });
  const { publish, subscribe, endStartup } = createEvents(clock);
  subscribe(traffic.createTrafficHandlers(trafficCounter));
  subscribe(deliverability.createDeliverabilityHandlers(deliverabilityCounter));
  endStartup();
  for (const event of publishedEvents) publish(event);
  await trafficCounter.stop();
  await deliverabilityCounter.stop();
}

/** Returns the stored mailbox providers of the recipients of the events, by domain. */
async function readMailboxProviders(
  events: readonly CommandEvent[],
  store: CommandFiguresParts['store'],
): Promise<ReadonlyMap<string, MailboxProvider>> {
  const domains = events.flatMap((event) => ('from' in event ? [parseAddress(event.to)?.domain ?? ''] : []));
  const entries = await store.findMailboxProviders([...new Set(domains)]);
  return new Map(entries.map(({ domain, provider }) => [domain, provider]));
}
