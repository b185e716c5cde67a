/** EHLO and what the server offers in its answer (RFC 5321 section 4.1.1.1); HELO for servers without it. */
import type { Channel } from './channel.ts';
import { helloCommand } from './command.ts';
import type { SmtpLimits } from './limits.ts';
import { type Extensions, failed, lostOutcome, type OpeningFailed, refused } from './opened.ts';
import type { ServerReply } from './reply-parser.ts';

const NO_EXTENSIONS: Extensions = { pipelining: false, size: false, smtputf8: false, startTls: false, auth: [] };

type Hello = { readonly kind: 'hello'; readonly extensions: Extensions } | OpeningFailed;

/** Says EHLO, and HELO where that is not known. */
export async function greet(channel: Channel, name: string, limits: SmtpLimits): Promise<Hello> {
  channel.command(helloCommand('EHLO', name));
  const answer = await channel.next('the answer to EHLO', limits.commandMs);
  if (answer.kind === 'lost') return failed(lostOutcome('ehlo', answer), true);
  if (answer.code === 250) return { kind: 'hello', extensions: extensionsOf(answer) };
  // RFC 5321 section 3.2: a server that does not know EHLO is asked with HELO.
  if (answer.code < 500 || answer.code > 504) return refused(channel, 'ehlo', answer);
  channel.command(helloCommand('HELO', name));
  const older = await channel.next('the answer to HELO', limits.commandMs);
  if (older.kind === 'lost') return failed(lostOutcome('ehlo', older), true);
  if (older.code === 250) return { kind: 'hello', extensions: NO_EXTENSIONS };
  return refused(channel, 'ehlo', older);
}

function extensionsOf(reply: ServerReply): Extensions {
  const keywords = new Set<string>();
  const auth = new Set<string>();
  for (const line of reply.lines.slice(1)) {
    const words = line.slice(4).trim().toUpperCase().split(' ');
    const keyword = words[0] ?? '';
    keywords.add(keyword);
    // `AUTH=LOGIN` is what servers before RFC 2554 wrote.
    if (keyword === 'AUTH' || keyword.startsWith('AUTH=')) {
      if (keyword.length > 5) auth.add(keyword.slice(5));
      for (const mechanism of words.slice(1)) if (mechanism !== '') auth.add(mechanism);
    }
  }
  return {
    pipelining: keywords.has('PIPELINING'),
    size: keywords.has('SIZE'),
    smtputf8: keywords.has('SMTPUTF8'),
    startTls: keywords.has('STARTTLS'),
    auth: [...auth],
  };
}
