/**
 * Signs in at the server (RFC 4954). Promises: credentials cross a network in clear text only where the operator
 * wrote `tls=never`; they are in no transcript and no error.
 */
import type { TransportSetting } from '../../config/settings.ts';
import type { Channel } from './channel.ts';
import { authLogin, authPlain } from './command.ts';
import type { SmtpLimits } from './limits.ts';
import type { Lost } from './loss.ts';
import type { Extensions } from './opened.ts';
import { ended, failed, lostOutcome, type OpeningFailed, refused } from './opened.ts';
import type { ServerReply } from './reply-parser.ts';

export type SmtpSetting = Extract<TransportSetting, { kind: 'smtp' }>;

/** AUTH PLAIN, or LOGIN where PLAIN is not offered; null when signed in. */
export async function signIn(
  channel: Channel,
  setting: SmtpSetting,
  auth: { readonly user: string; readonly pass: string },
  extensions: Extensions,
  limits: SmtpLimits,
): Promise<OpeningFailed | null> {
  const peer = `${setting.host}:${setting.port}`;
  if (!channel.secure && setting.tls !== 'never' && !isLoopback(channel.remoteAddress)) {
    const text = `the credentials for ${peer} are not sent in clear text; the server must offer STARTTLS, or set ?tls=never to send them anyway`;
    return ended(channel, 'auth', 'configuration', text);
  }
  let answer: ServerReply | Lost;
  if (extensions.auth.includes('PLAIN')) {
    channel.command(authPlain(auth.user, auth.pass), 'AUTH PLAIN ***');
    answer = await channel.next('the answer to AUTH', limits.commandMs);
  } else if (extensions.auth.includes('LOGIN')) {
    channel.command('AUTH LOGIN');
    answer = await channel.next('the answer to AUTH', limits.commandMs);
    for (const secret of authLogin(auth.user, auth.pass)) {
      if (answer.kind === 'lost' || answer.code !== 334) break;
      channel.command(secret, '***');
      answer = await channel.next('the answer to AUTH', limits.commandMs);
    }
  } else {
    const offered = extensions.auth.length === 0 ? 'no AUTH at all' : `only ${extensions.auth.join(', ')}`;
    const text = `${peer} offers ${offered}, but user and password need AUTH PLAIN or LOGIN; leave them out of the transport URL, or use the server's submission port`;
    return ended(channel, 'auth', 'configuration', text);
  }
  if (answer.kind === 'lost') return failed(lostOutcome('auth', answer), true);
  return answer.code === 235 ? null : refused(channel, 'auth', answer);
}

function isLoopback(address: string | null): boolean {
  return address !== null && (address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.'));
}
