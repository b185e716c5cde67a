/** `postrider feedback …`: what came back and was not understood, or is about nothing that is known. */
import type { Command } from 'commander';
import { isoTime, parseCount, quote } from '../config/units.ts';
import type { KeptFeedback } from '../model/feedback-report.ts';
import { printable } from '../printing/escape.ts';
import { shorten, time } from '../printing/text.ts';
import type { Context } from './context.ts';
import { CommandFailure, flagValue } from './failure.ts';
import { pairs, table } from './text.ts';

const MOST_LISTED = 10_000;
const SUMMARY_WIDTH = 60;
const REASON_WIDTH = 50;

/** Adds the commands. */
export function addFeedbackCommands(program: Command, context: Context): void {
  const group = program
    .command('feedback')
    .description('bounces and reports that were not understood')
    .helpCommand(false);
  const list = group.command('list').description('list them, newest first');
  list
    .option('--limit <n>', 'at most so many', '50')
    .option('--before <id>', 'older than this one')
    .option('--json', 'for machines');
  list.action(async (flags: { limit: string; before?: string; json?: boolean }) => {
    const limit = flagValue('--limit', parseCount(flags.limit, 1, MOST_LISTED));
    const before = flags.before === undefined ? null : feedbackId(flags.before);
    const found = await context.withStore((store) => store.listFeedback(before, limit));
    if (flags.json) context.json(found.map(summaryJson));
    else if (found.length === 0) context.out('everything that came back was understood\n');
    else context.out(table(['ID', 'AT', 'VIA', 'REPORT', 'WHY IT IS KEPT'], found.map(row)));
  });

  const show = group.command('show <id>').description('show one as it came').option('--json', 'for machines');
  show.action(async (id: string, flags: { json?: boolean }) => {
    const number = feedbackId(id);
    const found = await context.withStore((store) => store.showFeedback(number));
    if (found === null) {
      throw new CommandFailure(`there is no kept report ${number}; \`postrider feedback list\` shows them`);
    }
    const text = Buffer.from(found.raw).toString('utf8');
    if (flags.json) context.json({ ...summaryJson(found), raw: text });
    else context.out(`${heading(found)}\n${text.split(/\r?\n/).map(printable).join('\n')}\n`);
  });
}

function feedbackId(text: string): number {
  const parsed = parseCount(text, 1, Number.MAX_SAFE_INTEGER);
  if (parsed.ok) return parsed.value;
  throw new CommandFailure(`${quote(text)} is not the number of a report; \`postrider feedback list\` shows them`, 2);
}

function row({ id, at, source, summary, reason }: KeptFeedback): readonly string[] {
  return [String(id), time(at), source, shorten(printable(summary), SUMMARY_WIDTH), shorten(reason, REASON_WIDTH)];
}

function heading({ id, at, source, mailId, reason, summary }: KeptFeedback): string {
  return pairs([
    ['report', String(id)],
    ['received', `${time(at)} over ${source}`],
    ['mail request', mailId ?? 'none is named'],
    ['kept because', { text: reason, style: 'waiting' }],
    ['summary', summary],
  ]);
}

function summaryJson({ id, at, source, mailId, reason, summary }: KeptFeedback) {
  return { id, at: isoTime(at), source, message: mailId, reason, summary };
}
