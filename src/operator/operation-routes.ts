/**
 * Defines the routes of the operator API that perform operations: method, path, section of the API reference, and
 * operation.
 */

import {
  createAccount,
  listAccounts,
  lockAccount,
  setAccount,
  showAccount,
  unlockAccount,
} from '../operations/accounts.ts';
import { listAudit } from '../operations/audit.ts';
import { showConfig } from '../operations/config.ts';
import { runDoctor } from '../operations/doctor.ts';
import { tryLoop } from '../operations/doctor-loop.ts';
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
import { listInbox, showInbox } from '../operations/inbox.ts';
import { createKey, importKey, listKeys, revokeKey, rotateKey } from '../operations/keys.ts';
import { searchMessages } from '../operations/message-search.ts';
import { cancelMessage, explainMessage, retryMessage, showMessage } from '../operations/messages.ts';
import { showOverview } from '../operations/overview.ts';
import { addSuppression, listSuppressions, removeSuppression, showSuppression } from '../operations/suppressions.ts';
import { createToken, listTokens, revokeToken } from '../operations/tokens.ts';
import { type OperationRoute, operationRoute } from './operation-route.ts';

/** The time limit of one search, which keeps the response time below 100 ms. `next` continues the search. */
const SEARCH_WITHIN = '60ms';

export const OPERATION_ROUTES: readonly OperationRoute[] = [
  operationRoute('GET', '/accounts', 'Accounts', listAccounts),
  operationRoute('POST', '/accounts', 'Accounts', createAccount, 201),
  operationRoute('GET', '/accounts/{account}', 'Accounts', showAccount),
  operationRoute('PATCH', '/accounts/{account}', 'Accounts', setAccount),
  operationRoute('POST', '/accounts/{account}/lock', 'Accounts', lockAccount),
  operationRoute('POST', '/accounts/{account}/unlock', 'Accounts', unlockAccount),
  operationRoute('GET', '/accounts/{account}/keys', 'Keys', listKeys),
  operationRoute('POST', '/accounts/{account}/keys', 'Keys', createKey, 201),
  operationRoute('POST', '/accounts/{account}/keys/import', 'Keys', importKey, 201),
  operationRoute('POST', '/keys/{key}/rotate', 'Keys', rotateKey),
  operationRoute('POST', '/keys/{key}/revoke', 'Keys', revokeKey),
  operationRoute('GET', '/domains', 'Domains', listDomains),
  operationRoute('POST', '/accounts/{account}/domains', 'Domains', addDomain),
  operationRoute('GET', '/domains/{domain}', 'Domains', showDomain),
  operationRoute('PATCH', '/domains/{domain}', 'Domains', setDomain),
  operationRoute('POST', '/domains/{domain}/verify', 'Domains', verifyDomain),
  operationRoute('POST', '/domains/{domain}/rotate', 'Domains', rotateDomain),
  operationRoute('DELETE', '/domains/{domain}', 'Domains', removeDomain),
  operationRoute('GET', '/overview', 'Overview', showOverview),
  operationRoute('GET', '/messages', 'Messages', searchMessages, 200, { within: SEARCH_WITHIN }),
  operationRoute('GET', '/messages/{id}', 'Messages', showMessage),
  operationRoute('GET', '/messages/{id}/explain', 'Messages', explainMessage),
  operationRoute('POST', '/messages/{id}/retry', 'Messages', retryMessage),
  operationRoute('POST', '/messages/{id}/cancel', 'Messages', cancelMessage),
  operationRoute('GET', '/feedback', 'Feedback', listFeedback),
  operationRoute('GET', '/feedback/{id}', 'Feedback', showFeedback),
  operationRoute('GET', '/accounts/{account}/suppressions', 'Suppressions', listSuppressions),
  operationRoute('GET', '/suppressions/{address}', 'Suppressions', showSuppression),
  operationRoute('POST', '/accounts/{account}/suppressions', 'Suppressions', addSuppression),
  operationRoute('DELETE', '/accounts/{account}/suppressions/{address}', 'Suppressions', removeSuppression),
  operationRoute('GET', '/audit', 'Operators', listAudit),
  operationRoute('GET', '/tokens', 'Operators', listTokens),
  operationRoute('POST', '/tokens', 'Operators', createToken, 201),
  operationRoute('POST', '/tokens/{id}/revoke', 'Operators', revokeToken),
  operationRoute('GET', '/config', 'Installation', showConfig),
  operationRoute('GET', '/doctor', 'Installation', runDoctor),
  operationRoute('POST', '/doctor/loop', 'Installation', tryLoop),
  operationRoute('GET', '/inbox', 'Inbox', listInbox),
  operationRoute('GET', '/inbox/{id}', 'Inbox', showInbox),
];
