/**
 * The imports that each layer may have, as data. A layer is a folder of src. A layer with side effects may import
 * itself, the pure layers, the layers that `ALLOWED_LAYERS` lists for it, and types of other layers. src/main.ts
 * injects all other dependencies, so that each layer can be tested and replaced separately.
 */
import { posix } from 'node:path';
import type { SourceFile } from './source.ts';

/** Pure layers: the same input gives the same output, without side effects. */
export const PURE_LAYERS: readonly string[] = ['model', 'classify', 'message', 'printing', 'providers'];
const EFFECT_LAYERS = [
  'http',
  'store',
  'queue',
  'transports',
  'feedback',
  'domains',
  'checks',
  'statistics',
  'operations',
  'operator',
  'observability',
  'webhooks',
  'notifications',
];
/** The wiring layers may import everything. No other layer imports them. */
const WIRING_LAYERS = ['main.ts', 'index.ts', 'version.ts', 'wiring', 'cli'];
/** Layers that a layer may load in addition to itself and the pure layers. */
const ALLOWED_LAYERS: Readonly<Record<string, readonly string[]>> = {
  // For the pure parts of the store (search queries, time steps of the traffic figures), and for the sealing of webhooks.
  operations: ['checks', 'config', 'domains', 'statistics', 'store', 'webhooks'],
  checks: ['config', 'domains', 'statistics'],
  statistics: ['config'],
  // For the counts that the metrics share with the other series.
  observability: ['statistics'],
  // For batched lookups of unknown credentials, as in the public listener.
  operator: ['operations', 'http'],
  // A thread of the store imports its clock, because a clock cannot be passed to a thread.
  store: ['clock.ts', 'folder.ts'],
  // Every listener uses the capacity, the server and `runEvery` with the injected clock.
  http: ['clock.ts'],
  feedback: ['http', 'clock.ts'],
  domains: ['folder.ts'],
  // For attempts and the schedule of webhooks.
  notifications: ['webhooks'],
  // For the encryption of secrets.
  webhooks: ['domains'],
  transports: ['folder.ts'],
};

/** The packages that each layer may load. Every layer may import the types of every package. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  model: ['tr46', 'tldts'],
  classify: [],
  message: [],
  printing: [],
  providers: [],
  config: [],
  http: [],
  operator: ['fastify', '@fastify/static', 'ajv', 'prom-client'],
  store: ['pg'],
  queue: [],
  transports: ['@aws-sdk/client-sesv2', '@smithy/node-http-handler'],
  observability: ['pino', 'prom-client', '@opentelemetry/api'],
  feedback: ['smtp-server', '@aws-sdk/client-sqs', '@smithy/node-http-handler'],
  domains: ['tldts', '@aws-sdk/client-sesv2'],
  checks: [],
  statistics: [],
  operations: ['csv-parse'],
  webhooks: [],
  notifications: [],
  cli: ['commander', 'csv-parse'],
  wiring: [],
  'main.ts': [],
  'index.ts': [],
  'version.ts': [],
};

/**
 * The modules of Node that a pure layer may import, and the allowed exports of each module. No allowed export has side
 * effects. `null` allows every export.
 */
const PURE_NODE_MODULES: Readonly<Record<string, readonly string[] | null>> = {
  'node:buffer': null,
  'node:crypto': [
    'createHash',
    'createHmac',
    'createPrivateKey',
    'createPublicKey',
    'createSecretKey',
    'hash',
    'KeyObject',
    'sign',
    'timingSafeEqual',
    'verify',
  ],
  // For packages that are loaded at their first use.
  'node:module': ['createRequire'],
  'node:net': ['BlockList', 'isIP', 'isIPv4', 'isIPv6'],
  'node:url': ['domainToASCII', 'domainToUnicode'],
};

/** Modules of Node that only some layers may load. */
const NODE_MODULE_OWNERS: Readonly<Record<string, readonly string[]>> = {
  'node:sqlite': ['store'],
  // For the program `systemd-notify`: Node cannot send to the Unix datagram socket on which systemd listens.
  'node:child_process': ['cli'],
  'node:dns': ['transports', 'domains', 'main.ts', 'cli'],
  'node:dns/promises': ['transports', 'domains', 'main.ts', 'cli'],
};

const CLOCK_FILE = 'clock.ts';
/** The file with the function that creates folders. The file loads no other file of src. */
const FOLDER_FILE = 'folder.ts';
/** The file through which every layer with side effects loads Node's HTTP and TLS modules. */
const NODE_HTTP_FILE = 'node-http.ts';
const LOG_FILE = 'src/observability/log.ts';

/** Returns the layer of a path: `src/http/send-mail.ts` → `http`; `src/main.ts` → `main.ts`. */
export function getLayer(path: string): string {
  return path.split('/')[1] ?? path;
}

/** Returns one line for each import that violates the rule. */
export function listImportViolations(file: SourceFile): readonly string[] {
  const layer = getLayer(file.path);
  return file.imports.flatMap((imported) => {
    const { specifier, typeOnly, names } = imported;
    const fault = specifier.startsWith('.')
      ? findFolderFault(file.path, layer, specifier, typeOnly)
      : specifier.startsWith('node:')
        ? findNodeFault(layer, specifier, typeOnly, names)
        : findPackageFault(layer, specifier, typeOnly);
    return fault === null ? [] : [`${file.path}:${imported.line} imports ${specifier}: ${fault}`];
  });
}

function findFolderFault(path: string, layer: string, specifier: string, typeOnly: boolean): string | null {
  const target = posix.normalize(posix.join(posix.dirname(path), specifier));
  if (!target.startsWith('src/')) return 'src must not import test, bench or bin';
  if (!target.endsWith('.ts')) return 'add the ending .ts';
  const targetLayer = getLayer(target);
  if (targetLayer === layer) return null;
  if (target === LOG_FILE && path !== 'src/main.ts')
    return 'only observability writes the log; publish an event and define its log event';
  if (layer === 'model') return 'model imports no other folder of src, types included';
  if (targetLayer === 'cli') return 'the command line is an adapter; move shared code to operations';
  if (WIRING_LAYERS.includes(layer)) return null;
  if (WIRING_LAYERS.includes(targetLayer)) return `${targetLayer} wires the layers; no layer may import it`;
  if (typeOnly) return null;
  if (PURE_LAYERS.includes(targetLayer) || ALLOWED_LAYERS[layer]?.includes(targetLayer) === true) return null;
  if (targetLayer === NODE_HTTP_FILE && !PURE_LAYERS.includes(layer)) return null;
  if (targetLayer === CLOCK_FILE) return 'the clock is injected; import its type only';
  if (PURE_LAYERS.includes(layer)) return `${layer} is pure and may load only pure layers (${PURE_LAYERS.join(', ')})`;
  return `${layer} may load only itself and the pure layers (${PURE_LAYERS.join(', ')}); import types, and inject other dependencies in main.ts`;
}

function findNodeFault(layer: string, specifier: string, typeOnly: boolean, names: readonly string[]): string | null {
  const owners = NODE_MODULE_OWNERS[specifier];
  if (owners !== undefined && !owners.includes(layer) && !typeOnly) {
    return owners.length === 0 ? 'no layer may start programs' : `only ${owners.join(', ')} may load it`;
  }
  if (typeOnly || !PURE_LAYERS.includes(layer)) return null;
  const allowedNames = PURE_NODE_MODULES[specifier];
  if (allowedNames === undefined)
    return `${layer} is pure and may load only ${Object.keys(PURE_NODE_MODULES).join(', ')} of Node`;
  const forbiddenNames = allowedNames === null ? [] : names.filter((name) => !allowedNames.includes(name));
  return forbiddenNames.length === 0
    ? null
    : `${layer} is pure and may not load ${forbiddenNames.join(', ')}; allowed: ${allowedNames?.join(', ')}`;
}

function findPackageFault(layer: string, specifier: string, typeOnly: boolean): string | null {
  const parts = specifier.split('/');
  const name = specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
  const allowedPackages = PACKAGES[layer];
  if (allowedPackages === undefined)
    return `the layer ${layer} is not in PACKAGES of test/house/import-rule.ts; add it with its packages`;
  if (typeOnly || allowedPackages.includes(name)) return null;
  return `${layer} may load ${allowedPackages.length === 0 ? 'no package' : `only ${allowedPackages.join(', ')}`}; see test/house/import-rule.ts`;
}

/** Returns one line for each layer that is in no list, so that a new layer is classified explicitly. */
export function listUnknownLayers(paths: readonly string[]): readonly string[] {
  const knownLayers = [
    ...PURE_LAYERS,
    ...EFFECT_LAYERS,
    ...WIRING_LAYERS,
    'config',
    CLOCK_FILE,
    FOLDER_FILE,
    NODE_HTTP_FILE,
  ];
  const layers = new Set(paths.map(getLayer));
  return [...layers]
    .filter((layer) => !knownLayers.includes(layer))
    .map((layer) => `src/${layer} is in no list of test/house/import-rule.ts`);
}
