/**
 * `npm run demo`: starts the demo, tells where it is, and goes on until Ctrl-C. The sandbox is gone afterwards.
 *
 *   npm run demo                                                on free ports
 *   npm run demo -- --listen 127.0.0.1:8080 --operator-listen 127.0.0.1:8081
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { formatCount, StatusLine } from '../src/cli/progress.ts';
import { waitForStopSignal } from '../src/cli/serve.ts';
import { pairs, styled } from '../src/cli/text.ts';
import { systemClock } from '../src/clock.ts';
import { describeError } from '../src/printing/error-line.ts';
import { type Demo, startDemo, VISITOR_ACCOUNT } from './demo.ts';

const FREE = '127.0.0.1:0';

try {
  await run();
} catch (error) {
  // The settings are given as flags here.
  const line = describeError(error)
    .replace('POSTRIDER_LISTEN', '--listen')
    .replace('POSTRIDER_OPERATOR_LISTEN', '--operator-listen');
  process.stderr.write(`demo: ${line}\n`);
  process.exit(1);
}

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: {
      listen: { type: 'string', default: FREE },
      'operator-listen': { type: 'string', default: FREE },
      seed: { type: 'string', default: '1' },
    },
  });
  if (!/^[0-9]{1,9}$/.test(values.seed)) throw new Error('--seed is a whole number, such as 1');
  const stopped = waitForStopSignal({ clock: systemClock });
  const status = new StatusLine(process.stderr);
  const demo = await startDemo(
    {
      listen: values.listen,
      operatorListen: values['operator-listen'],
      seed: Number(values.seed),
      now: null,
      live: true,
    },
    (part) => status.show(`Writing thirty days of mail: ${Math.floor(part * 100)} %`),
  );
  process.stdout.write(banner(demo));
  const begun = systemClock.now();
  const filled = demo.history.then((past) => {
    if (past === null) return;
    const seconds = ((systemClock.now() - begun) / 1000).toFixed(1);
    status.clear();
    status.writeLine(
      `${formatCount(past.messageCount)} mail requests of thirty days are there, after ${seconds} s; more are sent each second.`,
    );
    status.writeLine(`A key for the public interface, of the account ${VISITOR_ACCOUNT}: ${past.key}`);
  });
  const ended = await Promise.race([stopped, demo.service.failed, filled.then(() => stopped)]).catch(
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
  status.clear();
  await demo.stop();
  if (ended instanceof Error) throw ended;
  process.stderr.write(`${ended}: stopped, and ${demo.folder} is gone\n`);
  // Whatever a library has left open must not keep a stopped demo alive.
  process.exit(0);
}

function banner({ service, folder }: Demo): string {
  const { signInUrl, operatorUrl, publicUrl } = service;
  const places: readonly (readonly [string, string])[] = [
    ['  Dashboard', signInUrl ?? operatorUrl ?? ''],
    ['  Public interface', `${publicUrl ?? ''}/api/v1/send-mail`],
    ['  Sandbox', folder],
  ];
  const about = [
    'Open the link of the dashboard; it signs in once. The service is the real one; the mail servers around it are played,',
    'and nothing leaves this machine. Ctrl-C ends the demo and removes the sandbox.',
    '',
    'It took free ports, or those of --listen and --operator-listen: npm run demo -- --operator-listen 127.0.0.1:8081',
    `Commands work on the sandbox too: POSTRIDER_DATABASE=sqlite:${join(folder, 'postrider.db')} npx postrider overview`,
  ].join('\n');
  return `\n${styled('head', 'Postrider runs as a demo.')}\n\n${pairs(places)}\n${about}\n\n`;
}
