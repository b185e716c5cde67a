/** The routes of the operator API that are operations: method, path, section of the API reference, operation. */
import { addSuppression, listSuppressions, removeSuppression, showSuppression } from '../operations/suppressions.ts';
import { type OperationRoute, operationRoute } from './operation-route.ts';

export const OPERATION_ROUTES: readonly OperationRoute[] = [
  operationRoute('GET', '/accounts/{account}/suppressions', 'Suppressions', listSuppressions),
  operationRoute('GET', '/suppressions/{address}', 'Suppressions', showSuppression),
  operationRoute('POST', '/accounts/{account}/suppressions', 'Suppressions', addSuppression),
  operationRoute('DELETE', '/accounts/{account}/suppressions/{address}', 'Suppressions', removeSuppression),
];
