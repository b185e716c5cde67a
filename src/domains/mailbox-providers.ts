/**
 * Finds the mailbox providers of domains by their MX records, without delaying a caller: from a cache, the store and
 * DNS. An answer lasts 24 h and is used until the next one arrives. The domain whose answer the most events need is
 * first, so a client that sends to random domains does not delay a frequent one. Memory is bounded.
 */
import type { Clock } from '../clock.ts';
import { findMailboxProvider, type MailboxProvider, type StoredMailboxProvider } from '../model/mailbox-provider.ts';
import { SIMULATOR_DOMAIN } from '../model/outcome.ts';
import type { DeliverabilityStore } from '../store/contract.ts';
import type { Resolver } from './dns.ts';

const TTL_MS = 24 * 3_600_000;
const RETRY_MS = 600_000;
const TICK_MS = 250;
const MAX_CONCURRENT_LOOKUPS = 8;
const LOOKUPS_PER_SECOND = 10;
/** Lookups that may start without delay after an idle period. */
const LOOKUP_BURST = 50;
/** Above it, the domains with the fewest events are dropped until half of this number remains. */
const MAX_WAITING_DOMAINS = 1_000;
const MAX_CACHED_ANSWERS = 20_000;
const MAX_STORE_BATCH = 200;

export interface MailboxProviders {
  /** Null during the first lookup, `unknown` if every lookup has failed. `domain` is in lower case. */
  find(domain: string, eventCount: number): MailboxProvider | null;
  stop(): Promise<void>;
}

export interface MailboxProvidersParts {
  readonly clock: Clock;
  readonly resolver: Pick<Resolver, 'lookUpMx' | 'lookUpAddresses'> | null;
  readonly store: Pick<DeliverabilityStore, 'findMailboxProviders' | 'writeMailboxProviders'>;
  readonly onError: (error: unknown) => void;
}

interface CachedAnswer {
  readonly provider: MailboxProvider;
  readonly validUntil: number;
}

export function createMailboxProviders({ clock, resolver, store, onError }: MailboxProvidersParts): MailboxProviders {
  /** The least recently used answer is the first. */
  const answers = new Map<string, CachedAnswer>();
  /** With the number of events that need the answer. */
  const domainsWaitingForStore = new Map<string, number>();
  /** The store has no answer, or only an expired one. */
  const domainsWaitingForDns = new Map<string, number>();
  const domainsInProgress = new Set<string>();
  const lookups = new Set<Promise<void>>();
  let unstoredAnswers: StoredMailboxProvider[] = [];
  let tokens = LOOKUP_BURST;
  let currentTick: Promise<void> = Promise.resolve();
  let cancelTick: (() => void) | null = null;
  let isFailing = false;
  let isStopped = false;

  function find(domain: string, eventCount: number): MailboxProvider | null {
    if (domain === SIMULATOR_DOMAIN) return 'simulator';
    const answer = answers.get(domain);
    if (answer !== undefined) {
      answers.delete(domain);
      answers.set(domain, answer);
      if (answer.validUntil <= clock.now()) requestLookup(domain, eventCount);
      return answer.provider;
    }
    requestLookup(domain, eventCount);
    return null;
  }

  function requestLookup(domain: string, eventCount: number): void {
    if (isStopped || domainsInProgress.has(domain)) return;
    for (const waitingDomains of [domainsWaitingForStore, domainsWaitingForDns]) {
      const waitingEvents = waitingDomains.get(domain);
      if (waitingEvents === undefined) continue;
      if (eventCount > waitingEvents) waitingDomains.set(domain, eventCount);
      return;
    }
    domainsWaitingForStore.set(domain, eventCount);
    for (const waitingDomains of [domainsWaitingForStore, domainsWaitingForDns]) {
      if (waitingDomains.size <= MAX_WAITING_DOMAINS) continue;
      const remainingDomains = sortByEvents(waitingDomains).slice(0, MAX_WAITING_DOMAINS / 2);
      waitingDomains.clear();
      for (const [name, count] of remainingDomains) waitingDomains.set(name, count);
    }
    cancelTick ??= clock.after(TICK_MS, startTick);
  }

  function startTick(): void {
    currentTick = performDueWork();
  }

  async function performDueWork(): Promise<void> {
    try {
      tokens = Math.min(LOOKUP_BURST, tokens + (LOOKUPS_PER_SECOND * TICK_MS) / 1_000);
      if (domainsWaitingForStore.size > 0) await readStore();
      startLookups();
      if (unstoredAnswers.length > 0) await writeStore();
      isFailing = false;
    } catch (error) {
      if (!isFailing) onError(error);
      isFailing = true;
    }
    const hasWork = domainsWaitingForStore.size + domainsWaitingForDns.size + lookups.size + unstoredAnswers.length > 0;
    if (!hasWork) tokens = LOOKUP_BURST;
    cancelTick = hasWork && !isStopped ? clock.after(TICK_MS, startTick) : null;
  }

  async function readStore(): Promise<void> {
    const batch = sortByEvents(domainsWaitingForStore).slice(0, MAX_STORE_BATCH);
    const storedProviders = await store.findMailboxProviders(batch.map(([domain]) => domain));
    const storedByDomain = new Map(storedProviders.map((entry) => [entry.domain, entry]));
    for (const [domain, events] of batch) {
      domainsWaitingForStore.delete(domain);
      const entry = storedByDomain.get(domain);
      if (entry !== undefined) cacheAnswer(domain, entry.provider, entry.lookedUpAt + TTL_MS);
      if (entry !== undefined && entry.lookedUpAt + TTL_MS > clock.now()) continue;
      if (resolver !== null) domainsWaitingForDns.set(domain, events);
      else if (entry === undefined) cacheAnswer(domain, 'unknown', clock.now() + RETRY_MS);
    }
  }

  function startLookups(): void {
    if (isStopped || domainsWaitingForDns.size === 0) return;
    for (const [domain] of sortByEvents(domainsWaitingForDns)) {
      if (tokens < 1 || lookups.size >= MAX_CONCURRENT_LOOKUPS) return;
      tokens -= 1;
      domainsWaitingForDns.delete(domain);
      domainsInProgress.add(domain);
      const lookup = lookUp(domain).then((provider) => {
        domainsInProgress.delete(domain);
        lookups.delete(lookup);
        recordAnswer(domain, provider);
      });
      lookups.add(lookup);
    }
  }

  /** Null if the lookup failed. A domain without MX records is its own mail server (RFC 5321 section 5.1). */
  async function lookUp(domain: string): Promise<MailboxProvider | null> {
    if (resolver === null) return null;
    const mx = await resolver.lookUpMx(domain);
    switch (mx.kind) {
      case 'found':
        return findMailboxProvider(mx.values);
      case 'failed':
        return null;
      case 'none': {
        const addresses = await resolver.lookUpAddresses(domain);
        return addresses.kind === 'failed' ? null : addresses.kind === 'found' ? 'other' : 'none';
      }
    }
  }

  function recordAnswer(domain: string, provider: MailboxProvider | null): void {
    const now = clock.now();
    if (provider === null) {
      cacheAnswer(domain, answers.get(domain)?.provider ?? 'unknown', now + RETRY_MS);
      return;
    }
    cacheAnswer(domain, provider, now + TTL_MS);
    unstoredAnswers.push({ domain, provider, lookedUpAt: now });
  }

  function cacheAnswer(domain: string, provider: MailboxProvider, validUntil: number): void {
    answers.delete(domain);
    answers.set(domain, { provider, validUntil });
    const [oldest] = answers.keys();
    if (answers.size > MAX_CACHED_ANSWERS && oldest !== undefined) answers.delete(oldest);
  }

  /** What cannot be stored remains in memory. */
  async function writeStore(): Promise<void> {
    const batch = new Map(unstoredAnswers.map((entry) => [entry.domain, entry]));
    unstoredAnswers = [];
    await store.writeMailboxProviders([...batch.values()]);
  }

  return {
    find,
    async stop() {
      isStopped = true;
      cancelTick?.();
      await currentTick;
      domainsWaitingForStore.clear();
      domainsWaitingForDns.clear();
      if (unstoredAnswers.length > 0) await writeStore().catch(onError);
    },
  };
}

function sortByEvents(
  waitingDomains: ReadonlyMap<string, number>,
): readonly (readonly [domain: string, events: number])[] {
  return [...waitingDomains].sort(([, a], [, b]) => b - a);
}
