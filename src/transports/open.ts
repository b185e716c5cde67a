/** Opens the transport of the settings. The simulator addresses work with every transport. */
import type { MonotonicClock } from '../clock.ts';
import type { TransportSetting } from '../config/settings.ts';
import type { Inbox } from '../model/inbox.ts';
import { createCaptureInbox } from './capture/inbox.ts';
import { type ConsumeInboxRule, withInboxRules } from './capture/rules.ts';
import { createCaptureTransport } from './capture/transport.ts';
import { createSesTransport } from './ses/transport.ts';
import { withSimulator } from './simulator.ts';
import { createSmtpTransport } from './smtp/transport.ts';
import type { Transport } from './transport.ts';

export interface OpenedTransport {
  readonly transport: Transport;
  /** The captured messages of `capture:`; null for other transports. */
  readonly inbox: Inbox | null;
}

export interface OpenTransportParts {
  readonly clock: MonotonicClock;
  /** The directory of the Maildir to which `capture:` writes messages. */
  readonly inboxPath: string;
  /** Returns the inbox rule whose answer replaces that of the transport `capture:`, and counts the use of the rule. */
  readonly consumeInboxRule: ConsumeInboxRule;
  /** Called with a failure that does not prevent delivery but needs an operator's attention. */
  readonly onError?: (operation: string, error: unknown) => void;
}

/** Opens the transport. Throws an Error with a one-line message if the setting cannot be used. */
export function openTransport(
  setting: TransportSetting,
  { clock, inboxPath, consumeInboxRule, onError }: OpenTransportParts,
): OpenedTransport {
  switch (setting.kind) {
    case 'capture':
      return {
        transport: withSimulator(
          withInboxRules(createCaptureTransport(inboxPath, clock), consumeInboxRule, clock),
          clock,
        ),
        inbox: createCaptureInbox(inboxPath),
      };
    case 'ses':
      return {
        transport: withSimulator(
          createSesTransport(setting, { clock, ...(onError === undefined ? {} : { onError }) }),
          clock,
        ),
        inbox: null,
      };
    case 'smtp':
      return { transport: withSimulator(createSmtpTransport(setting, { clock }), clock), inbox: null };
  }
}
