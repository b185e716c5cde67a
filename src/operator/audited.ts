/**
 * The store as an operator uses it: every change is written into the audit log, with who made it, what it was about, and how
 * it was before and after. Whatever a machine does by itself (accepting, delivering, notices) is in histories, not here.
 *
 * Promises: secrets, hashes of keys and message texts are never written; a change that was refused is none. Where the change
 * is made and the log cannot be written, the caller hears of it.
 */
import type { SendingDomain } from '../record/domain.ts';
import type { AuditEntry } from '../store/operator.ts';
import type { Account, ApiKey, Changed, Guarded, MailDetails, Store } from '../store/store.ts';

/** Addresses of a list that an entry names; of the rest it tells the number. */
const NAMED = 5;

/** `who` is `cli:NAME`, `page` or `token:NAME`. */
export function audited(store: Store, who: string, now: () => number): Store {
  async function write(action: string, subject: string, before: unknown, after: unknown): Promise<void> {
    const entry: Omit<AuditEntry, 'id'> = { at: now(), who, action, subject, before: json(before), after: json(after) };
    try {
      await store.writeAudit(entry);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`${action} ${subject} is done, but could not be written into the audit log: ${why}`);
    }
  }

  /** Makes a change, and writes it where it was made. */
  async function change<T, R extends Changed<T> | { readonly kind: 'stale' }>(
    action: string,
    subject: string,
    before: unknown,
    make: Promise<R>,
    shown: (value: T) => unknown,
  ): Promise<R> {
    const made = await make;
    if (made.kind === 'done') await write(action, subject, before, shown(made.value as T));
    return made;
  }

  const accountNow = async (name: string) => {
    const account = (await store.listAccounts()).find((one) => one.name === name);
    return account === undefined ? null : accountShown(account);
  };
  const domainNow = async (name: string) => {
    const domain = await store.findDomain(name);
    return domain === null ? null : domainShown(domain);
  };

  async function operate(
    action: string,
    id: string,
    work: () => ReturnType<Store['retryMail']>,
  ): ReturnType<Store['retryMail']> {
    const before = await store.showMail(id);
    const answer = await work();
    if (answer.kind === 'done') await write(action, id, stateOf(before), stateOf(await store.showMail(id)));
    return answer;
  }

  return {
    ...store,
    createAccount: (name, limits, at) =>
      change<Account, Changed<Account>>(
        'account.create',
        name,
        null,
        store.createAccount(name, limits, at),
        accountShown,
      ),
    async setAccount(name, set, at, expected) {
      const before = await accountNow(name);
      const make = store.setAccount(name, set, at, expected);
      return change<Account, Guarded<Account>>('account.set', name, before, make, accountShown);
    },
    async lockAccount(name, reason, at, expected) {
      const before = await accountNow(name);
      const make = store.lockAccount(name, reason, at, expected);
      return change<Account, Guarded<Account>>('account.lock', name, before, make, accountShown);
    },
    async unlockAccount(name, at, expected) {
      const before = await accountNow(name);
      const make = store.unlockAccount(name, at, expected);
      return change<Account, Guarded<Account>>('account.unlock', name, before, make, accountShown);
    },
    createKey: (account, key, at) =>
      change<ApiKey, Changed<ApiKey>>('key.create', account, null, store.createKey(account, key, at), keyShown),
    revokeKey: (id, at) =>
      change<ApiKey, Changed<ApiKey>>('key.revoke', `key_${id}`, null, store.revokeKey(id, at), keyShown),
    rotateKey: (id, key, until, at) =>
      change<ApiKey, Changed<ApiKey>>('key.rotate', `key_${id}`, null, store.rotateKey(id, key, until, at), keyShown),
    addSuppressions: (list, entries) =>
      change<number, Changed<number>>('suppression.add', list, null, store.addSuppressions(list, entries), (added) => ({
        added,
        addresses: entries.slice(0, NAMED).map(({ address }) => address),
        ...(entries.length > NAMED ? { andMore: entries.length - NAMED } : {}),
      })),
    async removeSuppression(list, address) {
      const answer = await store.removeSuppression(list, address);
      if (answer.kind === 'done' && answer.value) await write('suppression.remove', list, { address }, null);
      return answer;
    },
    addDomain: (account, domain, at) =>
      change<SendingDomain, Changed<SendingDomain>>(
        'domain.add',
        domain.name,
        null,
        store.addDomain(account, domain, at),
        domainShown,
      ),
    async updateDomain(update) {
      const before = (await store.listDomains()).find(({ id }) => id === update.id);
      const answer = await store.updateDomain(update);
      if (answer.kind !== 'done' || before === undefined) return answer;
      const [was, is] = [domainShown(before), domainShown(answer.value)];
      // A check that found everything as it was is no change.
      if (json(was) !== json(is)) await write('domain.update', before.name, was, is);
      return answer;
    },
    async setSubdomains(name, subdomains) {
      const before = await domainNow(name);
      const make = store.setSubdomains(name, subdomains);
      return change<SendingDomain, Changed<SendingDomain>>('domain.set', name, before, make, domainShown);
    },
    async removeDomain(name) {
      const before = await domainNow(name);
      const make = store.removeDomain(name);
      return change<SendingDomain, Changed<SendingDomain>>('domain.remove', name, before, make, () => null);
    },
    retryMail: (id, at) => operate('message.retry', id, () => store.retryMail(id, at)),
    cancelMail: (id, at) => operate('message.cancel', id, () => store.cancelMail(id, at)),
    async createToken(token, at) {
      const made = await store.createToken(token, at);
      if (made.kind === 'done') await write('token.create', token.name, null, { expiresAt: token.expiresAt });
      return made;
    },
    async revokeToken(id, at) {
      const answer = await store.revokeToken(id, at);
      if (answer.kind === 'done') await write('token.revoke', answer.value.name, null, null);
      return answer;
    },
  };
}

function json(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

function accountShown({ limits, locked, thresholds }: Account) {
  return { limits, locked: locked?.reason ?? null, thresholds };
}

/** Never the hash. */
function keyShown({ id, name, prefix, expiresAt, revokedAt }: ApiKey) {
  return { id: `key_${id}`, name, prefix, expiresAt, revokedAt };
}

/** Never the keys themselves. */
function domainShown({ status, subdomains, keys }: SendingDomain) {
  return { status, subdomains, keys: keys.map(({ selector, state }) => `${selector} ${state}`) };
}

function stateOf(mail: MailDetails | null) {
  return mail === null ? null : { state: mail.state, dueAt: mail.dueAt };
}
