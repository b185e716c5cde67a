/** The store of an operator: each change writes its audit log entry in its transaction (model/audit.ts). */
import type { Actor } from '../model/audit.ts';
import type { OperatorStore } from '../store/contract.ts';

/** `actorName` is `cli:NAME`, `page` or `token:NAME`. */
export function createAuditedStore<StoreType extends OperatorStore>(
  store: StoreType,
  actorName: string,
  now: () => number,
): StoreType & OperatorStore {
  const createActor = (): Actor => ({ name: actorName, at: now() });
  return {
    ...store,
    createAccount: (name, limits, at) => store.createAccount(name, limits, at, createActor()),
    setAccount: (name, change, at, expected) => store.setAccount(name, change, at, expected, createActor()),
    lockAccount: (name, reason, at, expected) => store.lockAccount(name, reason, at, expected, createActor()),
    unlockAccount: (name, at, expected) => store.unlockAccount(name, at, expected, createActor()),
    createKey: (account, key, at) => store.createKey(account, key, at, createActor()),
    importKey: (account, key, at) => store.importKey(account, key, at, createActor()),
    revokeKey: (id, at) => store.revokeKey(id, at, createActor()),
    rotateKey: (id, key, until, at) => store.rotateKey(id, key, until, at, createActor()),
    addSuppressions: (list, entries) => store.addSuppressions(list, entries, createActor()),
    importSuppressions: (list, entries, step) => store.importSuppressions(list, entries, step, createActor()),
    removeSuppression: (list, address, providerRemoval) =>
      store.removeSuppression(list, address, providerRemoval, createActor()),
    setSender: (account, pattern, change) => store.setSender(account, pattern, change, createActor()),
    removeSender: (account, pattern) => store.removeSender(account, pattern, createActor()),
    addDomain: (account, domain, at) => store.addDomain(account, domain, at, createActor()),
    updateDomain: (update) => store.updateDomain(update, createActor()),
    setDomain: (name, change) => store.setDomain(name, change, createActor()),
    removeDomain: (name) => store.removeDomain(name, createActor()),
    retryMessage: (id, at) => store.retryMessage(id, at, createActor()),
    cancelMessage: (id, at) => store.cancelMessage(id, at, createActor()),
    changeMessages: (step, at) => store.changeMessages(step, at, createActor()),
    resendMessage: (request, at) => store.resendMessage(request, at, createActor()),
    createToken: (token, at) => store.createToken(token, at, createActor()),
    revokeToken: (id, at) => store.revokeToken(id, at, createActor()),
    createWebhook: (webhook, at) => store.createWebhook(webhook, at, createActor()),
    updateWebhook: (id, change) => store.updateWebhook(id, change, createActor()),
    enableWebhook: (id) => store.enableWebhook(id, createActor()),
    disableWebhook: (id, at) => store.disableWebhook(id, at, createActor()),
    rotateWebhookSecret: (id, sealed, until) => store.rotateWebhookSecret(id, sealed, until, createActor()),
    deleteWebhook: (id) => store.deleteWebhook(id, createActor()),
    addTestDelivery: (id, delivery, at) => store.addTestDelivery(id, delivery, at, createActor()),
    replayDelivery: (id, delivery, at) => store.replayDelivery(id, delivery, at, createActor()),
    addHold: (hold, at) => store.addHold(hold, at, createActor()),
    releaseHolds: (ids, at) => store.releaseHolds(ids, at, createActor()),
    setRoutingPolicy: (scope, list) => store.setRoutingPolicy(scope, list, createActor()),
    pauseRoute: (route, pause) => store.pauseRoute(route, pause, createActor()),
    recordRouteSenders: (senders) => store.recordRouteSenders(senders, createActor()),
    addInboxRule: (rule, at) => store.addInboxRule(rule, at, createActor()),
    removeInboxRule: (id) => store.removeInboxRule(id, createActor()),
    replayDeliveries: (id, selection, after, at, limit) =>
      store.replayDeliveries(id, selection, after, at, limit, createActor()),
  };
}
