/** Why an address is on a list, in one word. */
import type { SuppressionEntry } from '../../../src/operations/suppressions/schemas.ts';
import { Mark, type Tone } from '../parts/mark';

const TONES: Readonly<Record<SuppressionEntry['reason'], Tone>> = { bounce: 'bad', complaint: 'bad', manual: 'quiet' };
/** What each means, as a sentence about the address. */
export const REASONS: Readonly<Record<SuppressionEntry['reason'], string>> = {
  bounce: 'A mail server has refused mail to it for good.',
  complaint: 'Its owner has reported mail as spam.',
  manual: 'An operator or an import has put it there.',
};

export function ReasonMark({ reason }: { readonly reason: SuppressionEntry['reason'] }) {
  return <Mark tone={TONES[reason]}>{reason}</Mark>;
}
