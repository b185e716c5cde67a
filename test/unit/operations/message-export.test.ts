import { expect, test } from 'vitest';
import { exportMessages } from '../../../src/operations/message-search.ts';
import { performDownload } from '../../../src/operations/operation.ts';
import { createMessage } from '../../rig/messages.ts';
import { createOperationRig } from './operation-rig.ts';

test('a cell that a spreadsheet would evaluate begins with an apostrophe, and cells are quoted', async () => {
  const rig = await createOperationRig();
  const subjects = ['=HYPERLINK("http://x.example","a")', '+1', '-2', '@SUM(A1)', '\tx', 'plain', 'a, "b"'];
  await rig.store.accept(subjects.map((subject, index) => createMessage({ subject, acceptedAt: rig.now + index })));
  const pages = await rig.download(exportMessages, {});
  const csv = exportMessages.formatPage(pages.flat() as Parameters<typeof exportMessages.formatPage>[0]);
  expect(
    csv
      .trimEnd()
      .split('\n')
      .reverse()
      .map((row) => row.slice(row.indexOf('shop@example.org,') + 17, row.lastIndexOf(',0,,,,'))),
  ).toEqual([`"'=HYPERLINK(""http://x.example"",""a"")"`, "'+1", "'-2", "'@SUM(A1)", "'\tx", 'plain', '"a, ""b"""']);
});

test('an export ends at its limit with a notice that states the limit, and reads one page at a time', async () => {
  const rig = await createOperationRig();
  await rig.store.accept(Array.from({ length: 2_100 }, (_, index) => createMessage({ acceptedAt: rig.now + index })));
  let readCount = 0;
  const context = {
    ...rig.context,
    store: {
      ...rig.context.store,
      searchMessages: (...args: Parameters<typeof rig.store.searchMessages>) => {
        readCount += 1;
        return rig.store.searchMessages(...args);
      },
    },
  };
  const download = await performDownload(exportMessages, { limit: '1500' }, context);
  if (!download.ok) throw new Error(download.error.message);
  const pages = download.value[Symbol.asyncIterator]();
  expect((await pages.next()).value).toHaveLength(1_000);
  expect(readCount).toBe(1);
  expect((await pages.next()).value).toHaveLength(500);
  expect((await pages.next()).value).toEqual([{ notice: expect.stringContaining('1,500 messages') }]);
  expect((await pages.next()).done).toBe(true);
  const completeDownload = await rig.download(exportMessages, {});
  expect(completeDownload.flat()).toHaveLength(2_100);
});
