/** `postrider config`: the effective settings, where each came from, secrets masked. */
import type { Command } from 'commander';
import { describeSettings } from '../config/load.ts';
import type { Context } from './context.ts';
import { table } from './text.ts';

/** Adds the command. */
export function addConfigCommand(program: Command, context: Context): void {
  const config = program
    .command('config')
    .description('print the effective settings, secrets masked')
    .option('--json', 'for machines');
  config.action((flags: { json?: boolean }) => {
    const described = describeSettings(context.environment, context.dotEnv());
    if (flags.json) context.json(described.map(({ name, value, source }) => ({ name, value, source })));
    else {
      const rows = described.map(({ name, value, source }) => [
        name,
        value ?? { text: 'none', style: 'quiet' as const },
        source === 'default' ? { text: source, style: 'quiet' as const } : source,
      ]);
      context.out(table(['SETTING', 'VALUE', 'FROM'], rows));
    }
  });
}
