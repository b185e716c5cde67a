import { expect, test } from 'vitest';
import { Type } from '../../../src/model/schema.ts';
import { ok } from '../../../src/operations/errors.ts';
import type { ServiceContext } from '../../../src/operations/operation.ts';
import { createOperationRoute, createPerformer } from '../../../src/operator/operation-route.ts';

test('requests that arrive during a run get the result of that run, and a request after the run starts a new run', async () => {
  let runCount = 0;
  const endRun: (() => void)[] = [];
  const definition = {
    ...{ name: 'slow.run', id: 'runSlow', summary: 'Run slowly', makesChange: false, errors: [] },
    role: 'viewer' as const,
    readsContent: false,
    input: Type.Object({}),
    result: Type.Integer(),
    run: async () => {
      runCount += 1;
      const runNumber = runCount;
      await new Promise<void>((resolve) => endRun.push(resolve));
      return ok(runNumber);
    },
  };
  const performRoute = createPerformer();
  const context = {} as ServiceContext;
  const sharedRoute = createOperationRoute('GET', '/slow', 'Slow', definition, 200, {}, true);
  const [first, second] = [performRoute(sharedRoute, {}, context), performRoute(sharedRoute, {}, context)];
  await expect.poll(() => endRun.length).toBe(1);
  endRun[0]?.();
  expect(await Promise.all([first, second])).toMatchObject([{ value: 1 }, { value: 1 }]);
  const thirdPromise = performRoute(sharedRoute, {}, context);
  await expect.poll(() => endRun.length).toBe(2);
  endRun[1]?.();
  expect(await thirdPromise).toMatchObject({ value: 2 });
});
