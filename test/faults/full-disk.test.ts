/** Tests a full disk, which the file size limit of the shell simulates without root privileges. */
import { expect, test } from 'vitest';
import { createTemporaryFolder } from '../rig/folder.ts';
import { runJsonCommand, startProcess, submitUnderLoad } from '../rig/service.ts';

/**
 * The limit is in blocks of 512 bytes: about 1.5 MB per file. Because the signal XFSZ is ignored, writes fail as on a
 * full disk.
 */
const limitFileSize = (command: string) => `trap '' XFSZ; ulimit -f 3000; ${command}`;

test('on a full disk requests are answered with 500, and after a restart with free space the service continues and has every acknowledged message', async () => {
  const folder = createTemporaryFolder();
  const fullDiskService = await startProcess(folder, { POSTRIDER_ROLES: 'api' }, { wrapCommand: limitFileSize });
  const key = fullDiskService.key ?? '';
  const acknowledgedIds: string[] = [];
  let refusedCount = 0;
  for (let round = 0; round < 400 && refusedCount < 3; round += 1) {
    const responses = await Promise.all(
      Array.from({ length: 4 }, () => submitUnderLoad(fullDiskService.publicUrl, key, { message: 'x'.repeat(20_000) })),
    );
    for (const answer of responses) {
      const body = (await answer.json()) as { result: { id: string } };
      if (answer.status === 201) acknowledgedIds.push(body.result.id);
      else {
        expect([answer.status, body]).toEqual([500, { result: 'error', message: 'Internal server error' }]);
        refusedCount += 1;
      }
    }
  }
  expect(refusedCount).toBeGreaterThanOrEqual(3);
  expect(acknowledgedIds.length).toBeGreaterThan(10);
  fullDiskService.kill('SIGKILL');
  await fullDiskService.exitPromise;
  const restartedService = await startProcess(folder, { POSTRIDER_ROLES: 'api' });
  expect((await submitUnderLoad(restartedService.publicUrl, key)).status).toBe(201);
  const storedMessages = await runJsonCommand<{ id: string }[]>(folder, ['message', 'list', '--limit', '2000']);
  const ids = new Set(storedMessages.map(({ id }) => id));
  expect(acknowledgedIds.filter((id) => !ids.has(id))).toEqual([]);
});
