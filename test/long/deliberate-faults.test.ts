/** Checks that the default tests catch each deliberate fault of the source (deliberate-faults-list.ts). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createFaultyCopy, type FaultyCopy, findInvalidFaults } from './deliberate-faults.ts';
import { DELIBERATE_FAULTS } from './deliberate-faults-list.ts';

let faultyCopy: FaultyCopy;
beforeAll(async () => {
  expect(findInvalidFaults(DELIBERATE_FAULTS)).toEqual([]);
  faultyCopy = await createFaultyCopy(DELIBERATE_FAULTS);
});
afterAll(() => faultyCopy.dispose());

test('without a fault, all parts pass', { timeout: 1_800_000 }, async () => {
  expect(await faultyCopy.runUnchanged()).toMatchObject({ kind: 'missed' });
});

test.each(DELIBERATE_FAULTS)('a default test catches the fault $name', { timeout: 900_000 }, async (fault) => {
  expect(await faultyCopy.run(fault)).toMatchObject({ kind: 'caught' });
});
