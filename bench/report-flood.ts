/**
 * Measures what outsiders' reports about one message cost another client. In alternating windows without and with the
 * reports (bench/report-attack.ts), one client submits messages and reads the reported message. The script ends by
 * itself and prints one JSON line for each window, and one for all windows.
 *
 *   node bench/report-flood.ts '{"windowCount":2,"windowSeconds":20,"perSecond":150}'
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { deriveKey, loadOrCreateSecret } from '../src/domains/secret.ts';
import { createReturnPathToken } from '../src/message/return-path.ts';
import { calculateMedian } from './median.ts';
import { createBenchFolder, findFreePort, removeFolder, runCommand, startPostrider } from './postrider.ts';
import { runScript, withSink } from './script.ts';

const DOMAIN = 'bounces.example.org';
/** The pause of the client between two requests. */
const PAUSE_MS = 20;
const { windowCount, windowSeconds, perSecond } = {
  ...{ windowCount: 2, windowSeconds: 20, perSecond: 150 },
  ...(JSON.parse(process.argv[2] ?? '{}') as Partial<Record<'windowCount' | 'windowSeconds' | 'perSecond', number>>),
};

/** The latencies in ms of the requests of one window, and the requests whose status was not 200 or 201. */
interface Window {
  readonly submitMs: readonly number[];
  readonly readMs: readonly number[];
  readonly refusedCount: number;
}

await withSink(async (sinkPort) => {
  const folder = createBenchFolder();
  const smtpPort = await findFreePort();
  const settings = {
    POSTRIDER_TRANSPORT: `smtp://127.0.0.1:${sinkPort}`,
    POSTRIDER_FEEDBACK_LISTEN: `127.0.0.1:${smtpPort}`,
    POSTRIDER_RETURN_PATH_DOMAIN: DOMAIN,
    POSTRIDER_LOG: 'error',
  };
  const service = await startPostrider(settings, folder);
  try {
    const created = await runCommand(folder, settings, 'token', 'create', 'flood', '--json');
    const { token } = JSON.parse(created) as { token: string };

    const request = async (url: string, init: RequestInit) => {
      const start = performance.now();
      const response = await fetch(url, init);
      const text = await response.text();
      return { ms: performance.now() - start, isOk: response.ok, text };
    };
    const submit = (to: string) => {
      const body = JSON.stringify({ to, from: 'shop@example.org', subject: 'Your receipt', message: 'Thank you.' });
      const headers = { Authorization: service.key, 'Content-Type': 'application/json' };
      return request(`http://127.0.0.1:${service.port}/api/v1/send-mail`, { method: 'POST', headers, body });
    };
    const read = (id: string) =>
      request(`http://127.0.0.1:${service.operatorPort}/api/v1/messages/${id}`, {
        headers: { Authorization: `Bearer ${token}` },
      });
    const submitted = await Promise.all(
      ['flooded', 'mallory', 'trudy'].map((name) => submit(`${name}@${name}.example`)),
    );
    const ids = submitted.map(({ text }) => (JSON.parse(text) as { result: { id: string } }).result.id);
    const [reportedId = ''] = ids;
    const key = deriveKey(loadOrCreateSecret(join(folder, 'data/secret')), 'return-path');
    const returnPaths = ids.map((id) => `${createReturnPathToken(key, id, Date.now())}@${DOMAIN}`);

    const measure = async (): Promise<Window> => {
      const [submitMs, readMs]: [number[], number[]] = [[], []];
      let refusedCount = 0;
      const end = performance.now() + windowSeconds * 1_000;
      for (let n = 0; performance.now() < end; n += 1) {
        const isRead = n % 2 === 0;
        const { ms, isOk } = await (isRead ? read(reportedId) : submit(`reader.${n}@example.net`));
        (isRead ? readMs : submitMs).push(ms);
        if (!isOk) refusedCount += 1;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
      return { submitMs, readMs, refusedCount };
    };
    const summarize = ({ submitMs, readMs, refusedCount }: Window) => ({
      submitMedianMs: calculateMedian(submitMs),
      readMedianMs: calculateMedian(readMs),
      refusedCount,
    });

    await measure();
    const [calmWindows, hostileWindows]: [Window[], Window[]] = [[], []];
    for (let n = 0; n < windowCount; n += 1) {
      calmWindows.push(await measure());
      const [window, replies] = await Promise.all([
        measure(),
        runScript<object>('report-attack.ts', { smtpPort, returnPaths, perSecond, seconds: windowSeconds, seed: n }),
      ]);
      hostileWindows.push(window);
      console.log(
        JSON.stringify({ without: calmWindows.slice(-1).map(summarize)[0], with: summarize(window), replies }),
      );
    }
    const calculateRatio = (member: 'submitMs' | 'readMs') =>
      calculateMedian(hostileWindows.flatMap((window) => window[member])) /
      calculateMedian(calmWindows.flatMap((window) => window[member]));
    const { length: bytes } = (await read(reportedId)).text;
    const accounts = JSON.parse(await runCommand(folder, settings, 'account', 'list', '--json')) as { state: string }[];
    console.log(
      JSON.stringify({
        ...{ submitRatio: calculateRatio('submitMs'), readRatio: calculateRatio('readMs'), bytesOfMessage: bytes },
        ...{ storedRows: countRows(join(folder, 'data/postrider.db'), reportedId) },
        accountStates: accounts.map(({ state }) => state),
      }),
    );
  } finally {
    await service.stop();
    removeFolder(folder);
  }
});

/** Returns the number of history entries of the message, and of all stored reports. */
function countRows(path: string, id: string): { readonly entries: unknown; readonly reports: unknown } {
  const database = new DatabaseSync(path, { readOnly: true });
  const entries = database
    .prepare('SELECT count(*) AS n FROM event WHERE seq = (SELECT seq FROM mail_request WHERE id = ?)')
    .get(id)?.n;
  const reports = database.prepare('SELECT count(*) AS n FROM feedback').get()?.n;
  database.close();
  return { entries, reports };
}
