import { describe, expect, test } from 'vitest';
import { checkMessage } from '../../../src/operations/inbox-checks.ts';
import { measureProcessorMs } from '../../rig/processor-time.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const wrapBody = (body: string) =>
  `<!doctype html>\n<html lang="en">\n<head><title>Receipt</title></head>\n<body>\n${body}\n</body></html>`;
const check = (body: string, members: { text?: string | null; subject?: string } = {}) =>
  checkMessage({ subject: 'Receipt', text: 'Hello', ...members, html: wrapBody(`<p>Hello</p>${body}`) });
const listCodes = (body: string) => check(body).map(({ code }) => code);

describe('the checks of a message find', () => {
  test.each([
    ['<a href="http://example.com/">pay</a>', 'link-http'],
    ['<A HREF=" HTTP://example.com/">pay</A>', 'link-http'],
    ['<a href="https://click.example.net/x">https://shop.example.com/order</a>', 'link-mismatch'],
    ['<a href="https://example.net/">WWW.example.com</a>', 'link-mismatch'],
    ['<a href="https://192.0.2.1/">example.com</a>', 'link-mismatch'],
    ['<a href="">pay</a>', 'link-empty'],
    ['<a href="#">pay</a>', 'link-empty'],
    ['<a>pay</a>', 'link-empty'],
    ['<a href="javascript:alert(1)">pay</a>', 'link-script'],
    ['<a href="java&#10;script:alert(1)">pay</a>', 'link-script'],
    ['<a href="\u0001vbscript:x">pay</a>', 'link-script'],
    ['<a href="data:text/html,x">pay</a>', 'link-script'],
    ['<a href="/orders/1">pay</a>', 'link-relative'],
    ['<a href="//example.com/">pay</a>', 'link-relative'],
    ['<area href="orders" alt="pay">', 'link-relative'],
    ['<a href="https://example.com/"> </a>', 'link-without-text'],
    ['<a href="https://example.com/"><img src="https://example.com/x.png" alt=""></a>', 'link-without-text'],
    ['<img src="https://example.com/x.png">', 'image-alt-missing'],
    ['<img src="http://example.com/x.png" alt="">', 'image-http'],
    ['<td background="http://example.com/x.png">', 'image-http'],
    ['<p style="background: url( \'http://example.com/x.png\')">', 'image-http'],
    ['<img src="/x.png" alt="">', 'image-relative'],
    ['<img src="data:image/png;base64,AA" alt="">', 'image-data'],
    ['<script>run()</script>', 'active-element'],
    ['<form action="https://example.com/"></form>', 'active-element'],
    ['<link rel="Stylesheet" href="https://example.com/x.css">', 'stylesheet-external'],
    ['Hello {{ name }}', 'placeholder'],
    ['Hello *|FNAME|*', 'placeholder'],
    ['Hello [object Object]', 'placeholder'],
    ['<a href="{{url}}">pay</a>', 'placeholder'],
    ['<img src="{{logo}}" alt="Logo">', 'placeholder'],
  ])('in %s: %s', (body, code) => {
    expect(listCodes(body)).toEqual([code]);
  });

  test.each([
    '<a href="https://example.com/">Pay now</a>',
    '<a href="https://click.example.com/x">www.example.com</a>',
    '<a href="https://example.net/">node.js</a>',
    '<a href="mailto:ada@example.com">ada@example.com</a>',
    '<a href="tel:+4930123">+49 30 123</a>',
    '<a name="top"></a><a href="#top">Up</a>',
    '<a href="https://example.com/"><img src="https://example.com/x.png" alt="Shop"></a>',
    '<a href="https://example.com/" aria-label="Shop"></a>',
    '<img src="cid:logo" alt>',
    '<img src="https://example.com/x.gif" aria-hidden="true">',
    '<!-- <a href="http://example.com/">pay</a> -->',
    '<style>a { background: url(http://example.com/) } {{x}}</style>',
    '<script type="application/ld+json">{"@context":"https://schema.org"}</script>',
    'A price of $5 {and} {{}} more',
    '<img src="https://example.com/x.png',
  ])('nothing in %s', (body) => {
    expect(listCodes(body)).toEqual([]);
  });

  test('nothing in a plain-text message except placeholders, with their line numbers', () => {
    expect(checkMessage({ subject: 'Hi', text: 'one\ntwo http://example.com/', html: null })).toEqual([]);
    expect(checkMessage({ subject: `Hi \${name}`, text: 'one\ntwo {{ x }}', html: null })).toEqual([
      {
        code: 'placeholder',
        count: 2,
        places: [
          { part: 'subject', line: null, excerpt: `\${name}` },
          { part: 'text', line: 2, excerpt: '{{ x }}' },
        ],
      },
    ]);
  });

  test('HTML without a language, a title or text', () => {
    const codes = (html: string) => checkMessage({ subject: 'Hi', text: 'Hi', html }).map(({ code }) => code);
    expect(codes('<html><p>Hi')).toEqual(['lang-missing', 'title-missing']);
    expect(codes('<html lang=" "><title> </title><p>Hi')).toEqual(['lang-missing', 'title-missing']);
    expect(codes(wrapBody('<img src="https://example.com/x.png" alt="Sale">'))).toEqual(['html-without-text']);
  });

  test('a plain text that is missing or has less than half as many words as the HTML', () => {
    const words = 'word '.repeat(100);
    const codes = (text: string | null) => check(words, { text }).map(({ code }) => code);
    expect(codes(null)).toEqual(['text-missing']);
    expect(codes(' \n')).toEqual(['text-missing']);
    expect(codes('word '.repeat(40))).toEqual(['text-short']);
    expect(codes('word '.repeat(60))).toEqual([]);
  });

  test('HTML that Gmail clips because of its length in bytes of UTF-8', () => {
    const codes = (length: number) => check(`<i class="${'é'.repeat(length)}">`).map(({ code }) => code);
    expect(codes(50_900)).toEqual([]);
    expect(codes(51_000)).toEqual(['html-clipped']);
  });

  test('at most ten places per code, each with its line number and a short one-line excerpt, and errors before warnings', () => {
    const links = Array.from({ length: 12 }, (_, index) => `<a\nhref="http://example.com/${index}">pay</a>`).join('\n');
    const [error, warning] = check(`${links}<a href="">${'x'.repeat(500)}</a>`, { text: 'word '.repeat(20) });
    expect(error).toMatchObject({ code: 'link-empty', count: 1, places: [{ part: 'html', line: 28 }] });
    expect(warning).toMatchObject({ code: 'link-http', count: 12 });
    expect(warning?.places).toHaveLength(10);
    expect(warning?.places.slice(0, 2)).toEqual([
      { part: 'html', line: 5, excerpt: '<a href="http://example.com/0">' },
      { part: 'html', line: 7, excerpt: '<a href="http://example.com/1">' },
    ]);
  });
});

describe('for any HTML', () => {
  test.each([
    ...['<div>', '<a href=http:', '<a href="http://example.com/">example.net', '<img>', '<img src=http:x>', '</a>'],
    ...['<a', '{{', '{{x}}', '*|', '[object Object]', '<', '<!--', '<title>', '<script>', '<p style="url('],
    ...['<p style="url(    ', '&', '<td background=http:x>', '\n<img>', '<a href="', "<a title='"],
  ])('%j repeated to 256 KiB or 1 MiB is checked in less than five seconds of processor time', (piece) => {
    const html = `<html>${piece.repeat(selectCaseCount(262_144, 1_048_576) / piece.length)}`;
    let findings: unknown = null;
    const processorMs = measureProcessorMs(() => {
      findings = checkMessage({ subject: piece.repeat(100), text: html, html });
    });
    expect(processorMs).toBeLessThan(5_000);
    expect(JSON.stringify(findings).length).toBeLessThan(50_000);
  });
});
