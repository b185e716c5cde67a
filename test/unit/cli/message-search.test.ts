import { expect, test } from 'vitest';
import { decodeCursor, encodeCursor } from '../../../src/operations/message-search.ts';
import { createMessage, createMessageIdAt } from '../../rig/messages.ts';
import { createCommandRig } from './command-rig.ts';

const JANUARY = Date.UTC(2029, 0, 1);

async function createRigWithMessages(count: number) {
  const rig = await createCommandRig();
  const messages = Array.from({ length: count }, (_, index) =>
    createMessage({
      acceptedAt: JANUARY + index,
      to: `reader${index}@example.com`,
      subject: index % 2 === 0 ? 'Even news' : 'Odd news',
    }),
  );
  await rig.store.accept(messages);
  return { rig, ids: messages.map(({ id }) => id).reverse() };
}

test('the output is a table that names the flag for the next page, or states that no message matches', async () => {
  const { rig, ids } = await createRigWithMessages(3);
  const searchResult = await rig.run('message', 'search', 'even', '--limit', '1');
  expect(searchResult.stdout).toContain(ids[0]);
  expect(searchResult.stdout).toMatch(/for more messages, add --cursor \S+\n$/);
  expect((await rig.run('message', 'search', 'nothing')).stdout).toBe('no messages match\n');
});

test.each([
  [['--subject', '??'], /^--subject: "\?\?" contains no letters or digits to search for$/],
  [['!', '?'], /^the search text: "! \?" contains no letters or digits/],
  [['--cursor', 'elsewhere'], /^the cursor belongs to another search; omit it to start with the first page$/],
  [Array.from({ length: 33 }, (_, index) => `w${index}`), /^the search has 33 words; the maximum is 32$/],
])('a search with invalid arguments fails with a one-line error: %j', async (args, line) => {
  const rig = await createCommandRig();
  const output = await rig.run('message', 'search', ...args);
  expect(output.code).toBeGreaterThan(0);
  expect(output.stderr).toMatch(line);
});

test('a cursor is valid only for its own search, and a damaged cursor is refused', () => {
  const id = createMessageIdAt(JANUARY);
  const cursor = encodeCursor(['rita', undefined, 'x'], id);
  expect(decodeCursor(['rita', undefined, 'x'], cursor)).toBe(id);
  expect(decodeCursor(['rita', 'x', undefined], cursor)).toBeNull();
  expect(decodeCursor(['rita'], cursor)).toBeNull();
  for (let index = 0; index < cursor.length; index += 1) {
    const damagedCursor = `${cursor.slice(0, index)}${cursor[index] === 'A' ? 'B' : 'A'}${cursor.slice(index + 1)}`;
    expect(decodeCursor(['rita', undefined, 'x'], damagedCursor)).toBeNull();
  }
  for (const invalidCursor of ['', cursor.slice(1), `${cursor}A`, `${cursor}=`, ` ${cursor}`])
    expect(decodeCursor(['rita', undefined, 'x'], invalidCursor)).toBeNull();
});
