/**
 * Reads the frozen settings of this process from the environment and the text of `.env`. The environment takes
 * precedence. A setting that holds a secret can be in a file: `NAME_FILE` is the path of the file whose content is the
 * value of `NAME`. An invalid, unknown or unsupported setting throws a SettingsError with a one-line message. No setting
 * is ignored.
 */

import { isIPv6 } from 'node:net';
import { formatListen, type HttpListen, isLocalListen, isUnixSocket } from '../model/listen-address.ts';
import { readDotEnv } from './dot-env.ts';
import { didYouMean } from './nearest.ts';
import { readSecretText, SecretFileError } from './secret-file.ts';
import {
  type DatabaseSetting,
  type PostgresSetting,
  type SecretFile,
  type Settings,
  SettingsError,
} from './settings.ts';
import { SETTINGS_TABLE, type SettingSpec } from './table.ts';
import { quote } from './units.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** `file`: the value is the content of the file that `NAME_FILE` names. */
export type Source = 'default' | '.env' | 'environment' | 'file';

/** Reads a secret file as text. Throws an Error of Node, with a code such as ENOENT. */
export type ReadFile = (path: string) => string;

/** One effective setting, safe to print. */
export interface DescribedSetting {
  readonly name: string;
  /** The value as text, with secrets masked. Null if the setting has no value. */
  readonly value: string | null;
  readonly source: Source;
  readonly meaning: string;
}

/** Only `postrider send` reads this variable. It is not a setting of the service. */
const API_KEY_VARIABLE = 'POSTRIDER_API_KEY';

const FILE_SUFFIX = '_FILE';

interface GivenValue {
  readonly text: string;
  readonly source: Source;
  /** The path in `NAME_FILE`, or null. */
  readonly file: string | null;
}

const SETTING_SPECS: readonly SettingSpec<unknown>[] = Object.values(SETTINGS_TABLE);
const FILE_NAMES: readonly string[] = SETTING_SPECS.filter(({ secret }) => secret !== 'no').map(
  ({ name }) => `${name}${FILE_SUFFIX}`,
);
const SETTING_NAMES: readonly string[] = SETTING_SPECS.map(({ name }) => name);
const ALL_NAMES: readonly string[] = [...SETTING_NAMES, ...FILE_NAMES];

/**
 * Variables that Kubernetes and Docker links set for a Service named `postrider`: `POSTRIDER_SERVICE_HOST`,
 * `POSTRIDER_SERVICE_PORT_HTTP`, `POSTRIDER_PORT=tcp://10.0.0.1:80`, `POSTRIDER_PORT_80_TCP_ADDR`. These variables are not
 * settings.
 */
const INJECTED_SERVICE = /^POSTRIDER_(?:[A-Z0-9_]+_)?SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/;
const INJECTED_PORT = /^POSTRIDER_(?:[A-Z0-9_]+_)?PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?$/;

/** The settings of a process, and the same settings as text. */
export interface LoadedSettings {
  readonly settings: Settings;
  /** In the order of the table, with secrets masked. */
  readonly described: readonly DescribedSetting[];
}

/**
 * Reads the settings and their description at once, so that a later change of a file changes neither.
 *
 * @param environment as in `process.env`; only names that begin with `POSTRIDER_` are read.
 * @param dotEnv the text of `.env`, or null if there is none.
 * @throws SettingsError
 */
export function readSettings(
  environment: Environment,
  dotEnv: string | null,
  readFile: ReadFile = readSecretText,
): LoadedSettings {
  const given = collectGiven(environment, dotEnv, readFile);
  const read = <T>(spec: SettingSpec<T>): T | null => {
    const text = given.get(spec.name)?.text ?? spec.default;
    if (text === null) return null;
    const parsed = spec.parse(text);
    if (!parsed.ok) throw new SettingsError(`${nameOf(spec.name, given)}: ${parsed.fault}`);
    return parsed.value;
  };
  const settings: Settings = {
    database: withDirect(requireValue(read(SETTINGS_TABLE.database)), read(SETTINGS_TABLE.databaseDirect)),
    requireSyncStandby: requireValue(read(SETTINGS_TABLE.requireSyncStandby)) === 'yes',
    transport: requireValue(read(SETTINGS_TABLE.transport)),
    listen: requireValue(read(SETTINGS_TABLE.listen)),
    operatorListen: requireValue(read(SETTINGS_TABLE.operatorListen)),
    operatorPassword: read(SETTINGS_TABLE.operatorPassword),
    trustedProxies: read(SETTINGS_TABLE.trustedProxies) ?? [],
    tls: pairTls(read(SETTINGS_TABLE.tlsCert), read(SETTINGS_TABLE.tlsKey)),
    senders: requireValue(read(SETTINGS_TABLE.senders)),
    maxAgeMs: requireValue(read(SETTINGS_TABLE.maxAgeMs)),
    maxRequestBytes: requireValue(read(SETTINGS_TABLE.maxRequestBytes)),
    keepBodyMs: requireValue(read(SETTINGS_TABLE.keepBodyMs)),
    onUncertain: requireValue(read(SETTINGS_TABLE.onUncertain)),
    secret: read(SETTINGS_TABLE.secret),
    dns: read(SETTINGS_TABLE.dns),
    returnPathDomain: read(SETTINGS_TABLE.returnPathDomain),
    feedbackListen: read(SETTINGS_TABLE.feedbackListen),
    feedbackHttpListen: read(SETTINGS_TABLE.feedbackHttpListen),
    sesTopics: read(SETTINGS_TABLE.sesTopics) ?? [],
    sesQueue: read(SETTINGS_TABLE.sesQueue),
    roles: requireValue(read(SETTINGS_TABLE.roles)),
    logLevel: requireValue(read(SETTINGS_TABLE.logLevel)),
    ignoredVariables: injectedVariables(environment),
    secretFiles: [...given].flatMap(([name, { file }]) => (file === null ? [] : [{ name, path: file }])),
  };
  checkStandby(settings);
  checkListeners(settings);
  checkFeedback(settings);
  return { settings: deepFreeze(settings), described: describeGiven(given) };
}

/** Returns the settings of `readSettings`. @throws SettingsError as `readSettings` does */
export function loadSettings(environment: Environment, dotEnv: string | null, readFile?: ReadFile): Settings {
  return readSettings(environment, dotEnv, readFile).settings;
}

/** Returns the description of `readSettings`. @throws SettingsError as `readSettings` does */
export function describeSettings(
  environment: Environment,
  dotEnv: string | null,
  readFile?: ReadFile,
): readonly DescribedSetting[] {
  return readSettings(environment, dotEnv, readFile).described;
}

function describeGiven(given: ReadonlyMap<string, GivenValue>): readonly DescribedSetting[] {
  return SETTING_SPECS.map((spec) => {
    const found = given.get(spec.name);
    const text = found?.text ?? spec.default;
    const value = text === null ? null : spec.show(text);
    return { name: spec.name, value, source: found?.source ?? 'default', meaning: spec.meaning };
  });
}

/** Returns the names of the variables in the environment that Kubernetes sets for a Service. These variables are ignored. */
function injectedVariables(environment: Environment): readonly string[] {
  return Object.entries(environment).flatMap(([name, text]) =>
    text !== undefined && isInjected(name, text) ? [name] : [],
  );
}

function isInjected(name: string, text: string): boolean {
  if (ALL_NAMES.includes(name)) return false;
  if (INJECTED_SERVICE.test(name)) return true;
  return INJECTED_PORT.test(name) && (name.includes('_PORT_') ? true : /^(?:tcp|udp|sctp):\/\//.test(text));
}

/** Returns the API key for `postrider send` from the environment or from `.env`. Returns null if neither contains the key. */
export function findApiKey(environment: Environment, dotEnv: string | null): string | null {
  const key =
    environment[API_KEY_VARIABLE] ?? (dotEnv === null ? undefined : readDotEnv(dotEnv)[API_KEY_VARIABLE]) ?? '';
  return key === '' ? null : key;
}

function collectGiven(
  environment: Environment,
  dotEnv: string | null,
  readFile: ReadFile,
): ReadonlyMap<string, GivenValue> {
  const given = new Map<string, GivenValue>();
  const add = (values: Environment, source: Source): void => {
    for (const [name, text] of Object.entries(values)) {
      if (text === undefined || !name.startsWith('POSTRIDER_') || name === API_KEY_VARIABLE || isInjected(name, text))
        continue;
      checkName(name, source);
      if (text.trim() === '')
        throw new SettingsError(`${name} is empty in ${sourceText(source)}; set a value, or remove it`);
      if (CONTROL_CHARACTER.test(text)) throw new SettingsError(`${name} in ${sourceText(source)} ${CONTROL_FAULT}`);
      given.set(name, { text, source, file: null });
    }
  };
  add(dotEnv === null ? {} : readDotEnv(dotEnv), '.env');
  add(environment, 'environment');
  for (const fileName of FILE_NAMES) {
    const file = given.get(fileName);
    if (file === undefined) continue;
    const name = fileName.slice(0, -FILE_SUFFIX.length);
    if (given.has(name)) throw new SettingsError(`${name} and ${fileName} are both set; remove one of them`);
    given.delete(fileName);
    given.set(name, { text: readSecret(fileName, file.text, readFile), source: 'file', file: file.text });
  }
  return given;
}

/** No setting contains a control character. Such a character is often a second line end in a secret file. */
const CONTROL_CHARACTER = /\p{Cc}/u;
const CONTROL_FAULT = 'contains a line break or another control character; remove it';

/** Returns the content of the file without one line end at its end. */
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
  if (CONTROL_CHARACTER.test(text)) throw new SettingsError(`${name}: ${quote(path)} ${CONTROL_FAULT}`);
  return text;
}

/** Reads the content of a secret file, without one line end at its end. @throws SettingsError */
export function readSecretFile({ name, path }: SecretFile): string {
  return readSecret(`${name}${FILE_SUFFIX}`, path, readSecretText);
}

/** Returns the variable that the user set: `NAME`, or `NAME_FILE` if the value is in a file. */
function nameOf(name: string, given: ReadonlyMap<string, GivenValue>): string {
  return given.get(name)?.source === 'file' ? `${name}${FILE_SUFFIX}` : name;
}

function checkName(name: string, source: Source): void {
  if (ALL_NAMES.includes(name)) return;
  if (name.endsWith(FILE_SUFFIX) && SETTING_NAMES.includes(name.slice(0, -FILE_SUFFIX.length))) {
    const settingName = name.slice(0, -FILE_SUFFIX.length);
    throw new SettingsError(
      `${name} in ${sourceText(source)} is not a setting: ${settingName} does not contain a secret; set ${settingName}`,
    );
  }
  const hint = didYouMean(name, ALL_NAMES) || '; `postrider config` lists them';
  throw new SettingsError(`${name} in ${sourceText(source)} is not a setting${hint}`);
}

function sourceText(source: Source): string {
  return source === '.env' ? '.env' : 'the environment';
}

/** Returns the value of a setting that has a default. A test checks that the table has the default. */
function requireValue<T>(value: T | null): T {
  if (value === null) throw new SettingsError('a setting without a default has no value');
  return value;
}

function withDirect(database: DatabaseSetting, direct: PostgresSetting | null): DatabaseSetting {
  if (direct === null) return database;
  if (database.kind === 'postgres') return { ...database, direct: Object.freeze(direct) };
  const { name } = SETTINGS_TABLE.databaseDirect;
  throw new SettingsError(`${name} needs PostgreSQL in ${SETTINGS_TABLE.database.name}; set that, or remove ${name}`);
}

function checkStandby({ database, requireSyncStandby }: Settings): void {
  if (!requireSyncStandby || database.kind === 'postgres') return;
  const { name } = SETTINGS_TABLE.requireSyncStandby;
  throw new SettingsError(`${name} needs PostgreSQL in ${SETTINGS_TABLE.database.name}; set that, or remove ${name}`);
}

function pairTls(certPath: string | null, keyPath: string | null): Settings['tls'] {
  if (certPath !== null && keyPath !== null) return { certPath, keyPath };
  if (certPath === null && keyPath === null) return null;
  const [set, missing] =
    certPath === null
      ? [SETTINGS_TABLE.tlsKey, SETTINGS_TABLE.tlsCert]
      : [SETTINGS_TABLE.tlsCert, SETTINGS_TABLE.tlsKey];
  throw new SettingsError(`${set.name} is set and ${missing.name} is not; HTTPS needs both`);
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
    const duplicate = listeners.slice(0, index).find((other) => isSameAddress(other.address, address));
    if (duplicate === undefined) continue;
    const both =
      formatListen(duplicate.address) === formatListen(address)
        ? `are both ${formatListen(address)}`
        : `(${formatListen(duplicate.address)} and ${formatListen(address)}) use the same port`;
    throw new SettingsError(
      `${duplicate.name} and ${name} ${both}; set another ${isUnixSocket(address) ? 'path' : 'port'} for one of them`,
    );
  }
  if (roles.has('operator') && isUnixSocket(operatorListen) && operatorPassword === null) {
    // The sign-in link of a start without a password is the URL of a loopback address.
    const problem = `${SETTINGS_TABLE.operatorListen.name}: ${formatListen(operatorListen)} is for a proxy`;
    throw new SettingsError(`${problem}; set ${SETTINGS_TABLE.operatorPassword.name}, or listen on 127.0.0.1`);
  }
  if (roles.has('operator') && !isLocalListen(operatorListen) && operatorPassword === null) {
    const problem = `${SETTINGS_TABLE.operatorListen.name}: ${formatListen(operatorListen)} accepts other machines`;
    throw new SettingsError(`${problem}; set ${SETTINGS_TABLE.operatorPassword.name}, or listen on 127.0.0.1`);
  }
}

function isSameAddress(left: HttpListen, right: HttpListen): boolean {
  if (isUnixSocket(left) || isUnixSocket(right))
    return isUnixSocket(left) && isUnixSocket(right) && left.socketPath === right.socketPath;
  // With port 0 the system chooses a free port.
  if (left.port === 0 || left.port !== right.port) return false;
  return left.host === right.host || includesHost(left.host, right.host) || includesHost(right.host, left.host);
}

/** Returns true if `wildcard` listens on every address of a family to which `host` belongs. `::` includes IPv4. */
function includesHost(wildcard: string, host: string): boolean {
  return wildcard === '::' || (wildcard === '0.0.0.0' && !isIPv6(host));
}

/** Checks the settings of feedback that depend on one another. */
function checkFeedback({ returnPathDomain, feedbackListen, feedbackHttpListen, sesTopics, sesQueue, roles }: Settings) {
  if (feedbackListen !== null && returnPathDomain === null) {
    throw new SettingsError(
      `${SETTINGS_TABLE.feedbackListen.name} accepts only messages to the return path; set ${SETTINGS_TABLE.returnPathDomain.name} to its domain`,
    );
  }
  if (feedbackHttpListen !== null && sesTopics.length === 0) {
    throw new SettingsError(
      `${SETTINGS_TABLE.feedbackHttpListen.name} accepts only the topics of ${SETTINGS_TABLE.sesTopics.name}; set it to their ARNs`,
    );
  }
  if (sesTopics.length > 0 && feedbackHttpListen === null && sesQueue === null) {
    throw new SettingsError(
      `${SETTINGS_TABLE.sesTopics.name} is set, but no listener or queue receives the events; set ${SETTINGS_TABLE.feedbackHttpListen.name} or ${SETTINGS_TABLE.sesQueue.name}`,
    );
  }
  const hasNoSource = feedbackListen === null && feedbackHttpListen === null && sesQueue === null;
  if (hasNoSource && roles.size === 1 && roles.has('feedback')) {
    throw new SettingsError(
      `${SETTINGS_TABLE.roles.name}: the role feedback has no source of feedback; set ${SETTINGS_TABLE.feedbackListen.name}, ${SETTINGS_TABLE.feedbackHttpListen.name} or ${SETTINGS_TABLE.sesQueue.name}`,
    );
  }
}

function deepFreeze(settings: Settings): Settings {
  for (const value of Object.values(settings)) if (typeof value === 'object' && value !== null) Object.freeze(value);
  if (settings.transport.kind === 'smtp') Object.freeze(settings.transport.auth);
  return Object.freeze(settings);
}
