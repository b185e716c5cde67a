/** The routes of the operator API that are operations: method, path, section of the API reference, operation. */
import {
  addDomain,
  listDomains,
  removeDomain,
  rotateDomain,
  setDomain,
  showDomain,
  verifyDomain,
} from '../operations/domains.ts';
import { addSuppression, listSuppressions, removeSuppression, showSuppression } from '../operations/suppressions.ts';
import { type OperationRoute, operationRoute } from './operation-route.ts';

export const OPERATION_ROUTES: readonly OperationRoute[] = [
  operationRoute('GET', '/domains', 'Domains', listDomains),
  operationRoute('POST', '/accounts/{account}/domains', 'Domains', addDomain),
  operationRoute('GET', '/domains/{domain}', 'Domains', showDomain),
  operationRoute('PATCH', '/domains/{domain}', 'Domains', setDomain),
  operationRoute('POST', '/domains/{domain}/verify', 'Domains', verifyDomain),
  operationRoute('POST', '/domains/{domain}/rotate', 'Domains', rotateDomain),
  operationRoute('DELETE', '/domains/{domain}', 'Domains', removeDomain),
  operationRoute('GET', '/accounts/{account}/suppressions', 'Suppressions', listSuppressions),
  operationRoute('GET', '/suppressions/{address}', 'Suppressions', showSuppression),
  operationRoute('POST', '/accounts/{account}/suppressions', 'Suppressions', addSuppression),
  operationRoute('DELETE', '/accounts/{account}/suppressions/{address}', 'Suppressions', removeSuppression),
];
