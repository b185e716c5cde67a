import {
  createAccount,
  listAccounts,
  lockAccount,
  setAccount,
  showAccount,
  unlockAccount,
} from '../operations/accounts.ts';
import { listAudit } from '../operations/audit.ts';
import { showDeliverability } from '../operations/deliverability.ts';
import { runDoctor, testFeedbackLoop } from '../operations/doctor.ts';
import {
  addDomain,
  listDomains,
  removeDomain,
  rotateDomain,
  setDomain,
  showDomain,
  verifyDomain,
} from '../operations/domains.ts';
import { listFeedback, showFeedback } from '../operations/feedback.ts';
import { addHold, listHolds, releaseHolds } from '../operations/holds.ts';
import { listInbox, showInbox } from '../operations/inbox.ts';
import { addInboxRule, listInboxRules, removeInboxRule } from '../operations/inbox-rules.ts';
import { listProviders, showConfig, showSetup } from '../operations/installation.ts';
import { createKey, importKey, listKeys, revokeKey, rotateKey } from '../operations/keys.ts';
import { countMessages, searchMessages } from '../operations/message-search.ts';
import { sendTestMessage } from '../operations/message-test.ts';
import {
  cancelMessage,
  changeMessages,
  explainMessage,
  resendMessage,
  retryMessage,
  showMessage,
  showMessageSource,
} from '../operations/messages.ts';
import { showOverview } from '../operations/overview.ts';
import { listRoutes, pauseRoute, resumeRoute, showRoute, testRoute } from '../operations/routes.ts';
import { clearRouting, setRouting, showRouting } from '../operations/routing.ts';
import { listSenders, removeSender, setSender } from '../operations/senders.ts';
import { addSuppression, listSuppressions, removeSuppression, showSuppression } from '../operations/suppressions.ts';
import { createToken, listTokens, revokeToken } from '../operations/tokens.ts';
import {
  createWebhook,
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  listDeliveries,
  listWebhooks,
  replayWebhook,
  rotateWebhook,
  showWebhook,
  showWebhookStatistics,
  testWebhook,
  updateWebhook,
} from '../operations/webhooks.ts';
import { createOperationRoute, type OperationRoute } from './operation-route.ts';

/** Keeps the response time below 100 ms. The client continues the search with `next`. */
const SEARCH_TIME_LIMIT = '60ms';

export const OPERATION_ROUTES: readonly OperationRoute[] = [
  createOperationRoute('GET', '/accounts', 'Accounts', listAccounts),
  createOperationRoute('POST', '/accounts', 'Accounts', createAccount, 201),
  createOperationRoute('GET', '/accounts/{account}', 'Accounts', showAccount),
  createOperationRoute('PATCH', '/accounts/{account}', 'Accounts', setAccount),
  createOperationRoute('POST', '/accounts/{account}/lock', 'Accounts', lockAccount),
  createOperationRoute('POST', '/accounts/{account}/unlock', 'Accounts', unlockAccount),
  createOperationRoute('GET', '/accounts/{account}/keys', 'Keys', listKeys),
  createOperationRoute('POST', '/accounts/{account}/keys', 'Keys', createKey, 201),
  createOperationRoute('POST', '/accounts/{account}/keys/import', 'Keys', importKey, 201),
  createOperationRoute('POST', '/keys/{key}/rotate', 'Keys', rotateKey),
  createOperationRoute('POST', '/keys/{key}/revoke', 'Keys', revokeKey),
  createOperationRoute('GET', '/senders', 'Senders', listSenders),
  createOperationRoute('POST', '/accounts/{account}/senders', 'Senders', setSender),
  createOperationRoute('DELETE', '/accounts/{account}/senders/{sender}', 'Senders', removeSender),
  createOperationRoute('GET', '/domains', 'Domains', listDomains),
  createOperationRoute('POST', '/accounts/{account}/domains', 'Domains', addDomain),
  createOperationRoute('GET', '/domains/{domain}', 'Domains', showDomain),
  createOperationRoute('PATCH', '/domains/{domain}', 'Domains', setDomain),
  createOperationRoute('POST', '/domains/{domain}/verify', 'Domains', verifyDomain),
  createOperationRoute('POST', '/domains/{domain}/rotate', 'Domains', rotateDomain),
  createOperationRoute('DELETE', '/domains/{domain}', 'Domains', removeDomain),
  createOperationRoute('GET', '/overview', 'Overview', showOverview),
  createOperationRoute('GET', '/deliverability', 'Overview', showDeliverability),
  createOperationRoute('GET', '/setup', 'Overview', showSetup),
  createOperationRoute('GET', '/messages', 'Messages', searchMessages, 200, { within: SEARCH_TIME_LIMIT }),
  createOperationRoute('GET', '/messages/count', 'Messages', countMessages),
  createOperationRoute('POST', '/messages/change', 'Messages', changeMessages),
  createOperationRoute('POST', '/messages/test', 'Messages', sendTestMessage),
  createOperationRoute('GET', '/messages/{id}', 'Messages', showMessage),
  createOperationRoute('GET', '/messages/{id}/explain', 'Messages', explainMessage),
  createOperationRoute('GET', '/messages/{id}/source', 'Messages', showMessageSource),
  createOperationRoute('POST', '/messages/{id}/retry', 'Messages', retryMessage),
  createOperationRoute('POST', '/messages/{id}/cancel', 'Messages', cancelMessage),
  createOperationRoute('POST', '/messages/{id}/resend', 'Messages', resendMessage, 201),
  createOperationRoute('GET', '/feedback', 'Feedback', listFeedback),
  createOperationRoute('GET', '/feedback/{id}', 'Feedback', showFeedback),
  createOperationRoute('GET', '/accounts/{account}/suppressions', 'Suppressions', listSuppressions),
  createOperationRoute('GET', '/suppressions/{address}', 'Suppressions', showSuppression),
  createOperationRoute('POST', '/accounts/{account}/suppressions', 'Suppressions', addSuppression),
  createOperationRoute('DELETE', '/accounts/{account}/suppressions/{address}', 'Suppressions', removeSuppression),
  createOperationRoute('GET', '/holds', 'Holds', listHolds),
  createOperationRoute('POST', '/holds', 'Holds', addHold, 201),
  createOperationRoute('POST', '/holds/release', 'Holds', releaseHolds),
  createOperationRoute('GET', '/routes', 'Routes', listRoutes),
  createOperationRoute('GET', '/routes/{route}', 'Routes', showRoute),
  createOperationRoute('POST', '/routes/{route}/pause', 'Routes', pauseRoute),
  createOperationRoute('POST', '/routes/{route}/resume', 'Routes', resumeRoute),
  createOperationRoute('POST', '/routes/{route}/test', 'Routes', testRoute),
  createOperationRoute('GET', '/routing', 'Routes', showRouting),
  createOperationRoute('POST', '/routing', 'Routes', setRouting),
  createOperationRoute('DELETE', '/routing', 'Routes', clearRouting),
  createOperationRoute('GET', '/webhooks', 'Webhooks', listWebhooks),
  createOperationRoute('POST', '/webhooks', 'Webhooks', createWebhook, 201),
  createOperationRoute('GET', '/webhooks/statistics', 'Webhooks', showWebhookStatistics),
  createOperationRoute('GET', '/webhooks/{id}', 'Webhooks', showWebhook),
  createOperationRoute('PATCH', '/webhooks/{id}', 'Webhooks', updateWebhook),
  createOperationRoute('DELETE', '/webhooks/{id}', 'Webhooks', deleteWebhook),
  createOperationRoute('POST', '/webhooks/{id}/enable', 'Webhooks', enableWebhook),
  createOperationRoute('POST', '/webhooks/{id}/disable', 'Webhooks', disableWebhook),
  createOperationRoute('POST', '/webhooks/{id}/rotate', 'Webhooks', rotateWebhook),
  createOperationRoute('POST', '/webhooks/{id}/test', 'Webhooks', testWebhook),
  createOperationRoute('GET', '/webhooks/{id}/deliveries', 'Webhooks', listDeliveries),
  createOperationRoute('POST', '/webhooks/{id}/replay', 'Webhooks', replayWebhook),
  createOperationRoute('GET', '/audit', 'Operators', listAudit),
  createOperationRoute('GET', '/tokens', 'Operators', listTokens),
  createOperationRoute('POST', '/tokens', 'Operators', createToken, 201),
  createOperationRoute('POST', '/tokens/{id}/revoke', 'Operators', revokeToken),
  createOperationRoute('GET', '/providers', 'Installation', listProviders),
  createOperationRoute('GET', '/config', 'Installation', showConfig),
  createOperationRoute('GET', '/doctor', 'Installation', runDoctor, 200, {}, true),
  createOperationRoute('POST', '/doctor/loop', 'Installation', testFeedbackLoop),
  createOperationRoute('GET', '/inbox', 'Inbox', listInbox),
  createOperationRoute('GET', '/inbox/rules', 'Inbox', listInboxRules),
  createOperationRoute('POST', '/inbox/rules', 'Inbox', addInboxRule, 201),
  createOperationRoute('DELETE', '/inbox/rules/{id}', 'Inbox', removeInboxRule),
  createOperationRoute('GET', '/inbox/{id}', 'Inbox', showInbox),
];
