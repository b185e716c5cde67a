import { join } from 'node:path';
import type { Command } from 'commander';
import { getDataFolder } from '../domains/setup.ts';
import { readEntity } from '../feedback/read/entity.ts';
import { listFeedback, type ReportDetails, showFeedback } from '../operations/feedback.ts';
import { type CapturedMessage, type Check, listInbox, showInbox } from '../operations/inbox.ts';
import { addInboxRule, type InboxRuleEntry, listInboxRules, removeInboxRule } from '../operations/inbox-rules.ts';
import type { InboxContext } from '../operations/operation.ts';
import { toPrintable } from '../printing/escape.ts';
import { formatCount } from '../printing/text.ts';
import { createCaptureInbox } from '../transports/capture.ts';
import type { Context } from './context.ts';
import { addOperationCommand, type CommandContext } from './operation-command.ts';
import { applyStyle, formatList, formatPairs, formatTimeText } from './terminal.ts';

export function addInboxCommands(program: Command, context: Context): void {
  const group = program
    .command('inbox')
    .description('captured messages, and rules that answer delivery attempts')
    .helpCommand(false);
  const inboxContext = createInboxCommandContext(context);
  addOperationCommand(group, inboxContext, 'list', listInbox, {
    jsonHelp: 'print JSON: {"messages","next"}',
    formatResult: ({ messages, next }) =>
      formatList(
        messages,
        'The inbox is empty.\n',
        {
          ID: ({ id }) => id,
          AT: ({ at }) => formatTimeText(at),
          TO: ({ to }) => to,
          SUBJECT: ({ subject }) => subject,
        },
        ['TO', 'SUBJECT'],
      ) + (messages.length === 0 || next === null ? '' : `\nfor older messages, add --before ${next}\n`),
  });
  addOperationCommand(group, inboxContext, 'show <id>', showInbox, { formatResult: formatMessage });

  const rules = group
    .command('rule')
    .description('rules that answer the next delivery attempts, to test error handling')
    .helpCommand(false);
  addOperationCommand(rules, context, 'add <match>', addInboxRule, {
    formatResult: (rule) => `${formatAddedRule(rule)}\n`,
  });
  addOperationCommand(rules, context, 'list', listInboxRules, {
    formatResult: (entries) =>
      formatList(
        entries,
        'There are no rules; add one with `postrider inbox rule add MATCH --code 451`.\n',
        {
          ID: ({ id }) => String(id),
          MATCH: ({ match }) => match,
          ANSWER: ({ answer }) => answer.summary,
          EFFECT: formatEffect,
          USED: ({ used, times }) => `${used} of ${times}`,
          STATUS: ({ status }) => status,
          EXPIRES: ({ expires }) => formatTimeText(expires),
        },
        ['MATCH', 'ANSWER'],
      ),
  });
  addOperationCommand(rules, context, 'remove <id>', removeInboxRule, {
    formatResult: ({ id, match }) => `Removed rule ${id} for ${match}.\n`,
  });
}

/** These operations need no store. */
function createInboxCommandContext(context: Context): CommandContext<InboxContext> {
  return {
    ...context,
    withOperationContext: (work) => {
      const { database, transport } = context.getSettings();
      const inbox = transport.kind === 'capture' ? createCaptureInbox(join(getDataFolder(database), 'inbox')) : null;
      return work({ inbox, readEntity });
    },
  };
}

function formatMessage({ id, at, to, from, subject, bytes, checks, text }: CapturedMessage): string {
  const heading = formatPairs([
    ['message', id],
    ['captured', formatTimeText(at)],
    ['to', to],
    ['from', from],
    ['subject', subject],
    ['size', `${formatCount(bytes)} bytes`],
  ]);
  const findings = checks.length === 0 ? 'The checks found nothing.\n' : checks.map(formatCheck).join('');
  const body = text === null ? '' : `\n${text.split('\n').map(toPrintable).join('\n')}\n`;
  return `${heading}\n${findings}${body}`;
}

function formatCheck({ code, level, count, title, reason, remedy, places }: Check): string {
  const style = level === 'error' ? 'error' : 'warning';
  const countText = count === 1 ? '' : ` (${formatCount(count)} times)`;
  const lines = places.map(
    ({ part, line, excerpt }) => `    ${line === null ? part : `${part} line ${line}`}: ${toPrintable(excerpt)}\n`,
  );
  return `${applyStyle(style, level.padEnd(7))}  ${code}: ${title}${countText}. ${reason}\n  → ${remedy}\n${lines.join('')}`;
}

function formatAddedRule(rule: InboxRuleEntry): string {
  const attempts = rule.times === 1 ? 'the next delivery attempt' : `the next ${rule.times} delivery attempts`;
  const suppression = rule.effect.suppresses ? ' The recipient is then on the suppression list of the account.' : '';
  return `Rule ${rule.id} answers ${attempts} to ${rule.match}, until ${formatTimeText(rule.expires)}: ${rule.answer.summary} (${formatEffect(rule)}).${suppression}`;
}

function formatEffect({ effect: { outcome, category, suppresses } }: InboxRuleEntry): string {
  return [outcome, category, suppresses ? 'suppresses' : null].filter((part) => part !== null).join(', ');
}

export function addFeedbackCommands(program: Command, context: Context): void {
  const group = program.command('feedback').description('feedback reports that were not understood').helpCommand(false);
  addOperationCommand(group, context, 'list', listFeedback, {
    formatResult: (reports) =>
      formatList(
        reports,
        'there are no stored reports: every report was understood\n',
        {
          ID: ({ id }) => String(id),
          AT: ({ at }) => formatTimeText(at),
          VIA: ({ source }) => source,
          REPORT: ({ summary }) => summary,
          REASON: ({ reason }) => reason,
        },
        ['REPORT', 'REASON'],
      ),
  });
  addOperationCommand(group, context, 'show <id>', showFeedback, {
    formatResult: (report) =>
      `${formatReportHeading(report)}\n${report.raw.split(/\r?\n/).map(toPrintable).join('\n')}\n`,
  });
}

function formatReportHeading({ id, at, source, message, reason, summary }: ReportDetails): string {
  return formatPairs([
    ['report', String(id)],
    ['received', `${formatTimeText(at)} over ${source}`],
    ['message', message ?? 'unknown'],
    ['reason', { text: reason, style: 'warning' }],
    ['summary', summary],
  ]);
}
