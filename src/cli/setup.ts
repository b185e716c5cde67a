/** `postrider setup`: shows the steps to set up the installation, with their states. */
import type { Command } from 'commander';
import type { Setup } from '../operations/setup/schemas.ts';
import { showSetup } from '../operations/setup.ts';
import type { Context } from './context.ts';
import { addOperationCommand } from './operation-command.ts';
import { applyStyle, type Cell, formatTable, type Style } from './text.ts';

/** Adds `setup` to `program`. */
export function addSetupCommand(program: Command, context: Context): void {
  addOperationCommand(program, context, 'setup', showSetup, { formatResult: formatSetup });
}

const CELLS_BY_STATE: Readonly<
  Record<Setup['steps'][number]['state'], { readonly text: string; readonly style: Style }>
> = {
  done: { text: 'done', style: 'success' },
  open: { text: 'open', style: 'warning' },
  optional: { text: 'optional', style: 'dimmed' },
  'not-needed': { text: 'not needed', style: 'dimmed' },
};

/** Formats a table of all steps, and then the action and the command of each open step. */
function formatSetup({ isComplete, steps }: Setup): string {
  const rows = steps.map(({ title, state, detail }): Cell[] => [title, CELLS_BY_STATE[state], detail]);
  const table = formatTable(['STEP', 'STATE', 'DETAIL'], rows, { truncatedHeadings: ['DETAIL'] });
  if (isComplete) return `${table}\n${applyStyle('success', 'No step is open.')}\n`;
  const openSteps = steps
    .filter(({ state }) => state === 'open')
    .map(({ title, action, command }) =>
      [
        applyStyle('heading', title),
        ...(action === null ? [] : [action]),
        ...(command === null ? [] : [`  ${command}`]),
      ].join('\n'),
    );
  return `${table}\n${openSteps.join('\n\n')}\n`;
}
