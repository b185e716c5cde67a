/**
 * The transport `smtp:` and `smtps:`: hands messages to one relay over pooled connections.
 *
 * Promises what every transport promises: never rejects, `beforeHandover` once and just before the final dot. A
 * reused connection that proves dead before that costs no attempt: the message goes once more over a fresh one.
 */
import { isIP } from 'node:net';
import type { Attempt, Outcome } from '../../model/outcome.ts';
import type { OutgoingMessage, Transport } from '../transport.ts';
import { type Channel, Transcript } from './channel.ts';
import { authLogin, authPlain, CommandError, envelopeLines, helloCommand } from './command.ts';
import { type Opened, openConnection, type SmtpNetwork, type SmtpSetting } from './connection.ts';
import { SMTP_LIMITS, type SmtpLimits } from './limits.ts';
import { Pool } from './pool.ts';
import { transact } from './transaction.ts';

/** What the transport needs from outside; `limits` replaces single figures of `SMTP_LIMITS`. */
export interface SmtpDeps extends SmtpNetwork {
  readonly limits?: Partial<SmtpLimits>;
}

/** Makes the transport. Throws `CommandError` where the EHLO name or the credentials cannot be sent as SMTP lines. */
export function smtpTransport(setting: SmtpSetting, deps: SmtpDeps): Transport {
  helloCommand('EHLO', setting.name);
  if (setting.auth !== null) {
    authPlain(setting.auth.user, setting.auth.pass);
    authLogin(setting.auth.user, setting.auth.pass);
  }
  const limits: SmtpLimits = { ...SMTP_LIMITS, ...deps.limits };
  const { clock } = deps;
  const pool = new Pool(setting.connections, limits, clock);
  const remote = isIP(setting.host) === 6 ? `[${setting.host}]:${setting.port}` : `${setting.host}:${setting.port}`;
  const opening = new Set<Channel>();
  let clearUntil = 0;
  let closing = false;

  async function openOnce(transcript: Transcript, limitAt: number, clear: boolean): Promise<Opened> {
    let channel: Channel | null = null;
    const onChannel = (made: Channel): void => {
      channel = made;
      opening.add(made);
    };
    const opened = await openConnection(setting, deps, limits, { transcript, clear, limitAt, onChannel });
    if (channel !== null) opening.delete(channel);
    return opened;
  }

  async function open(transcript: Transcript, limitAt: number): Promise<Opened> {
    const opened = await openOnce(transcript, limitAt, clock.monotonic() < clearUntil);
    if (opened.kind === 'open' || !opened.tlsFailed || setting.auth !== null || closing) return opened;
    // RFC 7435: where encryption is only opportunistic, its failure must not stop the mail. With credentials
    // at stake it does.
    clearUntil = clock.monotonic() + limits.clearAfterTlsFailureMs;
    transcript.remark('TLS failed; once more in clear text');
    return openOnce(transcript, limitAt, true);
  }

  return {
    concurrency: setting.connections,

    async close(timeoutMs: number): Promise<void> {
      closing = true;
      await pool.close(timeoutMs);
      for (const channel of opening) channel.destroy('the service is stopping');
    },

    async attempt(message: OutgoingMessage, beforeHandover: (() => Promise<void>) | null): Promise<Attempt> {
      const startedAt = clock.now();
      const startedSteady = clock.monotonic();
      const limitAt = startedSteady + limits.attemptMs;
      const transcript = new Transcript();
      let reached = false;
      const finish = (outcome: Outcome): Attempt => ({
        outcome,
        startedAt,
        tookMs: clock.monotonic() - startedSteady,
        remote: reached ? remote : null,
        conversation: transcript.lines,
      });

      try {
        const { from, to, smtputf8 } = message.envelope;
        const lines = envelopeLines(from, to, smtputf8);
        for (let fresh = false; ; fresh = true) {
          const acquired = pool.acquire(fresh);
          let connection = acquired instanceof Promise ? await acquired : acquired;
          if (connection === 'closed') return finish(ownFault('connection', 'the service is stopping', 'transport'));
          if (connection === 'open') {
            let opened: Opened;
            try {
              opened = await open(transcript, limitAt);
            } catch (error) {
              pool.freed();
              throw error;
            }
            if (opened.kind === 'failed') {
              pool.freed();
              reached ||= opened.reached;
              return finish(opened.outcome);
            }
            connection = opened.connection;
            pool.opened(connection);
          } else {
            transcript.remark(`${connection.description}, message ${connection.served + 1} of this connection`);
          }
          reached = true;
          connection.channel.begin(transcript, limitAt);
          let outcome: Outcome | 'stale';
          try {
            outcome = await transact(connection, message, lines, beforeHandover, limits, transcript);
          } catch (error) {
            connection.channel.destroy();
            throw error;
          } finally {
            pool.release(connection);
          }
          if (outcome !== 'stale') return finish(outcome);
          transcript.remark('the kept connection was dead; once more over a new one');
        }
      } catch (error) {
        // A bug of ours or of the caller: kept as temporary, and as this message's own.
        const text = error instanceof CommandError ? error.message : `the attempt failed inside: ${String(error)}`;
        return finish(ownFault('unknown', text, 'message'));
      }
    },
  };
}

function ownFault(reason: 'connection' | 'unknown', text: string, scope: 'message' | 'transport'): Outcome {
  return { kind: 'deferred', reply: { stage: 'connect', code: null, enhanced: null, text }, reason, scope };
}
