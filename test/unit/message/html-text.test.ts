/** The text part of an HTML message: what a reader sees, for any page in bounded time. */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { convert } from 'html-to-text';
import { describe, expect, it } from 'vitest';
import { textFromHtml } from '../../../src/message/html-text.ts';

const corpus = new URL('../../corpus/messages/html/', import.meta.url);

/** The words of a text, without the marks of bullets, rules and links. */
function wordsOf(text: string): readonly string[] {
  return text.split(/[\s[\]*>-]+/).filter((word) => word !== '' && !/^\d\.$/.test(word));
}

describe('the text part of an HTML message', () => {
  it.each(readdirSync(corpus))('has the words that html-to-text finds, in the same order: %s', (name) => {
    const html = readFileSync(new URL(name, corpus), 'utf8');
    const headings = ['h1', 'h2'].map((selector) => ({ selector, options: { uppercase: false } }));
    const cells = ['td', 'th'].map((selector) => ({ selector, format: 'inlineSurround', options: { suffix: ' ' } }));
    const expected = convert(html, {
      wordwrap: false,
      selectors: [...headings, ...cells, { selector: 'a', options: { hideLinkHrefIfSameAsText: true } }],
    });
    expect(wordsOf(textFromHtml(html))).toEqual(wordsOf(expected));
  });

  it.each([
    ['paragraphs stand apart', '<p>one</p><p>two</p>', 'one\n\ntwo\n'],
    ['blocks end lines', '<div>one</div><div>two</div>three', 'one\ntwo\nthree\n'],
    ['white space collapses', '<p>  one \r\n\t two&nbsp; three </p>', 'one two three\n'],
    ['inline elements do not part words', 'w<b>or</b>d <i>x</i>', 'word x\n'],
    ['line breaks are kept', 'a<br>b<br/><br />c', 'a\nb\n\nc\n'],
    ['cells are parted', '<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>', 'a b\nc\n'],
    [
      'lists have bullets and numbers',
      '<ul><li>a</li><li>b<ol><li>c<li>d</ol></li></ul>e',
      '* a\n* b\n  1. c\n  2. d\n\ne\n',
    ],
    ['a paragraph stands beside its bullet', '<ul><li><p>a</p></li></ul>', '* a\n'],
    ['links are written out', '<a href="https://x.example/?a=1&amp;b=2">go</a>.', 'go [https://x.example/?a=1&b=2].\n'],
    [
      'links that say where they lead are not',
      '<a href=https://x.example>https://x.example</a> <a href="mailto:a@b.co">a@b.co</a>',
      'https://x.example a@b.co\n',
    ],
    ['links without text are', '<a href="https://x.example"><img src=x></a>', '[https://x.example]\n'],
    [
      'links that lead nowhere are not',
      '<a href="#top">up</a> <a href="JavaScript:alert(1)">x</a> <a name=n>n</a>',
      'up x n\n',
    ],
    ['a link that is never closed ends with the page', '<a href="https://x.example">go', 'go [https://x.example]\n'],
    ['pictures show their text', '<img alt="A cat &amp; a dog" src="cat.png">', 'A cat & a dog\n'],
    ['preformatted text keeps its spaces', '<pre>a\n  b\n</pre>', 'a\n  b\n'],
    ['scripts, styles and titles are unseen', '<title>t</title><style>p > a {}</style><script>"<b>"</SCRIPT >x', 'x\n'],
    ['comments are unseen', 'a<!-- <b> > -->b<!-->c<!doctype html>d<?php e ?>f</>g', 'abcdfg\n'],
    ['attributes hide their angle brackets', '<p title="a > b" class=x>c</p><p title=\'">\'>d</p>', 'c\n\nd\n'],
    [
      'references are decoded',
      '&lt;&#65;&#x42;&eacute;&hellip;&#128;&#0;&#xD800;&#x110000;',
      '<ABé…€\ufffd\ufffd\ufffd\n',
    ],
    ['what is no reference stays', 'AT&T &unknown; &# &#x; &amp', 'AT&T &unknown; &# &#x; &\n'],
    ['what is no tag stays', '1 < 2 <3 a<b', '1 < 2 <3 a\n'],
    ['an unclosed tag, comment or script reaches to the end', 'a<script>b', 'a\n'],
    ['nothing is nothing', '<html><body> <br> </body></html>', ''],
  ])('%s', (_name, html, text) => {
    expect(textFromHtml(html)).toBe(text);
  });

  it('is made of any page without a throw, with no more line breaks or text than there is to read', () => {
    const fragment = fc.constantFrom(
      '<',
      '>',
      '</',
      '<!--',
      '-->',
      '"',
      "'",
      '=',
      '&',
      '&#',
      ';',
      '<a href=',
      '<pre>',
      '<li>',
      '<ul>',
      '</ul>',
      '<p>',
      '<br>',
    );
    const page = fc.array(fc.oneof(fragment, fc.string({ unit: 'binary', maxLength: 5 })), { maxLength: 40 });
    fc.assert(
      fc.property(page, (pieces) => {
        const html = pieces.join('').toWellFormed();
        const text = textFromHtml(html);
        expect(text.isWellFormed()).toBe(true);
        expect(text.length).toBeLessThanOrEqual(8 * html.length + 1);
        expect(text).not.toMatch(/^\n|\n{4}/);
      }),
      { numRuns: 3000 },
    );
  });

  it('takes time in proportion to the page, also for pages made to take more', () => {
    const fragments = [
      '<div>',
      '<',
      '<a',
      '</',
      '<!--',
      '<!',
      '<ul><li>',
      '<ul><li>x',
      '<b></i>',
      '<a href="',
      '<a href=x>y',
      '<a b=',
      '&',
      '&#',
      '<br>x',
    ];
    for (const fragment of [
      ...fragments,
      '<script>',
      '<script></',
      '<pre>\n',
      '<blockquote>x',
      '<tr><td>x',
      ' ',
      '[',
      "<p title='",
    ]) {
      const page = (length: number) => `<html>${fragment.repeat(length / fragment.length)}`;
      const measureMs = (html: string) => {
        const start = performance.now();
        textFromHtml(html);
        return performance.now() - start;
      };
      measureMs(page(64 * 1024));
      // Linear is 16 times the time, quadratic 256 times; a busy machine blurs both.
      const smallPageMs = Math.min(...Array.from({ length: 5 }, () => measureMs(page(16 * 1024))));
      // The best of several: other work of the machine may interrupt any one of them.
      let largePageMs = Number.POSITIVE_INFINITY;
      for (let n = 0; n < 30 && largePageMs >= 100 * Math.max(smallPageMs, 1); n += 1)
        largePageMs = Math.min(largePageMs, measureMs(page(256 * 1024)));
      expect(largePageMs).toBeLessThan(100 * Math.max(smallPageMs, 1));
    }
  });

  it('ends with a mark where a page is too long to be read whole', () => {
    expect(textFromHtml(`<p>${'😀'.repeat(300_000)}`)).toBe(`${'😀'.repeat(131_070)}\n[…]\n`);
  });
});
