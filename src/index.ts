/**
 * The embeddable API of the package, as `postrider serve` in a Node program: it reads neither the environment nor
 * `.env`, installs no signal handler and never ends the process. `POSTRIDER_LOG: 'silent'` disables the log on standard
 * output.
 */
import { readSettings } from './config/load.ts';
import { startService as startParts } from './main.ts';
import { readVersion } from './version.ts';

/** With the syntax of the environment variables (docs/configuration.md). A name that is not a setting is an error. */
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

/** Rejects with one line that names the setting or resource, the problem and the remedy; nothing runs then. */
export async function startService(settings: SettingValues = {}): Promise<RunningService> {
  const { settings: loaded, describedSettings } = readSettings(settings, null);
  const operatorApi = { version: readVersion(), describeSettings: () => describedSettings };
  const service = await startParts(loaded, { operatorApi });
  const { publicUrl, operatorUrl, signInUrl, firstKey, failed, stop } = service;
  return { publicUrl, operatorUrl, signInUrl, firstKey, failed, stop };
}
