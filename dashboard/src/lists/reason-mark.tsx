/** Why an address is on a list, in one word. */
import type { Reason } from '../api/manage';
import { Mark, type Tone } from '../parts/mark';

const TONES: Readonly<Record<Reason, Tone>> = { bounce: 'bad', complaint: 'bad', manual: 'quiet' };
/** What each means, as a sentence about the address. */
export const REASONS: Readonly<Record<Reason, string>> = {
  bounce: 'A mail server has refused mail to it for good.',
  complaint: 'Its owner has reported mail as spam.',
  manual: 'An operator or an import has put it there.',
};

export function ReasonMark({ reason }: { readonly reason: Reason }) {
  return <Mark tone={TONES[reason]}>{reason}</Mark>;
}
