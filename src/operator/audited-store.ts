/**
 * Creates the store for the operations of an operator. The store writes an audit log entry with the actor in the
 * transaction of each change (model/audit.ts). The histories of messages record actions of the service (acceptance,
 * delivery, feedback). The audit log does not record them.
 *
 * Guarantees: a change and its entry are committed together. A failed change writes no entry.
 */
import type { Actor } from '../model/audit.ts';
import type { OperatorStore } from '../store/contract.ts';

/** Creates the store of an actor. `actorName` is `cli:NAME`, `page` or `token:NAME`. */
export function createAuditedStore<StoreType extends OperatorStore>(
  store: StoreType,
  actorName: string,
  now: () => number,
): StoreType & OperatorStore {
  const actorNow = (): Actor => ({ name: actorName, at: now() });
  return {
    ...store,
    createAccount: (name, limits, at) => store.createAccount(name, limits, at, actorNow()),
    setAccount: (name, change, at, expected) => store.setAccount(name, change, at, expected, actorNow()),
    lockAccount: (name, reason, at, expected) => store.lockAccount(name, reason, at, expected, actorNow()),
    unlockAccount: (name, at, expected) => store.unlockAccount(name, at, expected, actorNow()),
    createKey: (account, key, at) => store.createKey(account, key, at, actorNow()),
    importKey: (account, key, at) => store.importKey(account, key, at, actorNow()),
    revokeKey: (id, at) => store.revokeKey(id, at, actorNow()),
    rotateKey: (id, key, until, at) => store.rotateKey(id, key, until, at, actorNow()),
    addSuppressions: (list, entries) => store.addSuppressions(list, entries, actorNow()),
    importSuppressions: (list, entries, step) => store.importSuppressions(list, entries, step, actorNow()),
    removeSuppression: (list, address) => store.removeSuppression(list, address, actorNow()),
    addDomain: (account, domain, at) => store.addDomain(account, domain, at, actorNow()),
    updateDomain: (update) => store.updateDomain(update, actorNow()),
    setSubdomains: (name, subdomains) => store.setSubdomains(name, subdomains, actorNow()),
    removeDomain: (name) => store.removeDomain(name, actorNow()),
    retryMessage: (id, at) => store.retryMessage(id, at, actorNow()),
    cancelMessage: (id, at) => store.cancelMessage(id, at, actorNow()),
    createToken: (token, at) => store.createToken(token, at, actorNow()),
    revokeToken: (id, at) => store.revokeToken(id, at, actorNow()),
  };
}
