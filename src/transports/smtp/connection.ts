/**
 * Opens one SMTP connection and makes it ready for mail: TCP, TLS, greeting, EHLO, STARTTLS, AUTH.
 *
 * Promises: never rejects; credentials never cross a network in clear text unless the operator wrote `tls=never`;
 * what a server said before TLS is forgotten (RFC 3207 section 4.2). Fails with the deferred outcome to record.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import type { SteadyClock } from '../../clock.ts';
import { type SmtpSetting, signIn } from './authentication.ts';
import { Channel } from './channel.ts';
import { greet } from './hello.ts';
import type { SmtpLimits } from './limits.ts';
import type { Lost } from './loss.ts';
import { ended, failed, lostOutcome, type Opened, refused } from './opened.ts';
import type { Transcript } from './transcript.ts';

/** The network, as it is handed in. */
export interface SmtpNetwork {
  readonly clock: SteadyClock;
  /** A socket that begins to connect; `node:net` unless given. */
  readonly connect?: (host: string, port: number) => Socket;
  /** TLS over a connected socket; `node:tls` unless given. */
  readonly secure?: (options: ConnectionOptions) => TLSSocket;
}

/** How to open one connection. */
export interface Opening {
  readonly transcript: Transcript;
  /** STARTTLS is not asked for even where it is offered. */
  readonly clear: boolean;
  /** When the attempt has to be through (milliseconds since the epoch). */
  readonly limitAt: number;
  /** Gets the channel at once, so that it can be ended while it is still opening. */
  readonly onChannel: (channel: Channel) => void;
}

/** Opens a connection and makes it ready for MAIL. */
export async function openConnection(
  setting: SmtpSetting,
  network: SmtpNetwork,
  limits: SmtpLimits,
  { transcript, clear, limitAt, onChannel }: Opening,
): Promise<Opened> {
  const peer = `${setting.host}:${setting.port}`;
  const socket = (network.connect ?? dial)(setting.host, setting.port);
  const channel = new Channel(socket, peer, network.clock, transcript);
  channel.begin(transcript, limitAt);
  onChannel(channel);

  const unreached = await channel.connected(limits.connectMs);
  if (unreached !== null) return failed(lostOutcome('connect', unreached), false);
  if (setting.tls === 'implicit') {
    const lost = await secure(channel, setting, network, limits);
    if (lost !== null) return failed(lostOutcome('connect', lost), true);
  }
  transcript.remark(describe(channel, peer));

  const greeting = await channel.next('the greeting', limits.greetingMs);
  if (greeting.kind === 'lost') return failed(lostOutcome('greeting', greeting), true);
  if (greeting.code !== 220) return refused(channel, 'greeting', greeting);

  let hello = await greet(channel, setting.name, limits);
  if (hello.kind === 'failed') return hello;

  if (setting.tls === 'required' || (setting.tls === 'offered' && !clear)) {
    if (hello.extensions.startTls) {
      channel.command('STARTTLS');
      const answer = await channel.next('the answer to STARTTLS', limits.commandMs);
      if (answer.kind === 'lost') return failed(lostOutcome('starttls', answer), true);
      if (answer.code === 220) {
        // Bytes after the 220 were put there in clear text by somebody who hopes to be read as TLS (CVE-2011-0411).
        if (channel.unread) {
          return ended(channel, 'starttls', 'connection', `${peer} sent clear text after the answer to STARTTLS`);
        }
        const lost = await secure(channel, setting, network, limits);
        if (lost !== null) {
          const failure = failed(lostOutcome('starttls', lost), true);
          return { ...failure, tlsFailed: setting.tls === 'offered' };
        }
        transcript.remark(describe(channel, peer));
        hello = await greet(channel, setting.name, limits);
        if (hello.kind === 'failed') return hello;
      } else if (setting.tls === 'required') {
        return refused(channel, 'starttls', answer);
      }
    } else if (setting.tls === 'required') {
      const text = `${peer} does not offer STARTTLS, which this transport requires; let the server offer it, or leave ?tls=required out`;
      return ended(channel, 'starttls', 'configuration', text);
    }
  }

  if (setting.auth !== null) {
    const refusal = await signIn(channel, setting, setting.auth, hello.extensions, limits);
    if (refusal !== null) return refusal;
  }
  return {
    kind: 'open',
    connection: {
      channel,
      extensions: hello.extensions,
      description: describe(channel, peer),
      served: 0,
      needsReset: false,
    },
  };
}

function dial(host: string, port: number): Socket {
  return connectTcp({ host, port });
}

function secure(
  channel: Channel,
  setting: SmtpSetting,
  network: SmtpNetwork,
  limits: SmtpLimits,
): Promise<Lost | null> {
  return channel.startTls(
    network.secure ?? connectTls,
    {
      host: setting.host,
      // RFC 6066 section 3: no IP address as a server name.
      ...(isIP(setting.host) === 0 ? { servername: setting.host } : {}),
      rejectUnauthorized: setting.tls !== 'offered' && setting.verifyCertificate,
    },
    limits.tlsMs,
  );
}

function describe(channel: Channel, peer: string): string {
  return `${peer} [${channel.remoteAddress ?? '?'}], ${channel.tlsDescription() ?? 'clear text'}`;
}
