/** `postrider webhook …`. A signing secret is printed only once, by the command that creates it. */
import type { Command } from 'commander';
import {
  createWebhook,
  type DeliveryEntry,
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  listDeliveries,
  listWebhooks,
  replayWebhook,
  rotateWebhook,
  showWebhook,
  showWebhookStatistics,
  testWebhook,
  updateWebhook,
  type WebhookEntry,
  type WebhookRotation,
  type WebhookSecret,
} from '../operations/webhooks.ts';
import { formatCount } from '../printing/text.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { formatList, formatPairs, formatTimeText } from './terminal.ts';

const NO_ENDPOINTS_TEXT = 'There are no endpoints; create one with `postrider webhook create URL`.\n';

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
      formatList(
        webhooks,
        NO_ENDPOINTS_TEXT,
        {
          ID: ({ id }) => id,
          STATUS: ({ status }) => ({ text: status, style: status === 'enabled' ? 'success' : 'error' }),
          ACCOUNT: ({ account }) => account ?? '*',
          NAME: ({ name }) => name ?? '-',
          URL: ({ url }) => url,
        },
        ['NAME', 'URL'],
      ),
  });
  addOperationCommand(group, context, 'statistics', showWebhookStatistics, {
    formatResult: (figures) =>
      formatList(figures, NO_ENDPOINTS_TEXT, {
        ID: ({ id }) => id,
        PENDING: ({ pending }) => formatCount(pending),
        OLDEST: ({ oldestPendingAt }) => formatTimeText(oldestPendingAt, '-'),
        FAILED: ({ failed }) => (failed === 0 ? '0' : { text: formatCount(failed), style: 'error' }),
        'LAST SUCCESS': ({ lastSuccessAt }) => formatTimeText(lastSuccessAt, 'never'),
        'FAILING SINCE': ({ failingSince }) =>
          failingSince === null ? '-' : { text: formatTimeText(failingSince), style: 'error' },
      }),
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
      formatList(
        deliveries,
        'There are no deliveries.\n',
        {
          ID: ({ id }) => id,
          TYPE: ({ type }) => type,
          STATUS: ({ status }) => ({ text: status, style: DELIVERY_STYLES[status] }),
          ATTEMPTS: ({ attempts }) => String(attempts.length),
          'LAST RESULT': formatLastResult,
          'NEXT ATTEMPT': ({ nextAttemptAt }) => formatTimeText(nextAttemptAt, '-'),
        },
        ['LAST RESULT'],
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
  return `${formatSecret(rotation)}The old secret also signs until ${formatTimeText(rotation.previousSecretUntil)}.\n`;
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
      : [['disabled', `${webhook.disabledReason}, ${formatTimeText(webhook.disabledAt)}`] as const]),
    ['created', formatTimeText(webhook.createdAt)],
    ...(webhook.previousSecretUntil === null
      ? []
      : [['old secret', `signs until ${formatTimeText(webhook.previousSecretUntil)}`] as const]),
  ]);
}

const DELIVERY_STYLES = { delivered: 'success', failed: 'error', pending: 'warning' } as const;

function formatLastResult({ attempts }: DeliveryEntry): string {
  const lastAttempt = attempts.at(-1);
  return lastAttempt === undefined ? '-' : (lastAttempt.error ?? `status ${lastAttempt.status}`);
}
