/**
 * `postrider doctor`: checks the installation from this machine, with the settings that the service would have. It
 * changes nothing, makes no database, and sends mail only for `--loop`. Exit code 0 where nothing failed.
 */
import type { Command } from 'commander';
import { parseDuration } from '../config/units.ts';
import type { Finding, Result } from '../doctor/finding.ts';
import { printable } from '../printing/escape.ts';
import type { Context } from './context.ts';
import { CommandFailure, flagValue } from './failure.ts';
import type { ProgressStream } from './progress.ts';
import { type Style, styled } from './text.ts';

interface Flags {
  readonly json?: boolean;
  readonly loop?: boolean;
  readonly account?: string;
  readonly within: string;
}

/** Adds the command. `terminal` is where progress goes. */
export function addDoctorCommand(program: Command, context: Context, terminal: ProgressStream = process.stderr): void {
  const doctor = program.command('doctor').description('check the installation; exit code 0 where nothing failed');
  doctor
    .option('--loop', 'also send mail that bounces, and wait for what comes back')
    .option('--account <name>', 'with --loop: the account that sends; the first with a domain unless given')
    .option('--within <time>', 'with --loop: how long to wait', '2m');
  doctor.option('--json', 'for machines: a list of {"check","result","detail","remedy"}');
  doctor.action(async (flags: Flags) => {
    const boundMs = flagValue('--within', parseDuration(flags.within));
    const { examine } = await import('./doctor-checks.ts');
    const findings = [...(await examine(context, terminal))];
    if (flags.loop === true) {
      const { examineLoop } = await import('./doctor-loop.ts');
      findings.push(...(await examineLoop(context, terminal, { account: flags.account, boundMs })));
    }
    if (flags.json)
      context.json(findings.map(({ check, result, detail, remedy }) => ({ check, result, detail, remedy })));
    else context.out(findingsText(findings));
    const failed = findings.filter(({ result }) => result === 'failure').map(({ check }) => check);
    if (failed.length > 0)
      throw new CommandFailure(`${failed.length} of ${findings.length} checks failed: ${failed.join(', ')}`);
  });
}

const STYLES: Readonly<Record<Result, Style>> = { ok: 'good', warning: 'waiting', failure: 'bad' };

/** A line for each finding, its remedy below it, and the sum. */
export function findingsText(findings: readonly Finding[]): string {
  const width = findings.reduce((most, { check }) => Math.max(most, [...printable(check)].length), 0);
  const lines = findings.map(({ check, result, detail, remedy }) => {
    const name = printable(check);
    const head = `${styled(STYLES[result], result.padEnd(7))}  ${name}${' '.repeat(width - [...name].length)}  ${printable(detail)}\n`;
    return remedy === null ? head : `${head}${' '.repeat(width + 11)}→ ${printable(remedy)}\n`;
  });
  const count = (result: Result) => findings.filter((finding) => finding.result === result).length;
  const [warnings, failures] = [count('warning'), count('failure')];
  const sum = `${findings.length} checks: ${count('ok')} ok, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${failures} ${failures === 1 ? 'failure' : 'failures'}`;
  return `${lines.join('')}\n${sum}\n`;
}
