import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runCommand } from '../rig/service.ts';
import { createScenario } from './running-service.ts';

const rig = createScenario();

test('before the first start, no check of doctor fails, and doctor creates no file', async () => {
  const folder = rig.createFolder();
  const { code, stdout, stderr } = await runCommand(folder, ['doctor', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const findings = JSON.parse(stdout) as { check: string; result: string }[];
  const results = Object.fromEntries(findings.map(({ check, result }) => [check, result]));
  expect(results).toMatchObject({ database: expect.stringMatching(/^(ok|warning)$/), transport: 'ok' });
  expect(readdirSync(folder)).toEqual([]);
});
