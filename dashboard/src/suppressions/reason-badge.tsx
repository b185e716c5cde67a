/** A badge with the reason why an address is on a suppression list. */
import type { SuppressionEntry } from '../../../src/operations/suppressions.ts';
import { StatusBadge, type Tone } from '../parts/status-badge';

const REASON_TONES: Readonly<Record<SuppressionEntry['reason'], Tone>> = {
  bounce: 'error',
  complaint: 'complained',
  manual: 'neutral',
  unsubscribed: 'neutral',
  provider: 'error',
};
/** A sentence for each reason. */
export const REASON_TEXTS: Readonly<Record<SuppressionEntry['reason'], string>> = {
  bounce: 'A message to the address had a hard bounce.',
  complaint: 'The recipient reported a message as spam.',
  manual: 'An operator or an import added the address.',
  unsubscribed: 'The recipient unsubscribed through the provider.',
  provider: 'The address is on the suppression list of the provider.',
};

export function ReasonBadge({ reason }: { readonly reason: SuppressionEntry['reason'] }) {
  return <StatusBadge tone={REASON_TONES[reason]}>{reason}</StatusBadge>;
}
