/** Where captured messages lie: a Maildir whose file names are the ids of the mail requests. */
import { join } from 'node:path';

/** Length of a UUID in text. */
const UUID_LENGTH = 36;
export const MESSAGE_SUFFIX = '.eml';

export interface Maildir {
  readonly tmp: string;
  readonly new: string;
  readonly cur: string;
}

/** The three directories of the Maildir at `directory`. */
export function maildirAt(directory: string): Maildir {
  return { tmp: join(directory, 'tmp'), new: join(directory, 'new'), cur: join(directory, 'cur') };
}

/** True for a lower-case UUID: the only names that ever become part of a path. */
export function isMessageId(text: string): boolean {
  if (text.length !== UUID_LENGTH) return false;
  for (let i = 0; i < UUID_LENGTH; i += 1) {
    const unit = text.charCodeAt(i);
    const dash = i === 8 || i === 13 || i === 18 || i === 23;
    if (dash ? unit !== 45 : !((unit >= 48 && unit <= 57) || (unit >= 97 && unit <= 102))) return false;
  }
  return true;
}
