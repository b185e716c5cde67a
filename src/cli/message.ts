/** `postrider message …`: finds, shows, explains, retries and cancels messages. */
import type { Command } from 'commander';
import { searchMessages } from '../operations/message-search.ts';
import { LOCAL_FAULT_REMEDY, localFaultText } from '../operations/messages/explain.ts';
import type { EventDetails, FoundMessage, MessageDetails, MessageSummary } from '../operations/messages/schemas.ts';
import { cancelMessage, explainMessage, listMessages, retryMessage, showMessage } from '../operations/messages.ts';
import { printable } from '../printing/escape.ts';
import { formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { operationCommand } from './operation-command.ts';
import { formatPairs, formatTable, stateCell, styled } from './text.ts';

/** Adds the commands. */
export function addMessageCommands(program: Command, context: Context): void {
  const group = program.command('message').description('messages').helpCommand(false);
  operationCommand(group, context, 'list', listMessages, {
    text: (messages) => (messages.length === 0 ? NO_MATCH_TEXT : messageTable(messages)),
  });
  operationCommand(group, context, 'search [words...]', searchMessages, {
    arguments: { words: 'q' },
    text: ({ messages, next }, { waitReason }) =>
      (messages.length === 0 ? NO_MATCH_TEXT : messageTable(messages, waitReason === true)) +
      (next === null ? '' : `more messages: --cursor ${next}\n`),
  });
  operationCommand(group, context, 'show <id>', showMessage, { text: detailsText });
  operationCommand(group, context, 'explain <id>', explainMessage, {
    text: ({ explanation }) => `${explanation.map(printable).join('\n')}\n`,
  });
  operationCommand(group, context, 'retry <id>', retryMessage, { text: ({ id }) => `message ${id} is due now\n` });
  operationCommand(group, context, 'cancel <id>', cancelMessage, {
    text: ({ id }) => `cancelled message ${id}\n`,
  });
}

const NO_MATCH_TEXT = 'no messages match\n';

/** Returns a table of messages. `withWaitReason` adds a column: what each message waits for. */
function messageTable(messages: readonly (MessageSummary | FoundMessage)[], withWaitReason = false): string {
  const rows = messages.map((message) => [
    message.id,
    stateCell(message.state),
    isoText(message.at),
    message.to,
    message.from,
    message.subject,
    ...(withWaitReason && 'waitReason' in message ? [message.waitReason ?? ''] : []),
  ]);
  return formatTable(
    ['ID', 'STATE', 'ACCEPTED', 'TO', 'FROM', 'SUBJECT', ...(withWaitReason ? ['WAITS FOR'] : [])],
    rows,
    { truncated: ['TO', 'FROM', 'SUBJECT', 'WAITS FOR'] },
  );
}

/** Formats an ISO 8601 time as `2030-12-31 18:00:00Z`. */
function isoText(at: string): string {
  return formatTime(Date.parse(at));
}

function detailsText(details: MessageDetails): string {
  const { id, state, account, to, from, subject, at, due, ended, message, attempts, events } = details;
  const dueLine = due === null ? [] : [[state === 'sending' ? 'leased until' : 'due', isoText(due)] as const];
  const size = message === null ? 'erased' : `${Buffer.byteLength(message)} bytes (shown by --json)`;
  const heading = formatPairs([
    ['id', id],
    ['state', stateCell(state)],
    ['account', account ?? '(removed)'],
    ['to', to],
    ['from', from],
    ['subject', subject],
    ['accepted', isoText(at)],
    ...dueLine,
    ['ended', ended === null ? 'not yet' : isoText(ended)],
    ['attempts', String(attempts.length)],
    ['body', size],
  ]);
  return `${heading}\n${events.map((event) => eventText(event, details)).join('')}`;
}

function eventText({ at, type, by, detail, attempt: index }: EventDetails, { attempts }: MessageDetails): string {
  const attempt = index === null ? null : (attempts[index] ?? null);
  const fault = attempt === null ? null : localFaultText(attempt);
  const text = fault === null ? detail : `it ${fault}; ${LOCAL_FAULT_REMEDY}`;
  const detailText = text === null ? '' : `  ${printable(text)}`;
  const line = `${isoText(at)}  ${styled('heading', type)} by ${printable(by)}${detailText}\n`;
  const lines = attempt?.transcript.map((entry) => `${styled('dimmed', `    ${printable(entry)}`)}\n`) ?? [];
  return line + lines.join('');
}
