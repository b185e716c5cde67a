/** A sentence with commands or settings between backticks, which are drawn as such. */
import { Code } from '@mantine/core';

export function Prose({ text }: { readonly text: string }) {
  return text.split('`').map((part, at) => {
    const key = `${at} ${part}`;
    return at % 2 === 1 ? <Code key={key}>{part}</Code> : <span key={key}>{part}</span>;
  });
}
