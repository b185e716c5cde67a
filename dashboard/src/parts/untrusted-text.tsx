/** Text from another system, shown literally. Each control character is replaced with U+FFFD. */
import { toPrintableLines } from '../../../src/printing/escape.ts';

/** Shows text of several lines. Long lines break, so that the block does not scroll. */
export function UntrustedBlock({ text }: { readonly text: string }) {
  const printableText = toPrintableLines(text.replaceAll('\r\n', '\n')).replaceAll('\u001b', '\uFFFD');
  return <pre className="source untrusted">{printableText}</pre>;
}
