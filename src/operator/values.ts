/** What a request gives the parameters of its route: in the path, the query and the body, each known and of its type. */
import type { FastifyRequest } from 'fastify';
import { controlsIn } from './controls.ts';
import type { Route, Values } from './routes.ts';

/** Those of a request, or one line that says what is wrong with them. */
export function valuesOf(route: Route, request: FastifyRequest): Values | string {
  const sources = { path: request.params, query: request.query, body: request.body ?? {} };
  const values = new Map<string, string>();
  for (const place of ['path', 'query', 'body'] as const) {
    const source = sources[place];
    if (typeof source !== 'object' || source === null || Array.isArray(source)) return 'The body must be a JSON object';
    for (const [name, value] of Object.entries(source)) {
      const known = route.parameters.find((one) => one.name === name && one.in === place);
      if (known === undefined) return `Unknown parameter in the ${place}: ${JSON.stringify(name)}`;
      if (value === null) continue;
      if (!['string', 'number', 'boolean'].includes(typeof value)) return `${name} must be a ${known.type}`;
      if (known.type === 'boolean' && typeof value !== 'boolean') return `${name} must be true or false`;
      const controls = controlsIn(name, String(value));
      if (controls !== null) return controls;
      values.set(name, String(value));
    }
  }
  const missing = route.parameters.filter(({ name, required }) => required === true && (values.get(name) ?? '') === '');
  if (missing.length > 0) return `Missing: ${missing.map(({ name }) => name).join(', ')}`;
  return (name) => values.get(name);
}
