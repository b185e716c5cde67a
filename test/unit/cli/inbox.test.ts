import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createCapturedSource } from '../../rig/captured-message.ts';
import { createMessageIdAt } from '../../rig/messages.ts';
import { createCommandRig } from './command-rig.ts';

const ID = createMessageIdAt(Date.UTC(2030, 0, 1));

describe('postrider inbox', () => {
  test('lists and shows captured messages with the findings of their checks, without control characters', async () => {
    const rig = await createCommandRig();
    expect(await rig.run('inbox', 'list')).toMatchObject({ code: 0, stdout: 'The inbox is empty.\n' });
    const folder = join(rig.folder, 'inbox/new');
    mkdirSync(folder, { recursive: true });
    const html = '<html lang="en"><title>x</title><p>Hi</p><a href="http://example.com/\u001b[31m">Pay</a>';
    writeFileSync(join(folder, `${ID}.eml`), createCapturedSource(html));
    const listResult = await rig.run('inbox', 'list', '--search', 'ADA');
    expect(listResult.stdout).toContain(ID);
    const { stdout } = await rig.run('inbox', 'show', ID);
    expect(stdout).toContain('link-http: Unencrypted link.');
    expect(stdout).toContain('html line 1: <a href="http://example.com/');
    expect(stdout).toContain('ada@example.com');
    expect(stdout).not.toContain('\u001b[31m');
    expect(await rig.runJson('inbox', 'show', ID)).toMatchObject({ id: ID, checks: [{ code: 'link-http', count: 1 }] });
    expect(await rig.run('inbox', 'show', createMessageIdAt(1))).toMatchObject({ code: 1 });
  });
});
