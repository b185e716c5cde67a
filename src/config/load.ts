/**
 * Reads the frozen settings of this process from the environment and the text of `.env`. The environment takes
 * precedence. An invalid, unknown or unsupported setting throws a SettingsError with a one-line message. No setting is
 * ignored.
 */

import { readDotEnv } from './dot-env.ts';
import { formatHostPort, isLoopback } from './host.ts';
import { didYouMean } from './nearest.ts';
import { type HostPort, type Settings, SettingsError } from './settings.ts';
import { SETTINGS_TABLE, type SettingSpec } from './table.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export type Source = 'default' | '.env' | 'environment';

/** One effective setting, safe to print. */
export interface DescribedSetting {
  readonly name: string;
  /** Secrets are masked. Null if the setting has no value. */
  readonly value: string | null;
  readonly source: Source;
  readonly meaning: string;
}

/** Only `postrider send` reads this variable. It is not a setting of the service. */
const API_KEY_VARIABLE = 'POSTRIDER_API_KEY';

interface GivenValue {
  readonly text: string;
  readonly source: Source;
}

const SETTING_SPECS: readonly SettingSpec<unknown>[] = Object.values(SETTINGS_TABLE);
const SETTING_NAMES: readonly string[] = SETTING_SPECS.map((spec) => spec.name);

/**
 * @param environment as in `process.env`; only names that begin with `POSTRIDER_` are read.
 * @param dotEnv the text of `.env`, or null if there is none.
 * @throws SettingsError
 */
export function loadSettings(environment: Environment, dotEnv: string | null): Settings {
  const given = collectGiven(environment, dotEnv);
  const read = <T>(spec: SettingSpec<T>): T | null => {
    const text = given.get(spec.name)?.text ?? spec.default;
    if (text === null) return null;
    const parsed = spec.parse(text);
    if (!parsed.ok) throw new SettingsError(`${spec.name}: ${parsed.fault}`);
    return parsed.value;
  };
  const settings: Settings = {
    database: requireValue(read(SETTINGS_TABLE.database)),
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
  };
  checkListeners(settings);
  checkFeedback(settings);
  return deepFreeze(settings);
}

/**
 * Returns the effective settings in the order of the table, with secrets masked. @throws SettingsError like
 * `loadSettings`
 */
export function describeSettings(environment: Environment, dotEnv: string | null): readonly DescribedSetting[] {
  loadSettings(environment, dotEnv);
  const given = collectGiven(environment, dotEnv);
  return SETTING_SPECS.map((spec) => {
    const found = given.get(spec.name);
    const text = found?.text ?? spec.default;
    const value = text === null ? null : spec.show(text);
    return { name: spec.name, value, source: found?.source ?? 'default', meaning: spec.meaning };
  });
}

/** Returns the API key for `postrider send` from the environment or from `.env`; null if neither sets it. */
export function findApiKey(environment: Environment, dotEnv: string | null): string | null {
  const key =
    environment[API_KEY_VARIABLE] ?? (dotEnv === null ? undefined : readDotEnv(dotEnv)[API_KEY_VARIABLE]) ?? '';
  return key === '' ? null : key;
}

function collectGiven(environment: Environment, dotEnv: string | null): ReadonlyMap<string, GivenValue> {
  const given = new Map<string, GivenValue>();
  const add = (values: Environment, source: Source): void => {
    for (const [name, text] of Object.entries(values)) {
      if (text === undefined || !name.startsWith('POSTRIDER_') || name === API_KEY_VARIABLE) continue;
      checkName(name, source);
      if (text === '') throw new SettingsError(`${name} is empty in ${sourceText(source)}; set a value, or remove it`);
      given.set(name, { text, source });
    }
  };
  add(dotEnv === null ? {} : readDotEnv(dotEnv), '.env');
  add(environment, 'environment');
  return given;
}

function checkName(name: string, source: Source): void {
  if (SETTING_NAMES.includes(name)) return;
  const hint = didYouMean(name, SETTING_NAMES) || '; `postrider config` lists them';
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
    const duplicate = listeners
      .slice(0, index)
      .find((other) => address.port !== 0 && isSameAddress(other.address, address));
    if (duplicate === undefined) continue;
    throw new SettingsError(
      `${duplicate.name} and ${name} are both ${formatHostPort(address)}; set another port for one of them`,
    );
  }
  if (roles.has('operator') && !isLoopback(operatorListen.host) && operatorPassword === null) {
    const problem = `${SETTINGS_TABLE.operatorListen.name}: ${formatHostPort(operatorListen)} accepts other machines`;
    throw new SettingsError(`${problem}; set ${SETTINGS_TABLE.operatorPassword.name}, or listen on 127.0.0.1`);
  }
}

function isSameAddress(left: HostPort, right: HostPort): boolean {
  return left.port === right.port && left.host === right.host;
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
