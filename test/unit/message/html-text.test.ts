import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { convert } from 'html-to-text';
import { describe, expect, it } from 'vitest';
import { convertHtmlToText } from '../../../src/message/html-text.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const corpusUrl = new URL('../../corpus/messages/html/', import.meta.url);

function splitWords(text: string): readonly string[] {
  return text.split(/[\s[\]*>-]+/).filter((word) => word !== '' && !/^\d\.$/.test(word));
}

describe('the text part of an HTML message', () => {
  it.each(readdirSync(corpusUrl))('has the same words as the output of html-to-text, in the same order: %s', (name) => {
    const html = readFileSync(new URL(name, corpusUrl), 'utf8');
    const headings = ['h1', 'h2'].map((selector) => ({ selector, options: { uppercase: false } }));
    const cells = ['td', 'th'].map((selector) => ({ selector, format: 'inlineSurround', options: { suffix: ' ' } }));
    const expected = convert(html, {
      wordwrap: false,
      selectors: [...headings, ...cells, { selector: 'a', options: { hideLinkHrefIfSameAsText: true } }],
    });
    expect(splitWords(convertHtmlToText(html))).toEqual(splitWords(expected));
  });

  it.each([
    ['an empty line separates paragraphs', '<p>one</p><p>two</p>', 'one\n\ntwo\n'],
    ['blocks end lines', '<div>one</div><div>two</div>three', 'one\ntwo\nthree\n'],
    ['white space collapses', '<p>  one \r\n\t two&nbsp; three </p>', 'one two three\n'],
    ['inline elements do not separate words', 'w<b>or</b>d <i>x</i>', 'word x\n'],
    ['line breaks are preserved', 'a<br>b<br/><br />c', 'a\nb\n\nc\n'],
    ['a space separates cells', '<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>', 'a b\nc\n'],
    [
      'lists have bullets and numbers',
      '<ul><li>a</li><li>b<ol><li>c<li>d</ol></li></ul>e',
      '* a\n* b\n  1. c\n  2. d\n\ne\n',
    ],
    ['a paragraph in a list item is on the line of the bullet', '<ul><li><p>a</p></li></ul>', '* a\n'],
    [
      'the target of a link follows the link text in brackets',
      '<a href="https://x.example/?a=1&amp;b=2">go</a>.',
      'go [https://x.example/?a=1&b=2].\n',
    ],
    [
      'a target that equals the link text is not repeated',
      '<a href=https://x.example>https://x.example</a> <a href="mailto:a@b.co">a@b.co</a>',
      'https://x.example a@b.co\n',
    ],
    [
      'the target of a link without text is written',
      '<a href="https://x.example"><img src=x></a>',
      '[https://x.example]\n',
    ],
    [
      'no target is written for a link to a fragment, a link to a script and an anchor',
      '<a href="#top">up</a> <a href="JavaScript:alert(1)">x</a> <a name=n>n</a>',
      'up x n\n',
    ],
    ['a link that is never closed ends with the page', '<a href="https://x.example">go', 'go [https://x.example]\n'],
    ['a picture is replaced by its alternative text', '<img alt="A cat &amp; a dog" src="cat.png">', 'A cat & a dog\n'],
    ['preformatted text keeps its spaces', '<pre>a\n  b\n</pre>', 'a\n  b\n'],
    [
      'scripts, styles and titles are omitted',
      '<title>t</title><style>p > a {}</style><script>"<b>"</SCRIPT >x',
      'x\n',
    ],
    ['comments are omitted', 'a<!-- <b> > -->b<!-->c<!doctype html>d<?php e ?>f</>g', 'abcdfg\n'],
    [
      'angle brackets in attributes do not end the tag',
      '<p title="a > b" class=x>c</p><p title=\'">\'>d</p>',
      'c\n\nd\n',
    ],
    [
      'character references are decoded',
      '&lt;&#65;&#x42;&eacute;&hellip;&#128;&#0;&#xD800;&#x110000;',
      '<ABé…€\ufffd\ufffd\ufffd\n',
    ],
    [
      'text that is not a character reference is unchanged',
      'AT&T &unknown; &# &#x; &amp',
      'AT&T &unknown; &# &#x; &\n',
    ],
    ['text that is not a tag is unchanged', '1 < 2 <3 a<b', '1 < 2 <3 a\n'],
    ['an unclosed script extends to the end of the page', 'a<script>b', 'a\n'],
    ['a page without text has an empty text part', '<html><body> <br> </body></html>', ''],
  ])('%s', (_name, html, text) => {
    expect(convertHtmlToText(html)).toBe(text);
  });

  it('is created from any page without an exception, and its length and its number of consecutive line breaks are bounded', () => {
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
        const text = convertHtmlToText(html);
        expect(text.isWellFormed()).toBe(true);
        expect(text.length).toBeLessThanOrEqual(8 * html.length + 1);
        expect(text).not.toMatch(/^\n|\n{4}/);
      }),
      { numRuns: selectCaseCount(100, 3_000) },
    );
  });

  // With quadratic cost, a page of this size takes minutes.
  it.each([
    ...[
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
    ],
    ...['&', '&#', '<br>x', '<script>', '<script></', '<pre>\n', '<blockquote>x', '<tr><td>x', ' ', '[', "<p title='"],
  ])('is created for half a megabyte of %s', (fragment) => {
    const text = convertHtmlToText(`<html>${fragment.repeat(500_000 / fragment.length)}`);
    expect(text.length).toBeLessThanOrEqual(4_000_000);
  });
});
