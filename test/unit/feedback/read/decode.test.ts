import { expect, test } from 'vitest';
import { decodeCharset, decodeHeaderValue, decodeTransfer } from '../../../../src/feedback/read/decode.ts';

const decodeText = (body: string, encoding: string) => Buffer.from(decodeTransfer(body, encoding)).toString('latin1');
const toBytes = (digits: string) => Buffer.from(digits, 'hex');

test('the name of a transfer encoding may be in any letter case and contain spaces and a comment, and an unknown encoding is treated as no encoding', () => {
  expect(decodeText('aGFs\r\nbG8=', 'BASE64 (as always)')).toBe('hallo');
  expect(decodeText('a=3Db=\nc=  \r\nd=zz=', ' Quoted-Printable')).toBe('a=bcd=zz');
  expect(decodeText('a=3D', '7bit')).toBe('a=3D');
  expect(decodeText('a=3D', 'x-nobody-knows')).toBe('a=3D');
});

test('text is decoded by its detected charset if the declared charset is wrong', () => {
  expect(decodeCharset(Buffer.from('Empfänger'), 'us-ascii')).toBe('Empfänger');
  expect(decodeCharset(Buffer.from('Empfänger', 'latin1'), 'utf-8')).toBe('Empfänger');
  expect(decodeCharset(Buffer.from('Empfänger', 'latin1'), 'x-no-such-charset')).toBe('Empfänger');
  expect(decodeCharset(Buffer.from('不存在'), 'gb2312')).toBe('不存在');
  expect(decodeCharset(toBytes('b2bbb4e6d4da'), 'gb2312')).toBe('不存在');
  expect(decodeCharset(toBytes('cec520cec4'), 'koi8-r')).toBe('не нд');
  expect(decodeCharset(toBytes('1b2442242224241b2842'), '')).toBe('あい');
  expect(decodeCharset(Buffer.from('größe', 'utf16le'), 'utf-16le')).toBe('größe');
});

test('encoded words are decoded in any charset, and a character split between two words is joined', () => {
  expect(decodeHeaderValue('=?iso-8859-1?q?f=FCr_Anna?=')).toBe('für Anna');
  expect(decodeHeaderValue('=?UTF-8*de?B?w7w=?= =?utf-8?b?w7w=?=')).toBe('üü');
  expect(decodeHeaderValue('=?utf-8?B?w4M=?= a =?utf-8?Q?=C3?= =?utf-8?Q?=BC?=')).toBe('Ã a ü');
  expect(decodeHeaderValue('=?ISO-2022-JP?B?GyRCJCIkJBsoQg==?=')).toBe('あい');
  expect(decodeHeaderValue(Buffer.from('für').toString('latin1'))).toBe('für');
  expect(decodeHeaderValue('=?broken =?utf-8?X?a?= ?=')).toBe('=?broken =?utf-8?X?a?= ?=');
});
