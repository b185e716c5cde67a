/** Routes outside of the operator API and the dashboard. */
import { Type } from '../model/schema.ts';
import type { RouteDescription } from './route-description.ts';
import { Health, OpenApiDocument } from './schemas.ts';

/** With a password, a request needs it or a token. Otherwise only programs on this machine have access. */
const ACCESS_ERRORS: readonly number[] = [400, 401, 403, 429, 503];

export const LISTENER_ROUTES: readonly RouteDescription[] = [
  {
    method: 'GET',
    path: '/healthz',
    isOutsideApi: true,
    operationId: 'showLiveness',
    group: 'Service',
    summary: 'Check that the process responds',
    parameters: [],
    access: 'none',
    success: [{ schema: Health }],
    errors: [400],
  },
  {
    method: 'GET',
    path: '/metrics',
    isOutsideApi: true,
    operationId: 'showMetrics',
    group: 'Service',
    summary: 'Get the metrics in the text format of Prometheus',
    parameters: [],
    access: 'token-or-password',
    success: [{ type: 'text/plain', schema: Type.String() }],
    errors: ACCESS_ERRORS,
  },
  {
    method: 'GET',
    path: '/openapi.json',
    isOutsideApi: true,
    operationId: 'showPublicDocument',
    group: 'Service',
    summary: 'Get the OpenAPI document of the public listener',
    parameters: [],
    access: 'token-or-password',
    success: [{ schema: OpenApiDocument }],
    errors: ACCESS_ERRORS,
  },
  {
    method: 'GET',
    path: '/reference',
    isOutsideApi: true,
    operationId: 'showReference',
    group: 'Service',
    summary: 'Get the API reference as a page',
    parameters: [],
    access: 'token-or-password',
    success: [{ type: 'text/html', schema: Type.String() }],
    errors: ACCESS_ERRORS,
  },
];
