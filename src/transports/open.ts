/** Chooses the transport that the settings name; the simulator's addresses work with every one. */
import type { SteadyClock } from '../clock.ts';
import type { TransportSetting } from '../config/settings.ts';
import type { Inbox } from '../model/inbox.ts';
import { captureInbox } from './capture/inbox.ts';
import { captureTransport } from './capture/transport.ts';
import { sesTransport } from './ses/transport.ts';
import { simulatorTransport } from './simulator.ts';
import { smtpTransport } from './smtp/transport.ts';
import type { Transport } from './transport.ts';

export interface Handover {
  readonly transport: Transport;
  /** What `capture:` has captured; null for transports that capture nothing. */
  readonly inbox: Inbox | null;
}

export interface HandoverParts {
  readonly clock: SteadyClock;
  /** Where `capture:` keeps its Maildir. */
  readonly inboxPath: string;
  /** Told of what stops no message but somebody should see to. */
  readonly failed?: (what: string, error: unknown) => void;
}

/** Throws a one-line Error where the setting cannot be used. */
export function openTransport(setting: TransportSetting, { clock, inboxPath, failed }: HandoverParts): Handover {
  switch (setting.kind) {
    case 'capture':
      return {
        transport: simulatorTransport(captureTransport(inboxPath, clock), clock),
        inbox: captureInbox(inboxPath),
      };
    case 'ses':
      return {
        transport: simulatorTransport(
          sesTransport(setting, { clock, ...(failed === undefined ? {} : { failed }) }),
          clock,
        ),
        inbox: null,
      };
    case 'smtp':
      return { transport: simulatorTransport(smtpTransport(setting, { clock }), clock), inbox: null };
  }
}
