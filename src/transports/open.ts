/** Chooses the transport that the settings name; the simulator's addresses work with every one. */
import type { MonotonicClock } from '../clock.ts';
import type { TransportSetting } from '../config/settings.ts';
import type { Inbox } from '../model/inbox.ts';
import { createCaptureInbox } from './capture/inbox.ts';
import { createCaptureTransport } from './capture/transport.ts';
import { createSesTransport } from './ses/transport.ts';
import { withSimulator } from './simulator.ts';
import { createSmtpTransport } from './smtp/transport.ts';
import type { Transport } from './transport.ts';

export interface OpenedTransport {
  readonly transport: Transport;
  /** What `capture:` has captured; null for transports that capture nothing. */
  readonly inbox: Inbox | null;
}

export interface OpenTransportParts {
  readonly clock: MonotonicClock;
  /** Where `capture:` keeps its Maildir. */
  readonly inboxPath: string;
  /** Told of what stops no message but somebody should see to. */
  readonly onError?: (what: string, error: unknown) => void;
}

/** Throws a one-line Error where the setting cannot be used. */
export function openTransport(
  setting: TransportSetting,
  { clock, inboxPath, onError: failed }: OpenTransportParts,
): OpenedTransport {
  switch (setting.kind) {
    case 'capture':
      return {
        transport: withSimulator(createCaptureTransport(inboxPath, clock), clock),
        inbox: createCaptureInbox(inboxPath),
      };
    case 'ses':
      return {
        transport: withSimulator(
          createSesTransport(setting, { clock, ...(failed === undefined ? {} : { onError: failed }) }),
          clock,
        ),
        inbox: null,
      };
    case 'smtp':
      return { transport: withSimulator(createSmtpTransport(setting, { clock }), clock), inbox: null };
  }
}
