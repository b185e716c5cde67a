/**
 * Which room may import what, as data. A stage imports its own room and the pure rooms; of other rooms only types.
 * Whatever has effects is handed to it by src/main.ts; so a stage can be tested alone and replaced alone.
 */
import { posix } from 'node:path';
import type { SourceFile } from './source.ts';

/** Pure: the same input gives the same output, and nothing else happens. */
export const PURE_LAYERS: readonly string[] = ['model', 'classify', 'message', 'printing'];
const STAGES = [
  'http',
  'store',
  'queue',
  'transports',
  'feedback',
  'domains',
  'doctor',
  'operations',
  'operator',
  'observability',
];
/** These wire: they import whatever they put together. Nothing in src imports them but they one another. */
const WIRING = ['main.ts', 'wiring', 'cli'];
/** What a room may load of other rooms beside the pure ones. Operations are what both adapters, cli and operator, load. */
const LOADS: Readonly<Record<string, readonly string[]>> = {
  // Of the store the pure parts: what a search is made of, the steps of figures over time.
  operations: ['config', 'domains', 'doctor', 'store'],
  // Of the public listener what both do alike: lookups of unknown credentials are gathered.
  operator: ['operations', 'http'],
  // Threads of a store cannot be handed a clock.
  store: ['clock.ts'],
};

/** Packages, by the rooms that may load them. Any room may import the types of any package. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  model: ['tr46', 'tldts'],
  classify: [],
  message: [],
  printing: [],
  config: [],
  http: ['fastify', 'ajv'],
  operator: ['fastify', '@fastify/static', 'ajv', 'prom-client'],
  store: ['pg'],
  queue: [],
  transports: ['@aws-sdk/client-sesv2', '@smithy/node-http-handler'],
  observability: ['pino', 'prom-client', '@opentelemetry/api'],
  feedback: ['smtp-server', '@aws-sdk/client-sqs', '@smithy/node-http-handler'],
  domains: ['tldts', '@aws-sdk/client-sesv2'],
  doctor: [],
  operations: ['csv-parse'],
  cli: ['commander', 'csv-parse'],
  wiring: [],
  'main.ts': [],
};

/** What a pure room may load of Node: tables and hashes, no effects. `null` is every name. */
const PURE_NODE: Readonly<Record<string, readonly string[] | null>> = {
  'node:buffer': null,
  'node:crypto': ['createHash', 'createHmac', 'createPrivateKey', 'createPublicKey', 'hash', 'sign', 'timingSafeEqual'],
  'node:net': ['isIP', 'isIPv4', 'isIPv6'],
  'node:url': ['domainToASCII', 'domainToUnicode'],
};

/** Modules of Node that belong to one room alone. */
const NODE_OWNERS: Readonly<Record<string, readonly string[]>> = {
  'node:sqlite': ['store'],
  'node:child_process': [],
  'node:dns': ['transports', 'domains', 'main.ts', 'cli'],
  'node:dns/promises': ['transports', 'domains', 'main.ts', 'cli'],
};

const CLOCK = 'clock.ts';
const LOG = 'src/observability/log.ts';

/** `src/http/send-mail.ts` → `http`; `src/main.ts` → `main.ts`. */
export function layerOf(path: string): string {
  return path.split('/')[1] ?? path;
}

/** One line for each import that breaks the rule. */
export function importViolations(file: SourceFile): readonly string[] {
  const room = layerOf(file.path);
  return file.imports.flatMap((imported) => {
    const { specifier, typeOnly, names } = imported;
    const fault = specifier.startsWith('.')
      ? ownFault(file.path, room, specifier, typeOnly)
      : specifier.startsWith('node:')
        ? nodeFault(room, specifier, typeOnly, names)
        : packageFault(room, specifier, typeOnly);
    return fault === null ? [] : [`${file.path}:${imported.line} imports ${specifier}: ${fault}`];
  });
}

function ownFault(path: string, room: string, specifier: string, typeOnly: boolean): string | null {
  const target = posix.normalize(posix.join(posix.dirname(path), specifier));
  if (!target.startsWith('src/')) return 'src stands alone; nothing of test, bench or bin belongs in it';
  if (!target.endsWith('.ts')) return 'name the file with its .ts ending';
  const other = layerOf(target);
  if (other === room) return null;
  if (target === LOG && path !== 'src/main.ts')
    return 'only observability/log-lines.ts writes the log; publish an event, and give it its line there';
  if (other === 'cli')
    return 'nothing imports the command line, which is an adapter; what it shares belongs to operations';
  if (WIRING.includes(room)) return null;
  if (WIRING.includes(other)) return `nothing imports ${other}, which puts the rooms together`;
  if (typeOnly) return null;
  if (PURE_LAYERS.includes(other) || LOADS[room]?.includes(other) === true) return null;
  if (other === CLOCK) return 'the clock is handed in; import its type';
  if (PURE_LAYERS.includes(room)) return `${room} is pure and may load pure rooms only (${PURE_LAYERS.join(', ')})`;
  return `${room} may load only itself and the pure rooms (${PURE_LAYERS.join(', ')}); take types, and let main.ts hand the rest in`;
}

function nodeFault(room: string, specifier: string, typeOnly: boolean, names: readonly string[]): string | null {
  const owners = NODE_OWNERS[specifier];
  if (owners !== undefined && !owners.includes(room) && !typeOnly) {
    return owners.length === 0 ? 'no room starts other programs' : `only ${owners.join(', ')} may`;
  }
  if (typeOnly || !PURE_LAYERS.includes(room)) return null;
  const allowed = PURE_NODE[specifier];
  if (allowed === undefined) return `${room} is pure, and of Node may load ${Object.keys(PURE_NODE).join(', ')} only`;
  const strange = allowed === null ? [] : names.filter((name) => !allowed.includes(name));
  return strange.length === 0 ? null : `${room} is pure, and ${strange.join(', ')} is not among ${allowed?.join(', ')}`;
}

function packageFault(room: string, specifier: string, typeOnly: boolean): string | null {
  const parts = specifier.split('/');
  const name = specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
  const allowed = PACKAGES[room];
  if (allowed === undefined)
    return `the room ${room} is not in the table of test/house/import-rule.ts; add it with its packages`;
  if (typeOnly || allowed.includes(name)) return null;
  return `${room} may load ${allowed.length === 0 ? 'no package' : `only ${allowed.join(', ')}`}; test/house/import-rule.ts has the table`;
}

/** Every room of src must be in one of the lists: a new one is a decision. */
export function unknownLayers(paths: readonly string[]): readonly string[] {
  const known = [...PURE_LAYERS, ...STAGES, ...WIRING, 'config', CLOCK];
  const rooms = new Set(paths.map(layerOf));
  return [...rooms]
    .filter((room) => !known.includes(room))
    .map((room) => `src/${room} is in no list of test/house/import-rule.ts`);
}
