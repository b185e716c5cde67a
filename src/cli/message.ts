import type { Command } from 'commander';
import { formatFailure } from '../model/failure.ts';
import { DEFAULT_ROUTE } from '../model/route.ts';
import { getInputMembers } from '../operations/input.ts';
import type { EventDetails, FoundMessage, MessageDetails } from '../operations/message-details.ts';
import { describeLocalFault, LOCAL_FAULT_REMEDY } from '../operations/message-explanation.ts';
import { countMessages, exportMessages, listMessages, searchMessages } from '../operations/message-search.ts';
import {
  cancelMessage,
  changeMessages,
  explainMessage,
  type MessageSource,
  resendMessage,
  retryMessage,
  showMessage,
  showMessageSource,
} from '../operations/messages.ts';
import { perform, performDownload } from '../operations/operation.ts';
import { escapeJson, toPrintable } from '../printing/escape.ts';
import { formatCount, formatDuration } from '../printing/text.ts';
import type { Context } from './context.ts';
import {
  addMemberFlags,
  addOperationCommand,
  declareOperations,
  toFlagName,
  unwrapResult,
} from './operation-command.ts';
import { applyStyle, createStateCell, formatList, formatPairs, formatTimeText, waitForDrain } from './terminal.ts';

export function addMessageCommands(program: Command, context: Context): void {
  const group = program.command('message').description('messages').helpCommand(false);
  addOperationCommand(group, context, 'list', listMessages, {
    formatResult: (messages) => formatMessageTable(messages),
  });
  addOperationCommand(group, context, 'search [words...]', searchMessages, {
    argumentMembers: { words: 'q' },
    formatResult: ({ messages, next }, { waitReason }) =>
      formatMessageTable(messages, waitReason === true) +
      (next === null ? '' : `for more messages, add --cursor ${next}\n`),
  });
  addExportCommand(group, context);
  addOperationCommand(group, context, 'count', countMessages, {
    formatResult: ({ count, isComplete }) => `${isComplete ? '' : 'at least '}${formatCount(count)}\n`,
  });
  addChangeCommand(group, context);
  addOperationCommand(group, context, 'show <id>', showMessage, { formatResult: formatMessageDetails });
  addOperationCommand(group, context, 'source <id>', showMessageSource, {
    help: 'write the raw source of a message, composed with the current settings and keys',
    flagHelp: { headersOnly: 'only the header fields' },
    jsonHelp: 'print JSON: {"id","source","bytes","signature","replacedFields"}',
    formatResult: ({ source }) => source,
    // A redirected source is a valid message.
    writesData: true,
    listWarnings: describeSourceDifferences,
  });
  addOperationCommand(group, context, 'explain <id>', explainMessage, {
    formatResult: ({ explanation }) => `${explanation.map(toPrintable).join('\n')}\n`,
  });
  addOperationCommand(group, context, 'retry <id>', retryMessage, {
    formatResult: ({ id }) => `message ${id} is due now\n`,
  });
  addOperationCommand(group, context, 'cancel <id>', cancelMessage, {
    formatResult: ({ id }) => `cancelled message ${id}\n`,
  });
  addOperationCommand(group, context, 'resend <id>', resendMessage, {
    formatResult: ({ id, resendOf }) => `submitted message ${resendOf} again as ${id}\n`,
  });
}

/** Changes the messages that match in consecutive batches. An interruption does not undo the completed ones. */
function addChangeCommand(group: Command, context: Context): void {
  const command = group
    .command('change <action>')
    .description('retry, cancel or resend the messages that match a filter; --dry-run only counts them');
  addMemberFlags(command, getInputMembers(countMessages.input));
  command.option('--dry-run', 'count the messages that match the filter, and change none');
  command.option('--json', 'print JSON: {"done","refused","reasons"}');
  declareOperations(command, [changeMessages]);
  command.action((action: string, { json, dryRun, ...filter }: Readonly<Record<string, unknown>>) =>
    context.withOperationContext(async (operationContext) => {
      const getInputName = (member: string) => (member === 'action' ? 'ACTION' : toFlagName(member));
      const countMatches = async () =>
        unwrapResult(context, await perform(countMessages, filter, operationContext), getInputName);
      if (dryRun === true) {
        const { count, isComplete } = await countMatches();
        if (json === true) context.writeJson({ count, isComplete });
        else
          context.writeText(
            `${isComplete ? '' : 'at least '}${count === 1 ? '1 message matches' : `${formatCount(count)} messages match`}\n`,
          );
        return;
      }
      const matchCount = json === true || Object.keys(filter).length === 0 ? 0 : (await countMatches()).count;
      const totals = { done: 0, refused: 0, reasons: new Set<string>() };
      for (let cursor: string | undefined; ; ) {
        const rawInput = { action, ...filter, ...(cursor === undefined ? {} : { cursor }) };
        const batch = unwrapResult(context, await perform(changeMessages, rawInput, operationContext), getInputName);
        totals.done += batch.done;
        totals.refused += batch.refused;
        for (const reason of batch.reasons) totals.reasons.add(reason);
        if (batch.next === null) break;
        cursor = batch.next;
      }
      const reasons = [...totals.reasons];
      if (json === true) context.writeJson({ done: totals.done, refused: totals.refused, reasons });
      else {
        const refusedText =
          totals.refused === 0 ? '' : `, ${formatCount(totals.refused)} refused (${reasons.join(', ')})`;
        const lostCount = matchCount - totals.done - totals.refused;
        const lostText = lostCount <= 0 ? '' : `, ${formatCount(lostCount)} no longer matched`;
        context.writeText(`${action}: ${formatCount(totals.done)} done${refusedText}${lostText}\n`);
      }
    }),
  );
}

function describeSourceDifferences({ signature, replacedFields }: MessageSource): readonly string[] {
  return [
    ...(signature === 'other-keys'
      ? ['a DKIM key was activated after the last attempt, so DKIM-Signature differs from the transmitted field']
      : []),
    ...(replacedFields.length > 0
      ? [`the provider replaces these header fields after the transmission: ${replacedFields.join(', ')}`]
      : []),
  ];
}

function addExportCommand(group: Command, context: Context): void {
  const command = group.command('export').description('write messages as CSV to standard output, newest first');
  addMemberFlags(command, getInputMembers(exportMessages.input));
  command.option('--json', 'print the messages as JSON, one per line');
  declareOperations(command, [exportMessages]);
  command.action(({ json, ...flags }: Readonly<Record<string, unknown>>) =>
    context.withOperationContext(async (operationContext) => {
      const result = await performDownload(exportMessages, flags, operationContext);
      const pages = unwrapResult(context, result, toFlagName);
      if (json !== true) context.writeData(exportMessages.header);
      for await (const page of pages) {
        const text =
          json === true
            ? page.map((line) => `${escapeJson(JSON.stringify(line))}\n`).join('')
            : exportMessages.formatPage(page);
        context.writeData(text);
        await waitForDrain();
      }
    }),
  );
}

function formatMessageTable(messages: readonly FoundMessage[], withWaitReason = false): string {
  return formatList<FoundMessage>(
    messages,
    'no messages match\n',
    {
      ID: ({ id }) => id,
      STATE: ({ state, held }) => (held ? { text: 'queued, held', style: 'warning' } : createStateCell(state)),
      ACCEPTED: ({ at }) => formatTimeText(at),
      TO: ({ to }) => to,
      FROM: ({ from }) => from,
      SUBJECT: ({ subject }) => subject,
      ...(messages.some(({ route }) => isFurtherRoute(route))
        ? { ROUTE: ({ route }: FoundMessage) => route ?? '' }
        : {}),
      REASON: ({ reason }) => [reason?.category, reason?.text].filter((part) => typeof part === 'string').join(': '),
      ...(withWaitReason ? { 'WAITS FOR': ({ waitReason }: FoundMessage) => waitReason ?? '' } : {}),
    },
    ['TO', 'FROM', 'SUBJECT', 'REASON', 'WAITS FOR'],
  );
}

/** Without further routes, the route needs no mention. */
function isFurtherRoute(route: string | null): boolean {
  return route !== null && route !== DEFAULT_ROUTE;
}

function formatMessageDetails(details: MessageDetails): string {
  const { id, state, account, to, from, subject, at, due, held, ended, message, attempts, events, deliveryMs } =
    details;
  const duePair = due === null ? [] : [[state === 'sending' ? 'leased until' : 'due', formatTimeText(due)] as const];
  const bodyText = message === null ? 'erased' : `${Buffer.byteLength(message)} bytes (shown by --json)`;
  const { furtherReports } = details;
  const furtherReportsText =
    furtherReports === 0 ? '' : `(${furtherReports} further reports changed nothing and were only counted)\n`;
  const heading = formatPairs([
    ['id', id],
    ['state', createStateCell(state)],
    ['account', account ?? '(removed)'],
    ['to', to],
    ['from', from],
    ['subject', subject],
    ['accepted', formatTimeText(at)],
    ...duePair,
    ...(held === null ? [] : [['held', describeHeld(held)] as const]),
    ['ended', ended === null ? 'not yet' : formatTimeText(ended)],
    ...(deliveryMs === null ? [] : [['delivered', `${formatDuration(deliveryMs)} after acceptance`] as const]),
    ...formatConfirmation(details),
    ['attempts', String(attempts.length)],
    ['body', bodyText],
  ]);
  return `${heading}\n${events.map((event, index) => `${formatOmission(details, index)}${formatEvent(event, details)}`).join('')}${furtherReportsText}`;
}

function formatOmission({ events }: MessageDetails, index: number): string {
  const omittedCount = (events[index]?.sequence ?? 0) - (events[index - 1]?.sequence ?? -1) - 1;
  return omittedCount === 0 ? '' : `(${omittedCount} events are not shown)\n`;
}

function describeHeld({ hold, reason, since }: NonNullable<MessageDetails['held']>): string {
  const sinceText = since === null ? '' : `since ${formatTimeText(since)} `;
  return hold === null ? `${sinceText}by a hold that has ended` : `${sinceText}by hold ${hold} (${reason})`;
}

type Pairs = readonly (readonly [string, string])[];

function formatConfirmation({ state, confirmedAt, confirmationMs, events }: MessageDetails): Pairs {
  if (confirmedAt === null || confirmationMs === null)
    return state === 'delivered' ? [['confirmed', 'no; the next hop accepted the message']] : [];
  const source = events.find(({ type }) => type === 'confirmed')?.by ?? '';
  const spanText = `${formatDuration(confirmationMs)} after acceptance`;
  return [['confirmed', `${formatTimeText(confirmedAt)} by ${source}, ${spanText}`]];
}

function formatEvent(
  { at, type, by, detail, class: failureClass, category, attempt: attemptIndex }: EventDetails,
  { attempts }: MessageDetails,
): string {
  const attempt = attemptIndex === null ? null : (attempts[attemptIndex] ?? null);
  const fault = attempt === null ? null : describeLocalFault(attempt);
  const failureText =
    failureClass === null || category === null ? '' : `${formatFailure({ class: failureClass, category })}: `;
  const explanation = fault === null ? detail && `${failureText}${detail}` : `it ${fault}; ${LOCAL_FAULT_REMEDY}`;
  const detailText = explanation === null ? '' : `  ${toPrintable(explanation)}`;
  const line = `${formatTimeText(at)}  ${applyStyle('heading', type)} by ${toPrintable(by)}${detailText}\n`;
  return line + (attempt === null ? '' : formatRoute(attempt) + formatTranscript(attempt));
}

function formatRoute({ route, because }: MessageDetails['attempts'][number]): string {
  if (!isFurtherRoute(route) && because === null) return '';
  return `    route ${route}${because === null ? '' : `, because ${toPrintable(because)}`}\n`;
}

function formatTranscript({ transcript, transcriptOffsetsMs }: MessageDetails['attempts'][number]): string {
  return transcript
    .map((line, index) => {
      const offsetMs = transcriptOffsetsMs?.[index];
      const offsetText = offsetMs === undefined ? '' : `${`+${offsetMs} ms`.padStart(9)}  `;
      return `${applyStyle('dimmed', `    ${offsetText}${toPrintable(line)}`)}\n`;
    })
    .join('');
}
