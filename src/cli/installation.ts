import type { Command } from 'commander';
import { describeSettings } from '../config/load.ts';
import { type Findings, runDoctor, testFeedbackLoop } from '../operations/doctor.ts';
import { listProviders, type ProviderEntry, type Setup, showConfig, showSetup } from '../operations/installation.ts';
import { perform } from '../operations/operation.ts';
import { toPrintable } from '../printing/escape.ts';
import { createInstallation } from '../wiring/installation.ts';
import { CommandFailure, type Context } from './context.ts';
import { addOperationCommand, declareOperations, unwrapResult } from './operation-command.ts';
import {
  applyStyle,
  type Cell,
  formatPairs,
  formatTable,
  formatTimeText,
  LEVEL_STYLES,
  type ProgressStream,
  StatusLine,
  type Style,
} from './terminal.ts';

interface DoctorFlags {
  readonly json?: boolean;
  readonly loop?: boolean;
  readonly account?: string;
  readonly within?: string;
}

export function addDoctorCommand(program: Command, context: Context, terminal: ProgressStream = process.stderr): void {
  const doctor = program.command('doctor').description('check the installation; exit code 0 if no check failed');
  doctor
    .option('--loop', 'also send test messages that bounce, and wait for their bounces')
    .option('--account <name>', 'with --loop: the account that sends; default: the first account with a domain')
    .option('--within <time>', 'with --loop: maximum wait', '2m');
  doctor.option('--json', 'print JSON: a list of {"check","result","detail","remedy"}');
  declareOperations(doctor, [runDoctor, testFeedbackLoop]);
  doctor.action(async ({ json, loop, account, within }: DoctorFlags) => {
    const settings = context.getSettings();
    const line = new StatusLine(terminal);
    const operationContext = {
      machineClock: context.clock,
      settings,
      status: null,
      installation: createInstallation(settings, context.clock, (work) => context.withStore(work)),
      showProgress: (text: string) => line.show(text),
    };
    const toFlagName = (member: string) => `--${member}`;
    const findings: Findings = [];
    try {
      // The loop test runs before the checks, so that an invalid `--account` or `--within` is refused at once.
      const loopFindings =
        loop === true
          ? unwrapResult(context, await perform(testFeedbackLoop, { account, within }, operationContext), toFlagName)
          : [];
      findings.push(
        ...unwrapResult(context, await perform(runDoctor, {}, operationContext), toFlagName),
        ...loopFindings,
      );
    } finally {
      line.clear();
    }
    if (json === true) context.writeJson(findings);
    else context.writeText(formatFindings(findings));
    const failedChecks = findings.filter(({ result }) => result === 'failure').map(({ check }) => check);
    if (failedChecks.length > 0)
      throw new CommandFailure(
        `${failedChecks.length} of ${findings.length} checks failed: ${failedChecks.join(', ')}`,
      );
  });
}

export function formatFindings(findings: Findings): string {
  const width = findings.reduce((width, { check }) => Math.max(width, [...toPrintable(check)].length), 0);
  const lines = findings.map(({ check, result, detail, remedy }) => {
    const name = toPrintable(check);
    const resultLine = `${applyStyle(LEVEL_STYLES[result], result.padEnd(7))}  ${name}${' '.repeat(width - [...name].length)}  ${toPrintable(detail)}\n`;
    return remedy === null ? resultLine : `${resultLine}${' '.repeat(width + 11)}→ ${toPrintable(remedy)}\n`;
  });
  const countFindings = (result: Findings[number]['result']) =>
    findings.filter((finding) => finding.result === result).length;
  const [warnings, failures] = [countFindings('warning'), countFindings('failure')];
  const totals = `${findings.length} checks: ${countFindings('ok')} ok, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${failures} ${failures === 1 ? 'failure' : 'failures'}`;
  return `${lines.join('')}\n${totals}\n`;
}

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
  return [
    [
      name,
      { text: events.result, style: LEVEL_STYLES[events.result] },
      formatTimeText(events.lastEventAt, 'never'),
      events.url ?? '-',
      events.detail,
    ],
  ];
}

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
