/** The routes of the operator's listener beside its API and the dashboard, as data for the document; listener.ts has their handlers. */
import { Type } from '../model/schema.ts';
import type { RouteDescription } from './route-description.ts';
import { Liveness, OpenApiDocument } from './schemas.ts';

/** Access is by the password alone, or from this machine where there is none. */
const PASSWORD_ERRORS: readonly number[] = [400, 401, 403, 429];

export const LISTENER_ROUTES: readonly RouteDescription[] = [
  {
    method: 'GET',
    path: '/healthz',
    outsideApi: true,
    operationId: 'showLiveness',
    group: 'Service',
    summary: 'Say that the process answers',
    parameters: [],
    access: 'none',
    success: [{ schema: Liveness }],
    errors: [400],
  },
  {
    method: 'GET',
    path: '/metrics',
    outsideApi: true,
    operationId: 'showMetrics',
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
    outsideApi: true,
    operationId: 'showPublicDocument',
    group: 'Service',
    summary: 'The document of the public listener',
    parameters: [],
    access: 'password',
    success: [{ schema: OpenApiDocument }],
    errors: PASSWORD_ERRORS,
  },
  {
    method: 'GET',
    path: '/reference',
    outsideApi: true,
    operationId: 'showReference',
    group: 'Service',
    summary: 'This reference as a page',
    parameters: [],
    access: 'password',
    success: [{ type: 'text/html', schema: Type.String() }],
    errors: PASSWORD_ERRORS,
  },
];
