/**
 * The conversation of one attempt as `message show` prints it: `C: ` our lines, `S: ` the server's, `* ` remarks.
 * Bounded (100 lines of 500 characters); whoever writes to it leaves credentials and content out.
 */
import { clean } from './reply-parser.ts';

const MAX_LINES = 100;
const MAX_LENGTH = 500;

export class Transcript {
  readonly lines: string[] = [];

  client(line: string): void {
    this.#add('C: ', line);
  }

  server(line: string): void {
    this.#add('S: ', line);
  }

  remark(line: string): void {
    this.#add('* ', line);
  }

  #add(prefix: string, line: string): void {
    if (this.lines.length < MAX_LINES) this.lines.push(prefix + clean(line, MAX_LENGTH));
    else if (this.lines.length === MAX_LINES) this.lines.push('* (cut here)');
  }
}
