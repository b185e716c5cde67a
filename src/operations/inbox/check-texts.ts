/**
 * Describes the checks of captured messages: the level, the title, the reason and the remedy of each code. The sources
 * of the reasons are in docs/decisions/inbox.md.
 */

/**
 * `error`: a recipient sees a broken message. `warning`: the message has a disadvantage for some recipients, mail
 * clients or filters.
 */
export const CHECK_LEVELS = ['error', 'warning'] as const;
export type CheckLevel = (typeof CHECK_LEVELS)[number];

interface CheckText {
  readonly level: CheckLevel;
  readonly title: string;
  readonly reason: string;
  readonly remedy: string;
}

/** The maximum size of HTML that Gmail shows completely, in bytes of UTF-8. */
export const MAX_UNCLIPPED_BYTES = 102_000;

const CHECK_TEXT_BY_CODE = {
  placeholder: {
    level: 'error',
    title: 'Unfilled placeholder',
    reason: 'The message contains a placeholder of a template. The recipient sees the placeholder instead of a value.',
    remedy: 'Pass a value for every placeholder of the template.',
  },
  'link-script': {
    level: 'error',
    title: 'Link that runs code or contains data',
    reason: 'Mail clients remove links with the schemes javascript:, vbscript: and data:, so a click has no effect.',
    remedy: 'Link to a page with https:.',
  },
  'link-empty': {
    level: 'error',
    title: 'Link without target',
    reason: 'A click has no effect, because `href` is missing, empty or `#`.',
    remedy: 'Give the link a target, or remove the element.',
  },
  'link-relative': {
    level: 'error',
    title: 'Relative link',
    reason: 'A message has no base URL, so a mail client cannot resolve a relative URL.',
    remedy: 'Give the absolute URL, with https: and the host.',
  },
  'image-relative': {
    level: 'error',
    title: 'Image without complete address',
    reason: 'A message has no base URL, so a mail client cannot load an image with a relative URL.',
    remedy: 'Give the absolute URL of the image, with https: and the host.',
  },
  'html-clipped': {
    level: 'error',
    title: 'HTML is too large for Gmail',
    reason: 'Gmail clips HTML of more than about 102 KB. The recipient does not see the end of the message.',
    remedy: 'Shorten the HTML: remove comments, unused styles and white space, and link to long content.',
  },
  'text-missing': {
    level: 'warning',
    title: 'No plain text',
    reason:
      'A client that shows plain text has nothing to show, and some spam filters increase the spam score of such a message (SpamAssassin: MIME_HTML_ONLY).',
    remedy: 'Add a plain-text part with the same content.',
  },
  'text-short': {
    level: 'warning',
    title: 'Plain text is much shorter than the HTML',
    reason:
      'Recipients who read the plain text do not see all content, and some spam filters compare both parts (SpamAssassin: MPART_ALT_DIFF).',
    remedy: 'Give both parts the same content.',
  },
  'html-without-text': {
    level: 'warning',
    title: 'HTML without text',
    reason:
      'Many clients load images only after a click, so the recipient first sees an empty message. Some spam filters increase the spam score of such a message (SpamAssassin: HTML_IMAGE_ONLY).',
    remedy: 'Write the content as text, and use images in addition.',
  },
  'link-mismatch': {
    level: 'warning',
    title: 'Link text shows another domain',
    reason:
      'The text shows one domain, and the link opens another, as in phishing messages. Some mail clients warn about such links.',
    remedy: 'Write a text that is not a URL, or link to the domain in the text.',
  },
  'link-http': {
    level: 'warning',
    title: 'Unencrypted link',
    reason: 'The connection is not encrypted, so others on the network can read and change the page.',
    remedy: 'Link with https:.',
  },
  'link-without-text': {
    level: 'warning',
    title: 'Link without text',
    reason: 'A screen reader has no name for the link (WCAG 2.4.4).',
    remedy: 'Add text, or an image with alternative text.',
  },
  'image-alt-missing': {
    level: 'warning',
    title: 'Image without alternative text',
    reason: 'Screen readers, and clients that block images, show nothing useful (WCAG 1.1.1).',
    remedy: 'Add `alt` with the meaning of the image, or `alt=""` for decoration.',
  },
  'image-http': {
    level: 'warning',
    title: 'Image over an unencrypted connection',
    reason: 'The connection is not encrypted. In webmail, browsers block such images or load them with https:.',
    remedy: 'Load the image with https:.',
  },
  'image-data': {
    level: 'warning',
    title: 'Image inside the HTML',
    reason: 'Gmail and Outlook do not show images with a data: URL, and the data counts toward the size of the HTML.',
    remedy: 'Host the image and load it with https:.',
  },
  'active-element': {
    level: 'warning',
    title: 'Element that mail clients remove',
    reason: 'Mail clients remove scripts, frames, plug-ins and media, and many remove or disable forms.',
    remedy: 'Link to a page that contains the element.',
  },
  'stylesheet-external': {
    level: 'warning',
    title: 'External style sheet',
    reason: 'Most mail clients do not load style sheets.',
    remedy: 'Write the styles into the elements, or into a style element in the head.',
  },
  'lang-missing': {
    level: 'warning',
    title: 'No language',
    reason: 'A screen reader cannot determine the language of the message (WCAG 3.1.1).',
    remedy: 'Add `lang` to the html element, such as `<html lang="en">`.',
  },
  'title-missing': {
    level: 'warning',
    title: 'No title',
    reason: 'Screen readers announce the title, and browser windows show it (WCAG 2.4.2).',
    remedy: 'Add a title element to the head. The subject is a good title.',
  },
} as const satisfies Readonly<Record<string, CheckText>>;

export type CheckCode = keyof typeof CHECK_TEXT_BY_CODE;

/** The codes in the order in which findings are listed: errors first. */
export const CHECK_CODES = Object.keys(CHECK_TEXT_BY_CODE) as readonly CheckCode[];

/** Returns the texts of a check. */
export function getCheckText(code: CheckCode): CheckText {
  return CHECK_TEXT_BY_CODE[code];
}
