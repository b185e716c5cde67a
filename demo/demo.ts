/**
 * The demo: the real service, its code unchanged, on a sandbox in a temporary folder, with a past written into it and a
 * world of played mail servers around it. Nothing leaves the machine, and no setting, `.env` or data of an installation is
 * looked at.
 *
 * Promises: the service listens before the past is written; `stop` leaves no file and no port behind, whenever it is called.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { version } from '../src/cli/version.ts';
import { type MonotonicClock, systemClock } from '../src/clock.ts';
import { describeSettings, loadSettings } from '../src/config/load.ts';
import { createResolver } from '../src/domains/dns.ts';
import { returnPathKey, signingParts } from '../src/domains/setup.ts';
import { createPrepare, DomainCache } from '../src/domains/signing.ts';
import { type Service, startService } from '../src/main.ts';
import type { LeasedMessage } from '../src/model/message.ts';
import { openStore } from '../src/store/open.ts';
import { startDns } from '../test/rig/dns.ts';
import { writeHistory } from './history.ts';
import { operatorActions } from './operators.ts';
import { pauseStore } from './paused-store.ts';
import { planHistory } from './plan.ts';
import { seededRandom as chanceOf } from './random.ts';
import { Recipients } from './recipients.ts';
import { startTraffic, type Traffic } from './traffic.ts';
import { createDemoTransport } from './transport.ts';

export interface DemoOptions {
  /** `host:port`; port 0 is any free one. */
  readonly listen: string;
  readonly operatorListen: string;
  readonly seed: number;
  /** A time at which everything stands still, in ms since the epoch, keys the same each time too; null for the machine's. */
  readonly now: number | null;
  /** Whether more is sent once the past is there. */
  readonly live: boolean;
}

export interface Demo {
  readonly service: Service;
  readonly folder: string;
  /** Resolves once the past is there; to null where it was stopped before. */
  readonly history: Promise<History | null>;
  stop(): Promise<void>;
}

export interface History {
  readonly messageCount: number;
  /** An API key with which a visitor may send too, of the account `VISITED`. */
  readonly key: string;
}

export const VISITOR_ACCOUNT = 'shop';
/** The newest of the past that the inbox shows. */
const CAPTURED = 80;
/** Tries under way are hung up at a stop; the rest of it is quick. */
const DRAIN_MS = 2_000;

export async function startDemo(options: DemoOptions, progress: (part: number) => void): Promise<Demo> {
  const undo: (() => unknown)[] = [];
  const stop = async () => {
    for (const one of undo.splice(0).reverse()) await one();
  };
  try {
    return { ...(await start(options, progress, undo)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(
  { listen, operatorListen, seed, now, live }: DemoOptions,
  progress: (part: number) => void,
  undo: (() => unknown)[],
): Promise<Omit<Demo, 'stop'>> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-demo-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const dns = await startDns();
  undo.push(() => dns.close());
  const chance = chanceOf(seed);
  const environment = {
    POSTRIDER_DATABASE: `sqlite:${join(folder, 'postrider.db')}`,
    POSTRIDER_LISTEN: listen,
    POSTRIDER_OPERATOR_LISTEN: operatorListen,
    POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
    POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.lumen.example',
    POSTRIDER_DNS: `${dns.host}:${dns.port}`,
    POSTRIDER_ON_UNCERTAIN: 'hold',
    POSTRIDER_LOG: 'error',
    ...(now === null ? {} : { POSTRIDER_SECRET: chance.bytes(32).toString('hex') }),
  };
  const settings = loadSettings(environment, null);
  const clock: MonotonicClock = now === null ? systemClock : { ...systemClock, now: () => now };
  const startedAt = clock.now();
  const people = new Recipients(chance);
  const tries = new Map<string, number>();
  let traffic: Traffic | null = null;
  const played = createDemoTransport({
    people,
    chance,
    clock,
    attemptCounts: tries,
    onDelivered: (message, fate) => traffic?.onDelivered(message, fate),
  });

  const store = await openStore(settings.database, { exclusive: true });
  const gate = pauseStore(store);
  // It closes the store, also where it cannot start.
  const service = await startService(settings, {
    clock,
    openStore: () => Promise.resolve(gate.store),
    wrapTransport: played.wrap,
    drainMs: DRAIN_MS,
    operatorApi: {
      version: version(),
      describeSettings: () => describeSettings(environment, null),
    },
  });
  undo.push(() => service.stop());
  undo.push(() => played.abortAttempts());

  let stopped = false;
  const filled = fill();
  // Whoever waits for it hears of a failure; a demo that is stopped meanwhile does not.
  filled.catch(() => undefined);
  undo.push(async () => {
    stopped = true;
    await filled.catch(() => undefined);
    await traffic?.stop();
  });
  return { service, folder, history: filled };

  async function fill(): Promise<History | null> {
    const returnPath = returnPathKey(settings);
    if (returnPath === null) throw new Error('the demo has no return path');
    const plan = planHistory(startedAt, people, chance);
    const planned = new Map<string, number>();
    for (const { application } of plan) planned.set(application.account, (planned.get(application.account) ?? 0) + 1);
    const keys = new Map<string, { readonly id: number; readonly key: string }>();
    const acts = await operatorActions({
      settings,
      zone: dns.zone,
      resolver: createResolver(settings.dns),
      store,
      chance,
      randomBytes: now === null ? randomBytes : chance.bytes,
      now: startedAt,
      messageCounts: planned,
      onKeyCreated: (account, id, key) => keys.set(account, { id, key }),
    });
    let taken: LeasedMessage[] = [];
    await writeHistory({
      store,
      plan,
      actions: acts,
      people,
      chance,
      returnPath,
      policy: settings,
      keyOf: (account) => keys.get(account)?.id ?? 0,
      now: startedAt,
      onAttempt(mail, { outcome: { kind } }) {
        if (kind === 'deferred') tries.set(mail.id, mail.attempts);
        else tries.delete(mail.id);
        if (kind === 'delivered') taken = [...taken.slice(1 - CAPTURED), mail];
      },
      progress,
      isStopped: () => stopped,
    });
    await capturePast(taken);
    if (stopped) return null;
    gate.resume();
    const { publicUrl, feedback } = service;
    if (live && publicUrl !== null && feedback.smtp !== null) {
      const keyOf = (account: string) => keys.get(account)?.key;
      traffic = startTraffic({ publicUrl, feedback: feedback.smtp, keyOf, people, chance, clock });
    }
    return { messageCount: plan.length, key: keys.get(VISITOR_ACCOUNT)?.key ?? '' };
  }

  /** The inbox as it would be: composed and signed as they went out, with the time at which they did. */
  async function capturePast(mails: readonly LeasedMessage[]): Promise<void> {
    const domains = new DomainCache({ clock, publish: () => undefined });
    await store.watchDirectory((changes) => domains.apply(changes));
    const prepare = createPrepare({ domains, ...signingParts(settings), onError: () => undefined });
    for (const mail of mails) {
      if (stopped) return;
      await played.capture(await prepare(mail));
      const at = mail.acceptedAt / 1000;
      if (service.inboxPath !== null) await utimes(join(service.inboxPath, 'new', `${mail.id}.eml`), at, at);
    }
  }
}
