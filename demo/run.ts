/**
 * `npm run demo`: starts the demo, prints its addresses, and runs until Ctrl-C. The demo removes its temporary folder
 * at the end.
 *
 *   npm run demo                                                on free ports
 *   npm run demo -- --listen 127.0.0.1:8080 --operator-listen 127.0.0.1:8081
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { waitForStopSignal } from '../src/cli/serve.ts';
import { applyStyle, formatPairs, StatusLine } from '../src/cli/terminal.ts';
import { systemClock } from '../src/clock.ts';
import { describeError } from '../src/printing/escape.ts';
import { formatCount } from '../src/printing/text.ts';
import { type Demo, startDemo, VISITOR_ACCOUNT } from './demo.ts';

const ANY_PORT = '127.0.0.1:0';

try {
  await runDemo();
} catch (error) {
  // The command has flags in place of the settings POSTRIDER_LISTEN and POSTRIDER_OPERATOR_LISTEN.
  const errorLine = describeError(error)
    .replace('POSTRIDER_LISTEN', '--listen')
    .replace('POSTRIDER_OPERATOR_LISTEN', '--operator-listen');
  process.stderr.write(`demo: ${errorLine}\n`);
  process.exit(1);
}

async function runDemo(): Promise<void> {
  const { values } = parseArgs({
    options: {
      listen: { type: 'string', default: ANY_PORT },
      'operator-listen': { type: 'string', default: ANY_PORT },
      seed: { type: 'string', default: '1' },
    },
  });
  if (!/^[0-9]{1,9}$/.test(values.seed)) throw new Error('--seed must be a whole number, such as 1');
  const stopSignal = waitForStopSignal({ clock: systemClock });
  const status = new StatusLine(process.stderr);
  const demo = await startDemo(
    {
      listen: values.listen,
      operatorListen: values['operator-listen'],
      seed: Number(values.seed),
      now: null,
      hasLiveTraffic: true,
    },
    (share) => status.show(`Writing thirty days of messages: ${Math.floor(share * 100)} %`),
  );
  process.stdout.write(formatBanner(demo));
  const startedAt = systemClock.now();
  const historyReported = demo.history.then((history) => {
    if (history === null) return;
    const seconds = ((systemClock.now() - startedAt) / 1000).toFixed(1);
    status.clear();
    status.writeLine(
      `${formatCount(history.messageCount)} messages of thirty days were written in ${seconds} s; the applications now send more messages.`,
    );
    status.writeLine(`An API key of the account ${VISITOR_ACCOUNT}: ${history.key}`);
  });
  const result = await Promise.race([stopSignal, demo.service.failed, historyReported.then(() => stopSignal)]).catch(
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
  status.clear();
  await demo.stop();
  if (result instanceof Error) throw result;
  process.stderr.write(`${result}: the demo has stopped, and ${demo.folder} is removed\n`);
  // A library may leave a handle open, which would prevent the end of the process.
  process.exit(0);
}

function formatBanner({ service, folder }: Demo): string {
  const { signInUrl, operatorUrl, publicUrl } = service;
  const addresses: readonly (readonly [string, string])[] = [
    ['  Dashboard', signInUrl ?? operatorUrl ?? ''],
    ['  Public interface', `${publicUrl ?? ''}/api/v1/send-mail`],
    ['  Folder', folder],
  ];
  const notes = [
    'The link of the dashboard is valid for one sign-in. The service is real, the mail servers are simulated,',
    'and no message leaves this machine. Ctrl-C stops the demo and removes its folder.',
    '',
    'To choose the ports: npm run demo -- --listen 127.0.0.1:8080 --operator-listen 127.0.0.1:8081',
    `To run a command on this database: POSTRIDER_DATABASE=sqlite:${join(folder, 'postrider.db')} ./postrider overview`,
  ].join('\n');
  return `\n${applyStyle('heading', 'The Postrider demo is running.')}\n\n${formatPairs(addresses)}\n${notes}\n\n`;
}
