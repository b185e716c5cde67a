/** Text from another system, shown literally. Each control character is replaced with U+FFFD. */
import { Text } from '@mantine/core';
import { toPrintableLines } from '../../../src/printing/escape.ts';
import { formatNumber } from './number';

/** The maximum number of characters shown. Browsers render longer texts slowly. */
const MAX_SHOWN_CHARS = 200_000;

/** Shows text of several lines. Long lines are wrapped, so that the block does not scroll. */
export function UntrustedBlock({ text }: { readonly text: string }) {
  return (
    <>
      <pre className="source untrusted">{toPrintableText(text.slice(0, MAX_SHOWN_CHARS))}</pre>
      {text.length > MAX_SHOWN_CHARS ? (
        <Text mt="xs" c="dimmed">
          The first {formatNumber(MAX_SHOWN_CHARS)} of {formatNumber(text.length)} characters.
        </Text>
      ) : null}
    </>
  );
}

export function toPrintableText(text: string): string {
  return toPrintableLines(text.replaceAll('\r\n', '\n')).replaceAll('\u001b', '\uFFFD');
}
