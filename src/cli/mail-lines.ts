/** Mail requests in lists, for people and for machines, and the state by which they are asked for. */
import { didYouMean } from '../config/nearest.ts';
import { isoTime, quote } from '../config/units.ts';
import type { MailSummary } from '../model/message.ts';
import { STATES, type State } from '../model/state-machine.ts';
import { shorten, time } from '../printing/text.ts';
import { CommandFailure } from './failure.ts';
import { stateCell, table } from './text.ts';

/** @throws CommandFailure naming the states. */
export function parseState(text: string): State {
  const state = STATES.find((known) => known === text);
  if (state === undefined)
    throw new CommandFailure(
      `--state: ${quote(text)} is not one of ${STATES.join(', ')}${didYouMean(text, STATES)}`,
      2,
    );
  return state;
}

/** As `--json` lists it. */
export function summaryJson(mail: MailSummary): object {
  return {
    id: mail.id,
    state: mail.state,
    to: mail.to,
    from: mail.from,
    subject: mail.subject,
    at: isoTime(mail.acceptedAt),
  };
}

/** With a column more where `why` is given: what each waits for, by its id. */
export function mailTable(mails: readonly MailSummary[], why: ReadonlyMap<string, string> | null = null): string {
  const rows = mails.map((mail) => {
    return [
      mail.id,
      stateCell(mail.state),
      time(mail.acceptedAt),
      shorten(mail.to, 40),
      shorten(mail.from, 40),
      shorten(mail.subject, 60),
      ...(why === null ? [] : [why.get(mail.id) ?? '']),
    ];
  });
  const more = why === null ? [] : ['WAITS FOR'];
  return table(['ID', 'STATE', 'ACCEPTED', 'TO', 'FROM', 'SUBJECT', ...more], rows);
}
