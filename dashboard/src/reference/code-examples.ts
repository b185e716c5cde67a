/**
 * Programs that send a message, by language. The build reads the programs from docs/examples and from the README of the
 * client library. The tests run these programs.
 */
import readme from '../../../clients/typescript/README.md?raw';
import sendMailJava from '../../../docs/examples/SendMail.java?raw';
import sendGo from '../../../docs/examples/send.go?raw';
import sendMjs from '../../../docs/examples/send.mjs?raw';
import sendPhp from '../../../docs/examples/send.php?raw';
import sendPy from '../../../docs/examples/send.py?raw';
import sendRb from '../../../docs/examples/send.rb?raw';
import sendSh from '../../../docs/examples/send.sh?raw';

export interface CodeExample {
  readonly language: string;
  /** The name of the file; for a program that uses the client library, the name of the package. */
  readonly name: string;
  readonly code: string;
}

export const CODE_EXAMPLES: readonly CodeExample[] = [
  { language: 'curl', name: 'send.sh', code: sendSh },
  { language: 'Node', name: 'send.mjs', code: sendMjs },
  { language: 'TypeScript', name: 'postrider-client', code: readFirstProgram(readme) },
  { language: 'Python', name: 'send.py', code: sendPy },
  { language: 'Go', name: 'send.go', code: sendGo },
  { language: 'PHP', name: 'send.php', code: sendPhp },
  { language: 'Ruby', name: 'send.rb', code: sendRb },
  { language: 'Java', name: 'SendMail.java', code: sendMailJava },
];

/** Returns the first TypeScript program of a page in Markdown. */
function readFirstProgram(markdown: string): string {
  return markdown.split('```ts\n')[1]?.split('\n```')[0] ?? '';
}
