/** `postrider webhook …`. A signing secret is printed only once, by the command that creates it. */
import type { Command } from 'commander';
import { listDeliveries, replayWebhook, testWebhook } from '../operations/webhook-deliveries.ts';
import {
  createWebhook,
  type DeliveryEntry,
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  listWebhooks,
  rotateWebhook,
  showWebhook,
  showWebhookStatistics,
  updateWebhook,
  type WebhookEntry,
  type WebhookFigures,
  type WebhookRotation,
  type WebhookSecret,
} from '../operations/webhooks.ts';
import { formatCount } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { type Cell, formatIsoTime, formatPairs, formatTable } from './terminal.ts';

export function addWebhookCommands(program: Command, context: Context): void {
  const group = program
    .command('webhook')
    .description('webhooks: endpoints that receive the outcome of messages, and their deliveries')
    .helpCommand(false);
  addOperationCommand(group, context, 'create <url>', createWebhook, {
    customFlags: { events: '--events <list>' },
    jsonHelp: 'print JSON: {"id","secret"}',
    formatResult: formatSecret,
  });
  addOperationCommand(group, context, 'list', listWebhooks, {
    toJsonValue: (webhooks) => webhooks.map(toPublishedEntry),
    formatResult: (webhooks) =>
      webhooks.length === 0
        ? 'There are no endpoints; create one with `postrider webhook create URL`.\n'
        : formatTable(['ID', 'STATUS', 'ACCOUNT', 'NAME', 'URL'], webhooks.map(toRow), {
            truncatedHeadings: ['NAME', 'URL'],
          }),
  });
  addOperationCommand(group, context, 'statistics', showWebhookStatistics, {
    formatResult: (figures) =>
      figures.length === 0
        ? 'There are no endpoints; create one with `postrider webhook create URL`.\n'
        : formatTable(
            ['ID', 'PENDING', 'OLDEST', 'FAILED', 'LAST SUCCESS', 'FAILING SINCE'],
            figures.map(toFiguresRow),
          ),
  });
  addOperationCommand(group, context, 'show <id>', showWebhook, {
    toJsonValue: toPublishedEntry,
    formatResult: formatWebhook,
  });
  addOperationCommand(group, context, 'update <id>', updateWebhook, {
    customFlags: { events: '--events <list>' },
    toJsonValue: toPublishedEntry,
    formatResult: formatWebhook,
  });
  addOperationCommand(group, context, 'delete <id>', deleteWebhook, {
    formatResult: ({ id, url }) => `deleted ${id} (${url})\n`,
  });
  addOperationCommand(group, context, 'enable <id>', enableWebhook, {
    toJsonValue: toPublishedEntry,
    formatResult: ({ id }) => `enabled ${id}; its pending deliveries are due\n`,
  });
  addOperationCommand(group, context, 'disable <id>', disableWebhook, {
    toJsonValue: toPublishedEntry,
    formatResult: ({ id }) => `disabled ${id}; its events are kept for 30 days\n`,
  });
  addOperationCommand(group, context, 'rotate <id>', rotateWebhook, {
    customFlags: { grace: '--grace <duration>' },
    jsonHelp: 'print JSON: {"id","secret"}',
    toJsonValue: ({ id, secret }) => ({ id, secret }),
    formatResult: formatRotation,
  });
  addOperationCommand(group, context, 'test <id>', testWebhook, {
    formatResult: ({ id, webhookId }) =>
      `delivery ${id} is due; \`postrider webhook deliveries ${webhookId}\` shows its result\n`,
  });
  addOperationCommand(group, context, 'deliveries <id>', listDeliveries, {
    formatResult: (deliveries) =>
      deliveries.length === 0
        ? 'There are no deliveries.\n'
        : formatTable(
            ['ID', 'TYPE', 'STATUS', 'ATTEMPTS', 'LAST RESULT', 'NEXT ATTEMPT'],
            deliveries.map(toDeliveryRow),
            { truncatedHeadings: ['LAST RESULT'] },
          ),
  });
  addOperationCommand(group, context, 'replay <id>', replayWebhook, {
    customFlags: { since: '--since <when>' },
    formatResult: ({ id, replayed }, { dryRun }) => {
      const verb = dryRun === true ? 'would be' : replayed === 1 ? 'is' : 'are';
      return `${formatCount(replayed)} ${replayed === 1 ? 'delivery' : 'deliveries'} of ${id} ${verb} due\n`;
    },
  });
}

function formatSecret({ id, secret }: WebhookSecret): string {
  return `${secret}\n\nThis is the signing secret of endpoint ${id}. It is shown only once.\n`;
}

function formatRotation(rotation: WebhookRotation): string {
  return `${formatSecret(rotation)}The old secret also signs until ${formatIsoTime(rotation.previousSecretUntil)}.\n`;
}

/** The members are fixed, because scripts of operators read them. */
function toPublishedEntry({ previousSecretUntil: _until, ...entry }: WebhookEntry): object {
  return entry;
}

function formatWebhook({ id, url, account, name, events, status, ...webhook }: WebhookEntry): string {
  return formatPairs([
    ['id', id],
    ['url', url],
    ['account', account ?? 'every account'],
    ['name', name ?? '-'],
    ['events', events.join(', ')],
    ['status', status],
    ...(webhook.disabledReason === null
      ? []
      : [['disabled', `${webhook.disabledReason}, ${formatIsoTime(webhook.disabledAt)}`] as const]),
    ['created', formatIsoTime(webhook.createdAt)],
    ...(webhook.previousSecretUntil === null
      ? []
      : [['old secret', `signs until ${formatIsoTime(webhook.previousSecretUntil)}`] as const]),
  ]);
}

function toRow({ id, url, account, name, status }: WebhookEntry): Cell[] {
  const style = status === 'enabled' ? 'success' : 'error';
  return [id, { text: status, style }, account ?? '*', name ?? '-', url];
}

function toFiguresRow({ id, pending, oldestPendingAt, failed, lastSuccessAt, failingSince }: WebhookFigures): Cell[] {
  return [
    id,
    formatCount(pending),
    formatIsoTime(oldestPendingAt, '-'),
    failed === 0 ? '0' : { text: formatCount(failed), style: 'error' },
    formatIsoTime(lastSuccessAt, 'never'),
    failingSince === null ? '-' : { text: formatIsoTime(failingSince), style: 'error' },
  ];
}

function toDeliveryRow({ id, type, status, attempts, nextAttemptAt }: DeliveryEntry): Cell[] {
  const lastAttempt = attempts.at(-1);
  const style = { delivered: 'success', failed: 'error', pending: 'warning' } as const;
  const result = lastAttempt === undefined ? '-' : (lastAttempt.error ?? `status ${lastAttempt.status}`);
  const nextAttemptText = formatIsoTime(nextAttemptAt, '-');
  return [id, type, { text: status, style: style[status] }, String(attempts.length), result, nextAttemptText];
}
