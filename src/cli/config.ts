/** `postrider config`: prints the effective settings with the source of each. Secrets are masked. */
import type { Command } from 'commander';
import { describeSettings } from '../config/load.ts';
import { showConfig } from '../operations/config.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { formatTable } from './text.ts';

/** Adds `config` to `program`. */
export function addConfigCommand(program: Command, context: Context): void {
  const configContext = { describeSettings: () => describeSettings(context.environment, context.readDotEnv()) };
  addOperationCommand(
    program,
    { ...context, withOperationContext: (work) => work(configContext) },
    'config',
    showConfig,
    {
      // The members of the JSON output are fixed, because scripts depend on them.
      toJsonValue: (settings) => settings.map(({ name, value, source }) => ({ name, value, source })),
      formatResult(settings) {
        const rows = settings.map(({ name, value, source }) => [
          name,
          value ?? { text: 'none', style: 'dimmed' as const },
          source === 'default' ? { text: source, style: 'dimmed' as const } : source,
        ]);
        return formatTable(['SETTING', 'VALUE', 'FROM'], rows, { truncatedHeadings: ['VALUE'] });
      },
    },
  );
}
