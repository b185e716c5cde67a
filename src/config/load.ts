/**
 * Reads the settings from the environment, which precedes `.env`. `NAME_FILE` is a file with the value of a secret
 * setting. Every fault is a SettingsError of one line.
 */

import { isIPv6 } from 'node:net';
import { formatListen, type HttpListen, isLocalListen, isUnixSocket } from '../model/listen-address.ts';
import { DEFAULT_ROUTE, isRouteName } from '../model/route.ts';
import { findProvider } from '../providers/providers.ts';
import { readDotEnv, readSecretText, SecretFileError } from './files.ts';
import { findNotifyFault } from './notify.ts';
import {
  type DatabaseSetting,
  type PostgresSetting,
  type SecretFile,
  type Settings,
  SettingsError,
  type TransportSetting,
} from './settings.ts';
import { EVENT_SECRET_SPECS, ROUTE_SPEC, SETTINGS_TABLE, type SettingSpec } from './table.ts';
import { formatSuggestion, quote } from './units.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export type Source = 'default' | '.env' | 'environment' | 'file';

export type ReadFile = (path: string) => string;

/** It contains no secret. */
export interface DescribedSetting {
  readonly name: string;
  /** The value as text, in which secrets are masked. Null if the setting has no value. */
  readonly value: string | null;
  readonly source: Source;
  readonly meaning: string;
}

/** Only for `postrider send`. It is not a setting of the service. */
const API_KEY_VARIABLE = 'POSTRIDER_API_KEY';

const FILE_SUFFIX = '_FILE';

interface SettingInput {
  readonly text: string;
  readonly source: Source;
  readonly file: string | null;
}

const SETTING_SPECS: readonly SettingSpec<unknown>[] = Object.values(SETTINGS_TABLE);
const ROUTE_PREFIX = 'POSTRIDER_ROUTE_';
const FILE_VARIABLE_NAMES: readonly string[] = SETTING_SPECS.filter(({ secrecy }) => secrecy !== 'no').map(
  ({ name }) => `${name}${FILE_SUFFIX}`,
);
const SETTING_NAMES: readonly string[] = SETTING_SPECS.map(({ name }) => name);
const ALL_VARIABLE_NAMES: readonly string[] = [...SETTING_NAMES, ...FILE_VARIABLE_NAMES];

/** Kubernetes or Docker sets these for a Service named `postrider`, such as `POSTRIDER_PORT_80_TCP_ADDR`. */
const INJECTED_SERVICE_PATTERN = /^POSTRIDER_(?:[A-Z0-9_]+_)?SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/;
const INJECTED_PORT_PATTERN = /^POSTRIDER_(?:[A-Z0-9_]+_)?PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?$/;

export interface LoadedSettings {
  readonly settings: Settings;
  readonly describedSettings: readonly DescribedSetting[];
}

/** Settings and description are based on the same content of the files. @throws SettingsError */
export function readSettings(
  environment: Environment,
  dotEnv: string | null,
  readFile: ReadFile = readSecretText,
): LoadedSettings {
  const inputs = collectInputs(environment, dotEnv, readFile);
  const readSetting = <T>(spec: SettingSpec<T>): T | null => {
    const text = inputs.get(spec.name)?.text ?? spec.default;
    if (text === null) return null;
    const parsedSetting = spec.parse(text);
    if (!parsedSetting.ok) throw new SettingsError(`${getVariableName(spec.name, inputs)}: ${parsedSetting.fault}`);
    return parsedSetting.value;
  };
  const settings: Settings = {
    database: addDirectDatabase(
      requireValue(readSetting(SETTINGS_TABLE.database)),
      readSetting(SETTINGS_TABLE.databaseDirect),
    ),
    requireSyncStandby: requireValue(readSetting(SETTINGS_TABLE.requireSyncStandby)) === 'yes',
    transport: requireValue(readSetting(SETTINGS_TABLE.transport)),
    routes: readRoutes(inputs, readSetting),
    listen: requireValue(readSetting(SETTINGS_TABLE.listen)),
    operatorListen: requireValue(readSetting(SETTINGS_TABLE.operatorListen)),
    operatorUrl: readSetting(SETTINGS_TABLE.operatorUrl),
    operatorPassword: readSetting(SETTINGS_TABLE.operatorPassword),
    trustedProxies: readSetting(SETTINGS_TABLE.trustedProxies) ?? [],
    tls: readTlsPaths(readSetting(SETTINGS_TABLE.tlsCert), readSetting(SETTINGS_TABLE.tlsKey)),
    senders: requireValue(readSetting(SETTINGS_TABLE.senders)),
    maxAgeMs: requireValue(readSetting(SETTINGS_TABLE.maxAgeMs)),
    maxRequestBytes: requireValue(readSetting(SETTINGS_TABLE.maxRequestBytes)),
    keepBodyMs: requireValue(readSetting(SETTINGS_TABLE.keepBodyMs)),
    keepHistoryMs: requireValue(readSetting(SETTINGS_TABLE.keepHistoryMs)),
    keepAuditMs: requireValue(readSetting(SETTINGS_TABLE.keepAuditMs)),
    onUncertain: requireValue(readSetting(SETTINGS_TABLE.onUncertain)),
    secret: readSetting(SETTINGS_TABLE.secret),
    dns: readSetting(SETTINGS_TABLE.dns),
    returnPathDomain: readSetting(SETTINGS_TABLE.returnPathDomain),
    feedbackListen: readSetting(SETTINGS_TABLE.feedbackListen),
    feedbackHttpListen: readSetting(SETTINGS_TABLE.feedbackHttpListen),
    feedbackUrl: readSetting(SETTINGS_TABLE.feedbackUrl),
    eventSecrets: readEventSecrets(readSetting),
    feedbackLoops: readSetting(SETTINGS_TABLE.feedbackLoops) ?? [],
    sesTopics: readSetting(SETTINGS_TABLE.sesTopics) ?? [],
    sesQueue: readSetting(SETTINGS_TABLE.sesQueue),
    webhookTargets: requireValue(readSetting(SETTINGS_TABLE.webhookTargets)),
    notifyTargets: readSetting(SETTINGS_TABLE.notifyTargets) ?? [],
    notifyFrom: readSetting(SETTINGS_TABLE.notifyFrom),
    notifySecrets: readSetting(SETTINGS_TABLE.notifySecrets) ?? [],
    roles: requireValue(readSetting(SETTINGS_TABLE.roles)),
    logLevel: requireValue(readSetting(SETTINGS_TABLE.logLevel)),
    logRecipients: requireValue(readSetting(SETTINGS_TABLE.logRecipients)),
    ignoredVariables: findInjectedVariables(environment),
    secretFiles: [...inputs].flatMap(([name, { file }]) => (file === null ? [] : [{ name, path: file }])),
  };
  checkStandby(settings);
  checkRetention(settings);
  checkListeners(settings);
  checkFeedback(settings);
  checkNotify(settings);
  return { settings: freezeSettings(settings), describedSettings: describeInputs(inputs) };
}

export function loadSettings(environment: Environment, dotEnv: string | null, readFile?: ReadFile): Settings {
  return readSettings(environment, dotEnv, readFile).settings;
}

export function describeSettings(
  environment: Environment,
  dotEnv: string | null,
  readFile?: ReadFile,
): readonly DescribedSetting[] {
  return readSettings(environment, dotEnv, readFile).describedSettings;
}

function describeInputs(inputs: ReadonlyMap<string, SettingInput>): readonly DescribedSetting[] {
  const specs = SETTING_SPECS.flatMap((spec) =>
    spec === SETTINGS_TABLE.transport ? [spec, ...listRouteSpecs(inputs)] : [spec],
  );
  return specs.map((spec) => {
    const input = inputs.get(spec.name);
    const text = input?.text ?? spec.default;
    const value = text === null ? null : spec.formatMaskedValue(text);
    return { name: spec.name, value, source: input?.source ?? 'default', meaning: spec.meaning };
  });
}

function findInjectedVariables(environment: Environment): readonly string[] {
  return Object.entries(environment).flatMap(([name, text]) =>
    text !== undefined && isInjected(name, text) ? [name] : [],
  );
}

function isInjected(name: string, text: string): boolean {
  if (ALL_VARIABLE_NAMES.includes(name)) return false;
  if (INJECTED_SERVICE_PATTERN.test(name)) return true;
  return INJECTED_PORT_PATTERN.test(name) && (name.includes('_PORT_') ? true : /^(?:tcp|udp|sctp):\/\//.test(text));
}

export function findApiKey(environment: Environment, dotEnv: string | null): string | null {
  const key =
    environment[API_KEY_VARIABLE] ?? (dotEnv === null ? undefined : readDotEnv(dotEnv)[API_KEY_VARIABLE]) ?? '';
  return key === '' ? null : key;
}

function collectInputs(
  environment: Environment,
  dotEnv: string | null,
  readFile: ReadFile,
): ReadonlyMap<string, SettingInput> {
  const inputs = new Map<string, SettingInput>();
  const addValues = (values: Environment, source: Source): void => {
    for (const [name, text] of Object.entries(values)) {
      if (text === undefined || !name.startsWith('POSTRIDER_') || name === API_KEY_VARIABLE || isInjected(name, text))
        continue;
      checkVariableName(name, source);
      if (text.trim() === '')
        throw new SettingsError(`${name} is empty in ${describeSource(source)}; set a value, or remove it`);
      if (CONTROL_CHARACTER.test(text))
        throw new SettingsError(`${name} in ${describeSource(source)} ${CONTROL_CHARACTER_FAULT}`);
      inputs.set(name, { text, source, file: null });
    }
  };
  addValues(dotEnv === null ? {} : readDotEnv(dotEnv), '.env');
  addValues(environment, 'environment');
  const routeFiles = [...inputs.keys()].filter((name) => findRouteName(name) !== null && name.endsWith(FILE_SUFFIX));
  for (const fileName of [...FILE_VARIABLE_NAMES, ...routeFiles]) {
    const file = inputs.get(fileName);
    if (file === undefined) continue;
    const name = fileName.slice(0, -FILE_SUFFIX.length);
    if (inputs.has(name)) throw new SettingsError(`${name} and ${fileName} are both set; remove one of them`);
    inputs.delete(fileName);
    inputs.set(name, { text: readSecret(fileName, file.text, readFile), source: 'file', file: file.text });
  }
  return inputs;
}

/** Most often a second line end in a secret file. */
const CONTROL_CHARACTER = /\p{Cc}/u;
const CONTROL_CHARACTER_FAULT = 'contains a line break or another control character; remove it';

function readSecret(name: string, path: string, readFile: ReadFile): string {
  let content: string;
  try {
    content = readFile(path);
  } catch (error) {
    if (error instanceof SecretFileError) throw new SettingsError(`${name}: ${quote(path)} ${error.message}`);
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
    throw new SettingsError(`${name}: ${quote(path)} cannot be read (${code}); give the path of a readable file`);
  }
  const text = content.replace(/\r?\n$/, '');
  if (text.trim() === '')
    throw new SettingsError(`${name}: ${quote(path)} is empty; write the value into it, or remove ${name}`);
  if (CONTROL_CHARACTER.test(text)) throw new SettingsError(`${name}: ${quote(path)} ${CONTROL_CHARACTER_FAULT}`);
  return text;
}

/** @throws SettingsError */
export function readSecretFile({ name, path }: SecretFile): string {
  return readSecret(`${name}${FILE_SUFFIX}`, path, readSecretText);
}

/** The route whose next hop the setting is; null for every other setting. */
export function findRouteOfSetting(name: string): string | null {
  return name === SETTINGS_TABLE.transport.name ? DEFAULT_ROUTE : findRouteName(name);
}

/** Null if the variable names no route. */
function findRouteName(variable: string): string | null {
  if (!variable.startsWith(ROUTE_PREFIX)) return null;
  const name = variable.slice(ROUTE_PREFIX.length).replace(new RegExp(`${FILE_SUFFIX}$`), '');
  return name === name.toUpperCase() && isRouteName(name.toLowerCase()) ? name.toLowerCase() : null;
}

function listRouteSpecs(inputs: ReadonlyMap<string, SettingInput>): readonly SettingSpec<TransportSetting>[] {
  return [...inputs.keys()]
    .filter((name) => findRouteName(name) !== null)
    .sort()
    .map((name) => ({ ...ROUTE_SPEC, name }));
}

function readRoutes(
  inputs: ReadonlyMap<string, SettingInput>,
  readSetting: <T>(spec: SettingSpec<T>) => T | null,
): Settings['routes'] {
  const others = listRouteSpecs(inputs).map((spec) =>
    Object.freeze({ name: findRouteName(spec.name) ?? '', transport: Object.freeze(requireValue(readSetting(spec))) }),
  );
  return [{ name: DEFAULT_ROUTE, transport: requireValue(readSetting(SETTINGS_TABLE.transport)) }, ...others];
}

function getVariableName(name: string, inputs: ReadonlyMap<string, SettingInput>): string {
  return inputs.get(name)?.source === 'file' ? `${name}${FILE_SUFFIX}` : name;
}

function checkVariableName(name: string, source: Source): void {
  if (ALL_VARIABLE_NAMES.includes(name)) return;
  if (name.startsWith(ROUTE_PREFIX)) {
    const route = findRouteName(name);
    const remedy =
      'write POSTRIDER_ROUTE_ and a letter, then up to 30 letters and digits, such as POSTRIDER_ROUTE_BACKUP';
    if (route === null) throw new SettingsError(`${name} in ${describeSource(source)} names no route; ${remedy}`);
    if (route !== DEFAULT_ROUTE) return;
    throw new SettingsError(
      `${name} in ${describeSource(source)}: the route default is ${SETTINGS_TABLE.transport.name}; set that`,
    );
  }
  if (name.endsWith(FILE_SUFFIX) && SETTING_NAMES.includes(name.slice(0, -FILE_SUFFIX.length))) {
    const settingName = name.slice(0, -FILE_SUFFIX.length);
    throw new SettingsError(
      `${name} in ${describeSource(source)} is not a setting: only the value of a setting that contains a secret can be in a file; set ${settingName}`,
    );
  }
  const hint = formatSuggestion(name, ALL_VARIABLE_NAMES) || '; `postrider config` lists them';
  throw new SettingsError(`${name} in ${describeSource(source)} is not a setting${hint}`);
}

function readEventSecrets(readSetting: <T>(spec: SettingSpec<T>) => T | null): Settings['eventSecrets'] {
  return Object.fromEntries(
    Object.entries(EVENT_SECRET_SPECS).flatMap(([name, spec]) => {
      const secrets = readSetting(spec);
      return secrets === null ? [] : [[name, Object.freeze(secrets)]];
    }),
  );
}

function describeSource(source: Source): string {
  return source === '.env' ? '.env' : 'the environment';
}

/** Of a setting with a default. */
function requireValue<T>(value: T | null): T {
  if (value === null) throw new SettingsError('a setting without a default has no value');
  return value;
}

function addDirectDatabase(database: DatabaseSetting, direct: PostgresSetting | null): DatabaseSetting {
  if (direct === null) return database;
  if (database.kind === 'postgres') return { ...database, direct: Object.freeze(direct) };
  const { name } = SETTINGS_TABLE.databaseDirect;
  throw new SettingsError(
    `${name} needs PostgreSQL in ${SETTINGS_TABLE.database.name}; set a PostgreSQL URL, or remove ${name}`,
  );
}

function checkStandby({ database, requireSyncStandby }: Settings): void {
  if (!requireSyncStandby || database.kind === 'postgres') return;
  const { name } = SETTINGS_TABLE.requireSyncStandby;
  throw new SettingsError(
    `${name} needs PostgreSQL in ${SETTINGS_TABLE.database.name}; set a PostgreSQL URL, or remove ${name}`,
  );
}

function readTlsPaths(certPath: string | null, keyPath: string | null): Settings['tls'] {
  if (certPath !== null && keyPath !== null) return { certPath, keyPath };
  if (certPath === null && keyPath === null) return null;
  const [setVariable, missingVariable] =
    certPath === null
      ? [SETTINGS_TABLE.tlsKey, SETTINGS_TABLE.tlsCert]
      : [SETTINGS_TABLE.tlsCert, SETTINGS_TABLE.tlsKey];
  throw new SettingsError(`${setVariable.name} is set and ${missingVariable.name} is not; HTTPS needs both`);
}

function checkListeners({ listen, operatorListen, operatorPassword, roles, ...feedback }: Settings): void {
  const feedbackListen = roles.has('feedback') ? feedback.feedbackListen : null;
  const feedbackHttpListen = roles.has('feedback') ? feedback.feedbackHttpListen : null;
  const listeners = [
    ...(roles.has('api') ? [{ name: SETTINGS_TABLE.listen.name, address: listen }] : []),
    ...(roles.has('operator') ? [{ name: SETTINGS_TABLE.operatorListen.name, address: operatorListen }] : []),
    ...(feedbackListen === null ? [] : [{ name: SETTINGS_TABLE.feedbackListen.name, address: feedbackListen }]),
    ...(feedbackHttpListen === null
      ? []
      : [{ name: SETTINGS_TABLE.feedbackHttpListen.name, address: feedbackHttpListen }]),
  ];
  for (const [index, { name, address }] of listeners.entries()) {
    const duplicate = listeners.slice(0, index).find((listener) => isSameListen(listener.address, address));
    if (duplicate === undefined) continue;
    const conflictText =
      formatListen(duplicate.address) === formatListen(address)
        ? `are both ${formatListen(address)}`
        : `(${formatListen(duplicate.address)} and ${formatListen(address)}) use the same port`;
    throw new SettingsError(
      `${duplicate.name} and ${name} ${conflictText}; set another ${isUnixSocket(address) ? 'path' : 'port'} for one of them`,
    );
  }
  if (roles.has('operator') && isUnixSocket(operatorListen) && operatorPassword === null) {
    // Without a password, the operator signs in with a link to a loopback address. A unix socket has no such address.
    const problem = `${SETTINGS_TABLE.operatorListen.name}: ${formatListen(operatorListen)} is a unix socket, which needs a password`;
    throw new SettingsError(`${problem}; set ${SETTINGS_TABLE.operatorPassword.name}, or listen on 127.0.0.1`);
  }
  if (roles.has('operator') && !isLocalListen(operatorListen) && operatorPassword === null) {
    const address = formatListen(operatorListen);
    const problem = `${SETTINGS_TABLE.operatorListen.name}: ${address} accepts connections from other machines`;
    throw new SettingsError(`${problem}; set ${SETTINGS_TABLE.operatorPassword.name}, or listen on 127.0.0.1`);
  }
}

function isSameListen(leftAddress: HttpListen, rightAddress: HttpListen): boolean {
  if (isUnixSocket(leftAddress) || isUnixSocket(rightAddress))
    return (
      isUnixSocket(leftAddress) && isUnixSocket(rightAddress) && leftAddress.socketPath === rightAddress.socketPath
    );
  // With port 0 the system chooses.
  if (leftAddress.port === 0 || leftAddress.port !== rightAddress.port) return false;
  return (
    leftAddress.host === rightAddress.host ||
    includesHost(leftAddress.host, rightAddress.host) ||
    includesHost(rightAddress.host, leftAddress.host)
  );
}

/** `::` includes IPv4. */
function includesHost(wildcard: string, host: string): boolean {
  return wildcard === '::' || (wildcard === '0.0.0.0' && !isIPv6(host));
}

function checkRetention({ keepBodyMs, keepHistoryMs }: Settings): void {
  const { keepBodyMs: body, keepHistoryMs: history } = SETTINGS_TABLE;
  if (keepHistoryMs < keepBodyMs)
    throw new SettingsError(
      `${history.name} is less than ${body.name}: a body is not kept longer than its message; raise ${history.name} or lower ${body.name}`,
    );
}

function checkFeedback(settings: Settings): void {
  const {
    returnPathDomain,
    feedbackListen,
    feedbackLoops,
    feedbackHttpListen,
    feedbackUrl,
    sesTopics,
    sesQueue,
    eventSecrets,
    roles,
  } = settings;
  const secretNames = Object.entries(EVENT_SECRET_SPECS).flatMap(([provider, { name }]) =>
    provider in eventSecrets ? [name] : [],
  );
  if (feedbackListen !== null && returnPathDomain === null) {
    throw new SettingsError(
      `${SETTINGS_TABLE.feedbackListen.name} accepts only messages to the return path; set ${SETTINGS_TABLE.returnPathDomain.name} to its domain`,
    );
  }
  if (feedbackLoops.length > 0 && feedbackListen === null)
    throw new SettingsError(
      `${SETTINGS_TABLE.feedbackLoops.name} is set, but no listener receives the complaints; set ${SETTINGS_TABLE.feedbackListen.name}`,
    );
  const hasEndpoint = sesTopics.length > 0 || secretNames.length > 0 || isEndpointTested(settings);
  if (feedbackHttpListen !== null && !hasEndpoint) {
    throw new SettingsError(
      `${SETTINGS_TABLE.feedbackHttpListen.name} has no endpoint; set ${SETTINGS_TABLE.sesTopics.name} to the ARNs of topics, or POSTRIDER_EVENTS_… to the secret of a provider`,
    );
  }
  const [secretName] = secretNames;
  if (secretName !== undefined && feedbackHttpListen === null) {
    throw new SettingsError(
      `${secretName} is set, but no listener receives the events; set ${SETTINGS_TABLE.feedbackHttpListen.name}`,
    );
  }
  if (eventSecrets.mandrill !== undefined && feedbackUrl === null) {
    throw new SettingsError(
      `${SETTINGS_TABLE.mandrillEvents.name} needs the URL that the signatures of Mandrill cover; set ${SETTINGS_TABLE.feedbackUrl.name}`,
    );
  }
  if (sesTopics.length > 0 && feedbackHttpListen === null && sesQueue === null) {
    throw new SettingsError(
      `${SETTINGS_TABLE.sesTopics.name} is set, but no listener or queue receives the events; set ${SETTINGS_TABLE.feedbackHttpListen.name} or ${SETTINGS_TABLE.sesQueue.name}`,
    );
  }
  const hasNoFeedbackSource = feedbackListen === null && feedbackHttpListen === null && sesQueue === null;
  if (hasNoFeedbackSource && roles.size === 1 && roles.has('feedback')) {
    throw new SettingsError(
      `${SETTINGS_TABLE.roles.name}: the role feedback has no source of feedback; set ${SETTINGS_TABLE.feedbackListen.name}, ${SETTINGS_TABLE.feedbackHttpListen.name} or ${SETTINGS_TABLE.sesQueue.name}`,
    );
  }
}

function checkNotify(settings: Settings): void {
  const { notifyTargets, notifyFrom, notifySecrets } = SETTINGS_TABLE;
  const names = { targets: notifyTargets.name, from: notifyFrom.name, secret: notifySecrets.name };
  const fault = findNotifyFault(settings, names);
  if (fault !== null) throw new SettingsError(fault);
}

/** The provider tests the URL of the listener before the secret for its events exists. */
function isEndpointTested({ routes }: Settings): boolean {
  return routes.some(
    ({ transport }) =>
      transport.kind === 'smtp' && findProvider(transport.provider)?.events?.isEndpointTest !== undefined,
  );
}

function freezeSettings(settings: Settings): Settings {
  for (const value of Object.values(settings)) if (typeof value === 'object' && value !== null) Object.freeze(value);
  for (const { transport } of settings.routes) if (transport.kind === 'smtp') Object.freeze(transport.auth);
  return Object.freeze(settings);
}
