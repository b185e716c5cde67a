/**
 * The store for an operator: it writes an audit log entry with the actor in the transaction of each change (model/audit.ts). Actions
 * of the service itself (acceptance, delivery, feedback) are in the histories of messages, not in the audit log.
 *
 * Guarantees: a change and its entry are committed together. A change that fails has no entry.
 */
import type { Actor } from '../model/audit.ts';
import type { OperatorStore } from '../store/contract.ts';

/** `who` is `cli:NAME`, `page` or `token:NAME`. */
export function createAuditedStore<Held extends OperatorStore>(
  store: Held,
  who: string,
  now: () => number,
): Held & OperatorStore {
  const actor = (): Actor => ({ who, at: now() });
  return {
    ...store,
    createAccount: (name, limits, at) => store.createAccount(name, limits, at, actor()),
    setAccount: (name, change, at, expected) => store.setAccount(name, change, at, expected, actor()),
    lockAccount: (name, reason, at, expected) => store.lockAccount(name, reason, at, expected, actor()),
    unlockAccount: (name, at, expected) => store.unlockAccount(name, at, expected, actor()),
    createKey: (account, key, at) => store.createKey(account, key, at, actor()),
    revokeKey: (id, at) => store.revokeKey(id, at, actor()),
    rotateKey: (id, key, until, at) => store.rotateKey(id, key, until, at, actor()),
    addSuppressions: (list, entries) => store.addSuppressions(list, entries, actor()),
    importSuppressions: (list, entries, step) => store.importSuppressions(list, entries, step, actor()),
    removeSuppression: (list, address) => store.removeSuppression(list, address, actor()),
    addDomain: (account, domain, at) => store.addDomain(account, domain, at, actor()),
    updateDomain: (update) => store.updateDomain(update, actor()),
    setSubdomains: (name, subdomains) => store.setSubdomains(name, subdomains, actor()),
    removeDomain: (name) => store.removeDomain(name, actor()),
    retryMessage: (id, at) => store.retryMessage(id, at, actor()),
    cancelMessage: (id, at) => store.cancelMessage(id, at, actor()),
    createToken: (token, at) => store.createToken(token, at, actor()),
    revokeToken: (id, at) => store.revokeToken(id, at, actor()),
  };
}
