/** A sentence in which text between backticks is shown as code. */
import { Code } from '@mantine/core';

export function TextWithCode({ text }: { readonly text: string }) {
  return text.split('`').map((part, index) => {
    const key = `${index} ${part}`;
    return index % 2 === 1 ? <Code key={key}>{part}</Code> : <span key={key}>{part}</span>;
  });
}
