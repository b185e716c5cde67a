/** The routes of the operator's listener beside its API and the dashboard, as data for the document; listener.ts has their handlers. */
import { Type } from '../model/schema.ts';
import type { Described } from './described.ts';
import { Alive, Document } from './schemas.ts';

/** Access is by the password alone, or from this machine where there is none. */
const PASSWORD_ERRORS: readonly number[] = [400, 401, 403, 429];

export const LISTENER_ROUTES: readonly Described[] = [
  {
    method: 'GET',
    path: '/healthz',
    outside: true,
    operation: 'showLiveness',
    group: 'Service',
    summary: 'Say that the process answers',
    parameters: [],
    access: 'none',
    success: [{ schema: Alive }],
    errors: [400],
  },
  {
    method: 'GET',
    path: '/metrics',
    outside: true,
    operation: 'showMetrics',
    group: 'Service',
    summary: 'The metrics in the text format of Prometheus',
    parameters: [],
    access: 'password',
    success: [{ type: 'text/plain', schema: Type.String() }],
    errors: PASSWORD_ERRORS,
  },
  {
    method: 'GET',
    path: '/openapi.json',
    outside: true,
    operation: 'showPublicDocument',
    group: 'Service',
    summary: 'The document of the public listener',
    parameters: [],
    access: 'password',
    success: [{ schema: Document }],
    errors: PASSWORD_ERRORS,
  },
  {
    method: 'GET',
    path: '/reference',
    outside: true,
    operation: 'showReference',
    group: 'Service',
    summary: 'This reference as a page',
    parameters: [],
    access: 'password',
    success: [{ type: 'text/html', schema: Type.String() }],
    errors: PASSWORD_ERRORS,
  },
];
