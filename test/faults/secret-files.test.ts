/** Tests that a running service shows the settings that it read at its start, even if the files change afterwards. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { EffectiveSettings } from '../../src/operations/config/schemas.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { startProcess } from '../rig/service.ts';
import { signIn } from '../rig/session.ts';

const PASSWORD = 'correct-horse-battery';

test('GET /config shows the settings read at the start, with secrets masked, after .env and the secret files are changed or removed', async () => {
  const folder = createTemporaryFolder();
  const getPath = (name: string) => join(folder, name);
  writeFileSync(getPath('password'), PASSWORD);
  writeFileSync(getPath('secret'), '0f'.repeat(32));
  writeFileSync(getPath('transport'), 'smtp://me:first-word@relay.example:587');
  writeFileSync(getPath('.env'), 'POSTRIDER_MAX_AGE=2h\nPOSTRIDER_TRANSPORT_FILE=transport\n');
  const service = await startProcess(folder, {
    POSTRIDER_OPERATOR_PASSWORD_FILE: getPath('password'),
    POSTRIDER_SECRET_FILE: getPath('secret'),
  });
  const headers = { ...(await signIn(service.operatorUrl, { password: PASSWORD })) };
  const readConfig = async () => {
    const response = await fetch(`${service.operatorUrl}/api/v1/config`, { headers });
    return { status: response.status, settings: (await response.json()) as EffectiveSettings };
  };
  const initialConfig = await readConfig();
  expect(initialConfig.status).toBe(200);
  expect(initialConfig.settings).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ name: 'POSTRIDER_OPERATOR_PASSWORD', value: '********', source: 'file' }),
      expect.objectContaining({
        name: 'POSTRIDER_TRANSPORT',
        value: 'smtp://me:********@relay.example:587',
        source: 'file',
      }),
      expect.objectContaining({ name: 'POSTRIDER_MAX_AGE', value: '2h', source: '.env' }),
    ]),
  );
  rmSync(getPath('password'));
  writeFileSync(getPath('secret'), 'not a secret');
  writeFileSync(getPath('.env'), 'POSTRIDER_UNKNOWN=1\n');
  writeFileSync(getPath('transport'), 'smtp://me:second-word@other.example:25');
  expect(await readConfig()).toEqual(initialConfig);
});
