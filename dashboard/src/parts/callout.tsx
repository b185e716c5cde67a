/** A highlighted note on a page: an icon, a title, the explanation, and an optional action. */
import { IconAlertTriangle, IconInfoCircle } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import type { Tone } from './status-badge';

type CalloutTone = Exclude<Tone, 'success' | 'complained'>;

interface CalloutProps {
  readonly tone: CalloutTone;
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}

export function Callout({ tone, title, children, action }: CalloutProps) {
  const Icon = tone === 'error' || tone === 'warning' ? IconAlertTriangle : IconInfoCircle;
  return (
    <div className={`attention-row callout tone-${tone}`} role="note" aria-label={title}>
      <Icon size={18} stroke={1.8} aria-hidden />
      <div className="attention-text sentence">
        <b>{title}</b>
        <div>{children}</div>
      </div>
      {action}
    </div>
  );
}
