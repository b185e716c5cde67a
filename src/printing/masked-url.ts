/** Masks what may be secret in the URL of a webhook or of a notification. */
import { MASK } from './escape.ts';

/** The maximum length of a URL in an error message. */
const MAX_SHOWN_LENGTH = 200;

/** Path and query may contain a secret of the receiver. */
export function maskTargetPath({ href, origin, pathname, search }: URL): string {
  return pathname === '/' && search === '' ? href : `${origin}/${MASK}`;
}

/** For an error message: without credentials and query. A text that is not a URL is masked up to its last `@`. */
export function maskTargetUrl(text: string): string {
  const queryStart = text.indexOf('?');
  const urlWithoutQuery = queryStart === -1 ? text : text.slice(0, queryStart);
  const maskedUrl = maskCredentials(urlWithoutQuery) + (queryStart === -1 ? '' : `?${MASK}`);
  return maskedUrl.length <= MAX_SHOWN_LENGTH ? maskedUrl : `${maskedUrl.slice(0, MAX_SHOWN_LENGTH)}…`;
}

function maskCredentials(text: string): string {
  const url = URL.parse(text);
  const atIndex = text.lastIndexOf('@');
  const isAtSignInPath = url !== null && url.hostname !== '' && url.username === '' && url.password === '';
  if (atIndex === -1 || isAtSignInPath) return text;
  const slashesIndex = text.indexOf('//');
  const credentialsStart = slashesIndex === -1 || slashesIndex > atIndex ? 0 : slashesIndex + 2;
  return text.slice(0, credentialsStart) + MASK + text.slice(atIndex);
}
