/**
 * Sending domains by heart, so that admission and signing cost no look at the store. The store's watch feeds it; what the
 * last `apply` said holds from the next question on.
 */
import type { DkimKey, SendingDomain } from '../model/domain.ts';
import { maySend, signingKeys } from '../model/domain.ts';
import type { PublishOf } from '../model/events.ts';

/** What a message from an address of this domain is signed with. */
export interface Signing {
  /** The `d=` of the signature: the sending domain itself, or the one it is a subdomain of. */
  readonly domain: string;
  readonly keys: readonly DkimKey[];
  /** False where it once was authenticated and may not send any more. */
  readonly maySend: boolean;
}

export interface DomainDirectoryParts {
  readonly clock: { now(): number };
  readonly publish: PublishOf<'domain.changed'>;
}

export class DomainDirectory {
  readonly #byName = new Map<string, SendingDomain>();
  readonly #parts: DomainDirectoryParts;

  constructor(parts: DomainDirectoryParts) {
    this.#parts = parts;
  }

  apply({
    domains,
    removed,
  }: {
    readonly domains: readonly SendingDomain[];
    readonly removed: readonly string[];
  }): void {
    for (const name of removed) this.#byName.delete(name);
    for (const domain of domains) this.#byName.set(domain.name, domain);
    const { clock, publish } = this.#parts;
    if (domains.length + removed.length > 0) publish({ type: 'domain.changed', at: clock.now() });
  }

  /** True where the account may send from this domain (lower-case A-label). */
  authenticated(accountId: number, name: string): boolean {
    const domain = this.#find(accountId, name);
    return domain !== null && maySend(domain);
  }

  /** The keys that must sign mail of the account from this domain, or null where none was ever authenticated for it. */
  signing(accountId: number, name: string): Signing | null {
    const domain = this.#find(accountId, name);
    if (domain === null || domain.authenticatedAt === null) return null;
    return { domain: domain.name, keys: signingKeys(domain), maySend: maySend(domain) };
  }

  /** The domain itself, else the nearest one above it whose owner lets subdomains send. */
  #find(accountId: number, name: string): SendingDomain | null {
    const exact = this.#byName.get(name);
    if (exact !== undefined) return exact.accountId === accountId ? exact : null;
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const above = this.#byName.get(name.slice(dot + 1));
      if (above !== undefined) return above.accountId === accountId && above.subdomains ? above : null;
    }
    return null;
  }
}
