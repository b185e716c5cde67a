import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { describe, expect, test } from 'vitest';
import { findFieldValue, listLeafParts, readEntity } from '../../../../src/feedback/read/entity.ts';

const FOLDER = join(import.meta.dirname, '../../../corpus/bounces/shapes');

describe('compared with postal-mime', () => {
  /** Mailbox files, and malformed cases that postal-mime reads differently. */
  const BROKEN_FILE_PATTERN = /boundary-lies|charset-is|mailbox-file|nested-200|empty|final-boundary/;
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.eml') && !BROKEN_FILE_PATTERN.test(name));

  test.each(names)('%s has the same texts and attachments', async (name) => {
    const raw = readFileSync(join(FOLDER, name));
    const expected = await PostalMime.parse(raw, { attachmentEncoding: 'arraybuffer', forceRfc822Attachments: true });
    const entity = readEntity(raw);
    const leaves = listLeafParts(entity);
    const plainTexts = leaves
      .filter(({ type }) => type === 'text/plain')
      .map((leaf) => removeWhiteSpace(leaf.decodeText()));
    // postal-mime joins all text parts. If there is no text part, it derives a text from the HTML.
    if (plainTexts.length > 0)
      expect(removeWhiteSpace(plainTexts.join('\n'))).toBe(removeWhiteSpace(expected.text ?? ''));
    const attachedMessages = leaves.filter(({ type }) => type.startsWith('message/'));
    const expectedMessages = expected.attachments.filter(({ mimeType }) => mimeType.startsWith('message/'));
    expect(attachedMessages.map(({ type }) => type)).toEqual(expectedMessages.map(({ mimeType }) => mimeType));
    for (const [i, leaf] of attachedMessages.entries()) {
      const content = expectedMessages[i]?.content;
      const bytes = content instanceof ArrayBuffer ? Buffer.from(content) : Buffer.from(String(content));
      expect(removeWhiteSpace(leaf.decodeOctets())).toBe(removeWhiteSpace(bytes.toString('latin1')));
    }
    expect(findFieldValue(entity.fields, 'from') ?? '').toBe(
      expected.headers.find(({ key }) => key === 'from')?.value ?? '',
    );
  });

  function removeWhiteSpace(text: string): string {
    return text.split(/\s+/).join(' ').trim();
  }
});
