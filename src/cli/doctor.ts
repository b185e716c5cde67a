/**
 * `postrider doctor`: checks the installation from this machine, with the settings of the service. The command changes
 * nothing, creates no database, and sends messages only with `--loop`. The exit code is 0 if no check failed.
 */
import type { Command } from 'commander';
import type { Finding, FindingResult } from '../doctor/finding.ts';
import { runDoctor } from '../operations/doctor.ts';
import { testFeedbackLoop } from '../operations/doctor-loop.ts';
import { perform } from '../operations/operation.ts';
import { toPrintable } from '../printing/escape.ts';
import { createInstallation } from '../wiring/installation.ts';
import type { Context } from './context.ts';
import { CommandFailure } from './failure.ts';
import { declareOperations, unwrapResult } from './operation-command.ts';
import { type ProgressStream, StatusLine } from './progress.ts';
import { applyStyle, type Style } from './text.ts';

interface DoctorFlags {
  readonly json?: boolean;
  readonly loop?: boolean;
  readonly account?: string;
  readonly within?: string;
}

/** Adds `doctor` to `program`. `terminal` shows the progress. */
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
    const findings: Finding[] = [];
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

const RESULT_STYLES: Readonly<Record<FindingResult, Style>> = { ok: 'success', warning: 'warning', failure: 'error' };

/** Returns a line for each finding with its remedy below it, and the totals. */
export function formatFindings(findings: readonly Finding[]): string {
  const width = findings.reduce((width, { check }) => Math.max(width, [...toPrintable(check)].length), 0);
  const lines = findings.map(({ check, result, detail, remedy }) => {
    const name = toPrintable(check);
    const resultLine = `${applyStyle(RESULT_STYLES[result], result.padEnd(7))}  ${name}${' '.repeat(width - [...name].length)}  ${toPrintable(detail)}\n`;
    return remedy === null ? resultLine : `${resultLine}${' '.repeat(width + 11)}→ ${toPrintable(remedy)}\n`;
  });
  const countFindings = (result: FindingResult) => findings.filter((finding) => finding.result === result).length;
  const [warnings, failures] = [countFindings('warning'), countFindings('failure')];
  const totals = `${findings.length} checks: ${countFindings('ok')} ok, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${failures} ${failures === 1 ? 'failure' : 'failures'}`;
  return `${lines.join('')}\n${totals}\n`;
}
