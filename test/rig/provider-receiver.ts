/** Runs the receivers of provider events on loopback, with the store and the intake of the service. */
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createEventListener, type EventRoute } from '../../src/feedback/http-listener.ts';
import { REQUEST_TIME_LIMITS, type RequestTimeLimits } from '../../src/feedback/http-server.ts';
import { createFeedbackIntake } from '../../src/feedback/intake.ts';
import { type BodyReader, createBodyReader } from '../../src/feedback/provider/body-reader.ts';
import { createProviderRoute } from '../../src/feedback/provider/receiver.ts';
import { bind } from '../../src/http/bind.ts';
import type { ServiceEvent } from '../../src/model/events.ts';
import type { EventFormat, EventProviderName } from '../../src/providers/provider.ts';
import { PROVIDERS } from '../../src/providers/providers.ts';
import { createGroupCommit } from '../../src/store/commits.ts';
import type { FeedbackStore } from '../../src/store/contract.ts';
import { createConnections } from './connections.ts';

/** The maximum number of reports in one commit. A small number, so that one request has several commits. */
const MAX_BATCH_REPORTS = 4;

export interface ReceiverRig {
  readonly port: number;
  /** The URL of the endpoint of the provider. */
  readonly url: string;
  /** The public URL of the endpoint, which some signatures cover. */
  readonly publicUrl: string;
  /** The events of the service, in order. */
  readonly events: readonly ServiceEvent[];
  /** The reasons of the refused requests, in order. */
  readonly refusals: () => readonly string[];
  /** The operations that failed, in order. */
  readonly faults: readonly string[];
}

/** Starts the listener with the endpoint of one provider. The listener ends with the test. */
export async function startReceiver(
  name: EventProviderName,
  secret: string,
  store: Pick<FeedbackStore, 'recordFeedback'>,
  {
    format: overrides = {},
    timeLimits = REQUEST_TIME_LIMITS,
    readLarge,
  }: {
    readonly format?: Partial<EventFormat>;
    readonly timeLimits?: RequestTimeLimits;
    /** Replaces the reader of large bodies. */
    readonly readLarge?: BodyReader['read'];
  } = {},
): Promise<ReceiverRig> {
  const definition = PROVIDERS.find((provider) => provider.name === name);
  if (definition === undefined || definition.events === null) throw new Error(`${name} has no events`);
  const format = { ...definition.events, ...overrides };
  const authentication = format.createAuthenticate([secret]);
  if (!authentication.ok) throw new Error(authentication.fault);
  const events: ServiceEvent[] = [];
  const faults: string[] = [];
  const publish = (event: ServiceEvent) => void events.push(event);
  const onError = (operation: string, error: unknown) => void faults.push(`${operation}: ${String(error)}`);
  const commits = createGroupCommit(store.recordFeedback, { maxBatch: MAX_BATCH_REPORTS, now: systemClock.now });
  const intake = createFeedbackIntake({
    clock: systemClock,
    record: (report) => commits.submit(report),
    publish,
    onPending: () => undefined,
  });
  const connections = createConnections();
  const largeBodies = createBodyReader({ clock: systemClock, prepareThread: () => undefined, onError });
  const path = `/events/${name}`;
  const publicUrl = `https://events.example.org${path}`;
  const route: EventRoute = createProviderRoute({
    provider: name,
    format,
    authenticate: authentication.secret,
    url: publicUrl,
    usesReferences: definition.relay?.findReference != null,
    connections,
    clock: systemClock,
    largeBodies: readLarge === undefined ? largeBodies : { read: readLarge },
    recordReport: intake.recordReport,
    publish,
    onError,
  });
  const listener = createEventListener({
    listenAddress: { host: '127.0.0.1', port: 0 },
    bind,
    connections,
    clock: systemClock,
    certificate: null,
    routes: new Map([[path, route]]),
    publish,
    onError,
    timeLimits,
  });
  const { port } = await listener.start();
  onTestFinished(async () => {
    intake.close();
    await listener.close();
    await largeBodies.close();
  });
  const refusals = () => events.flatMap((event) => (event.type === 'report.refused' ? [event.reason] : []));
  return { port, url: `http://127.0.0.1:${port}${path}`, publicUrl, events, refusals, faults };
}
