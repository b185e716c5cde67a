/** `postrider feedback …`: feedback reports that could not be interpreted or belong to no known message. */
import type { Command } from 'commander';
import { type FeedbackReport, listFeedback, type ReportSummary, showFeedback } from '../operations/feedback.ts';
import { printable } from '../printing/escape.ts';
import { formatTime, shorten } from '../printing/text.ts';
import type { Context } from './context.ts';
import { operationCommand } from './operation-command.ts';
import { pairs, table } from './text.ts';

const SUMMARY_WIDTH = 60;
const REASON_WIDTH = 50;

/** Adds the commands. */
export function addFeedbackCommands(program: Command, context: Context): void {
  const group = program
    .command('feedback')
    .description('feedback reports that could not be interpreted')
    .helpCommand(false);
  operationCommand(group, context, 'list', listFeedback, {
    text: (reports) =>
      reports.length === 0
        ? 'there are no stored reports: every report was interpreted\n'
        : table(['ID', 'AT', 'VIA', 'REPORT', 'REASON'], reports.map(row)),
  });
  operationCommand(group, context, 'show <id>', showFeedback, {
    text: (report) => `${heading(report)}\n${report.raw.split(/\r?\n/).map(printable).join('\n')}\n`,
  });
}

function row({ id, at, source, summary, reason }: ReportSummary): readonly string[] {
  return [
    String(id),
    formatTime(Date.parse(at)),
    source,
    shorten(printable(summary), SUMMARY_WIDTH),
    shorten(reason, REASON_WIDTH),
  ];
}

function heading({ id, at, source, message, reason, summary }: FeedbackReport): string {
  return pairs([
    ['report', String(id)],
    ['received', `${formatTime(Date.parse(at))} over ${source}`],
    ['message', message ?? 'unknown'],
    ['reason', { text: reason, style: 'waiting' }],
    ['summary', summary],
  ]);
}
