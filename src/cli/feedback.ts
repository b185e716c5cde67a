/** `postrider feedback …`: lists and shows feedback reports that were not understood or belong to no known message. */
import type { Command } from 'commander';
import type { ReportDetails, ReportSummary } from '../operations/feedback/schemas.ts';
import { listFeedback, showFeedback } from '../operations/feedback.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatTime } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { formatPairs, formatTable } from './text.ts';

/** Adds `feedback` and its subcommands to `program`. */
export function addFeedbackCommands(program: Command, context: Context): void {
  const group = program.command('feedback').description('feedback reports that were not understood').helpCommand(false);
  addOperationCommand(group, context, 'list', listFeedback, {
    formatResult: (reports) =>
      reports.length === 0
        ? 'there are no stored reports: every report was understood\n'
        : formatTable(['ID', 'AT', 'VIA', 'REPORT', 'REASON'], reports.map(createReportRow), {
            truncatedHeadings: ['REPORT', 'REASON'],
          }),
  });
  addOperationCommand(group, context, 'show <id>', showFeedback, {
    formatResult: (report) =>
      `${formatReportHeading(report)}\n${report.raw.split(/\r?\n/).map(toPrintable).join('\n')}\n`,
  });
}

function createReportRow({ id, at, source, summary, reason }: ReportSummary): readonly string[] {
  return [String(id), formatTime(Date.parse(at)), source, summary, reason];
}

function formatReportHeading({ id, at, source, message, reason, summary }: ReportDetails): string {
  return formatPairs([
    ['report', String(id)],
    ['received', `${formatTime(Date.parse(at))} over ${source}`],
    ['message', message ?? 'unknown'],
    ['reason', { text: reason, style: 'warning' }],
    ['summary', summary],
  ]);
}
