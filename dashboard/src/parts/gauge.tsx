/** The usage of a limit as text and as a bar. */
import { Progress } from '@mantine/core';
import type { ReactNode } from 'react';

interface GaugeProps {
  readonly label: string;
  /** The usage in words. */
  readonly text: string;
  /** The usage as a fraction of the limit; null if there is no limit. */
  readonly usage: number | null;
  readonly children?: ReactNode;
}

export function Gauge({ label, text, usage, children }: GaugeProps) {
  const fraction = Math.min(1, Math.max(0, usage ?? 0));
  const color = `var(--pr-${fraction >= 1 ? 'bounced' : fraction >= 0.5 ? 'deferred' : 'delivered'})`;
  return (
    <div className="gauge">
      <div className="gauge-head">
        <b>{label}</b>
        <span>{text}</span>
      </div>
      {usage === null ? null : <ProgressBar fraction={fraction} label={label} text={text} color={color} />}
      {children === undefined ? null : <div className="gauge-note">{children}</div>}
    </div>
  );
}

interface ProgressBarProps {
  /** The filled fraction of the bar, from 0 to 1. */
  readonly fraction: number;
  readonly label: string;
  readonly text: string;
  readonly color?: string;
}

/** Shows a progress bar. A screen reader reads `text` in place of a percentage. */
export function ProgressBar({ fraction, label, text, color = 'var(--pr-accent)' }: ProgressBarProps) {
  return (
    <Progress.Root size={6}>
      <Progress.Section value={fraction * 100} color={color} aria-label={label} aria-valuetext={text} />
    </Progress.Root>
  );
}
