/** The remedy of a problem, shown below the description of the problem. */
import { IconArrowRight } from '@tabler/icons-react';
import { TextWithCode } from './text-with-code';

export function Remedy({ text }: { readonly text: string }) {
  return (
    <div className="remedy">
      <IconArrowRight size={14} stroke={1.8} aria-hidden />
      <span>
        <TextWithCode text={text} />
      </span>
    </div>
  );
}
