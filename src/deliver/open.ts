/** Chooses the transport that the settings name; the simulator's addresses work with every one. */
import type { Clock } from '../clock.ts';
import type { TransportSetting } from '../config/settings.ts';
import type { Inbox } from './capture/inbox.ts';
import { captureInbox } from './capture/inbox.ts';
import { captureTransport } from './capture/transport.ts';
import { sesTransport } from './ses/transport.ts';
import { simulatorTransport } from './simulator/transport.ts';
import { smtpTransport } from './smtp/transport.ts';
import type { Transport } from './transport.ts';

export interface Handover {
  readonly transport: Transport;
  /** What `capture:` has captured; null for transports that capture nothing. */
  readonly inbox: Inbox | null;
}

/** `inboxPath` is where `capture:` keeps its Maildir. Throws a one-line Error where the setting cannot be used. */
export function openTransport(
  setting: TransportSetting,
  parts: { readonly clock: Clock; readonly inboxPath: string },
): Handover {
  const { clock, inboxPath } = parts;
  switch (setting.kind) {
    case 'capture':
      return {
        transport: simulatorTransport(captureTransport(inboxPath, clock), clock),
        inbox: captureInbox(inboxPath),
      };
    case 'ses':
      return { transport: simulatorTransport(sesTransport(setting, { clock }), clock), inbox: null };
    case 'smtp':
      return { transport: simulatorTransport(smtpTransport(setting, { clock }), clock), inbox: null };
  }
}
