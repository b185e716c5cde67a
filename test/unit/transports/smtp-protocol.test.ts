import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseReplyLine, ReplyParser, type ServerReply } from '../../../src/transports/smtp/protocol.ts';

function parseChunks(chunks: readonly Buffer[]): { replies: ServerReply[]; fault: string | null } {
  const replies: ServerReply[] = [];
  const parser = new ReplyParser((reply) => replies.push(reply));
  for (const chunk of chunks) {
    const fault = parser.push(chunk);
    if (fault !== null) return { replies, fault };
  }
  return { replies, fault: null };
}

describe('the reply parser', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 30 }).map((part) => part.replaceAll(/[\r\n]/g, ''));
  const reply = fc.tuple(fc.integer({ min: 200, max: 599 }), fc.array(text, { minLength: 1, maxLength: 4 }));

  test('returns the same replies however the input is split into chunks', () => {
    fc.assert(
      fc.property(
        fc.array(reply, { maxLength: 5 }),
        fc.array(fc.nat(40)),
        fc.boolean(),
        (generated, chunkLengths, bareLf) => {
          const lines = generated.map(([code, parts]) =>
            parts.map((part, index) => `${code}${index === parts.length - 1 ? ' ' : '-'}${part}`),
          );
          const bytes = Buffer.from(
            lines.flatMap((replyLines) => replyLines.map((line) => line + (bareLf ? '\n' : '\r\n'))).join(''),
          );
          const chunks: Buffer[] = [];
          let start = 0;
          for (const chunkLength of chunkLengths) {
            chunks.push(bytes.subarray(start, start + chunkLength));
            start += chunkLength;
          }
          chunks.push(bytes.subarray(start));
          const expected = lines.map((replyLines, index) => ({
            kind: 'reply',
            code: generated[index]?.[0],
            lines: replyLines,
          }));
          expect(parseChunks(chunks)).toEqual({ replies: expected, fault: null });
        },
      ),
    );
  });

  test('cuts a line at 2 KiB and refuses a reply over 16 KiB, however the input is split into chunks', () => {
    const longLine = `250 ${'x'.repeat(3_000)}`;
    for (const chunks of [[`${longLine}\r\n`], [...longLine, '\r\n']])
      expect(parseChunks(chunks.map((chunk) => Buffer.from(chunk))).replies).toEqual([
        { kind: 'reply', code: 250, lines: [longLine.slice(0, 2_048)] },
      ]);
    expect(parseChunks(Array.from({ length: 70_000 }, () => Buffer.from('2'))).fault).toContain('reply');
    const line = Buffer.from(`250-${'x'.repeat(1_000)}\r\n`);
    for (const text of [line.toString().repeat(20), '\n'.repeat(100_000)])
      expect(parseChunks([Buffer.from(text)]).fault).toContain('reply');
  });

  test('never throws, for any bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (chunks) => {
        parseChunks(chunks.map((chunk) => Buffer.from(chunk)));
      }),
    );
  });

  test('separates the enhanced code', () => {
    const cases: readonly (readonly [string, string | null, string])[] = [
      ['550 5.1.1 no', '5.1.1', 'no'],
      ['550 5.1.1', '5.1.1', ''],
      ['550 5.1.1: no', '5.1.1', 'no'],
      ['550 #5.1.0 Address rejected.', '5.1.0', 'Address rejected.'],
      ['550 5.1.1000 no', null, '5.1.1000 no'],
      ['550 5.1 no', null, '5.1 no'],
      ['550 3.1.1 no', null, '3.1.1 no'],
      ['550 5.1.1.1 no', null, '5.1.1.1 no'],
      ['550 no', null, 'no'],
      ['550', null, ''],
    ];
    for (const [line, enhanced, expected] of cases) {
      expect(parseReplyLine('rcpt', line)).toMatchObject({ code: 550, enhanced, text: expected });
    }
  });
});
