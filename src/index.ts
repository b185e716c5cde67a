/**
 * The embeddable API of the package: starts the service inside a Node program. The command `postrider serve` does the
 * same in a separate process.
 *
 * Guarantees: nothing is read from the environment or from `.env`, no signal handler is installed, and the service
 * never ends the process. Log lines are written to standard output; `POSTRIDER_LOG: 'silent'` disables them.
 */
import { readSettings } from './config/load.ts';
import { startService as startParts } from './main.ts';
import { readVersion } from './version.ts';

/**
 * The settings: a string for each name, such as `POSTRIDER_DATABASE`, with the syntax of the environment variable. An
 * absent setting has its default value. A name that is not a setting is an error. docs/configuration.md describes each
 * setting.
 */
export type SettingValues = { readonly [name: `POSTRIDER_${string}`]: string | undefined };

export interface RunningService {
  /** URL of the public listener, such as `http://127.0.0.1:8080`; null without the role `api`. */
  readonly publicUrl: string | null;
  /** URL of the operator listener; null without the role `operator`. */
  readonly operatorUrl: string | null;
  /** One-time sign-in link of the dashboard; null with `POSTRIDER_OPERATOR_PASSWORD`, or without the role `operator`. */
  readonly signInUrl: string | null;
  /** The raw API key that `startService` created in an empty store; otherwise null. It cannot be read again. */
  readonly firstKey: string | null;
  /** Resolves when the store has failed: stop this service and start a new one. Never rejects. */
  readonly failed: Promise<Error>;
  /**
   * Drains and stops the service: answers requests in progress, waits up to 25 s for delivery attempts, releases
   * leases, closes the store. Rejects with the first error, after every component has been stopped.
   */
  stop(): Promise<void>;
}

/**
 * Starts the service with the given settings. Rejects with a one-line Error that names the setting or the resource, the
 * problem and the remedy. After a rejection, no component of the service runs.
 */
export async function startService(settings: SettingValues = {}): Promise<RunningService> {
  const { settings: loaded, describedSettings } = readSettings(settings, null);
  const operatorApi = { version: readVersion(), describeSettings: () => describedSettings };
  const service = await startParts(loaded, { operatorApi });
  const { publicUrl, operatorUrl, signInUrl, firstKey, failed, stop } = service;
  return { publicUrl, operatorUrl, signInUrl, firstKey, failed, stop };
}
