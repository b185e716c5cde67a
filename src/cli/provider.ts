/** `postrider provider list`: shows the relay in use, and for each provider in use the state of its events. */
import type { Command } from 'commander';
import type { ProviderEntry } from '../operations/providers/schemas.ts';
import { listProviders } from '../operations/providers.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { type Cell, formatIsoTime, formatPairs, formatTable } from './text.ts';

/** Adds `provider` and its subcommand to `program`. */
export function addProviderCommands(program: Command, context: Context): void {
  const group = program
    .command('provider')
    .description('providers: the relay in use, and the events of providers')
    .helpCommand(false);
  addOperationCommand(group, context, 'list', listProviders, {
    formatResult({ transport, feedbackUrl, providers }) {
      const pairs = formatPairs([
        ['transport', transport.host === null ? transport.kind : `${transport.kind}, ${transport.host}`],
        ['provider', transport.provider ?? '-'],
        ['feedback URL', feedbackUrl ?? '-'],
      ]);
      const usedRows = providers.flatMap(toRow);
      return usedRows.length === 0
        ? pairs
        : `${pairs}\n${formatTable(['PROVIDER', 'EVENTS', 'LAST EVENT', 'URL', 'STATE'], usedRows, { truncatedHeadings: ['STATE'] })}`;
    },
  });
}

function toRow({ name, events }: ProviderEntry): readonly Cell[][] {
  if (events === null) return [];
  const style = { ok: 'success', warning: 'warning', failure: 'error' } as const;
  return [
    [
      name,
      { text: events.result, style: style[events.result] },
      formatIsoTime(events.lastEventAt, 'never'),
      events.url ?? '-',
      events.detail,
    ],
  ];
}
