/** A highlighted note on a page. Its color has a contrast of 4.5:1 in light and dark mode. */
import { Alert } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Tone } from './status-badge';

type CalloutTone = Exclude<Tone, 'success'>;

const COLORS: Readonly<Record<CalloutTone, string>> = {
  error: 'light-dark(#b42318, #ff8f85)',
  warning: 'light-dark(#8a4b08, #f0b35e)',
  info: 'light-dark(#1c5fa8, #7fb3ee)',
  neutral: 'light-dark(#5c636a, #a6adb4)',
};

interface CalloutProps {
  readonly tone: CalloutTone;
  readonly title: string;
  readonly children: ReactNode;
}

export function Callout({ tone, title, children }: CalloutProps) {
  const color = COLORS[tone];
  return (
    <Alert
      variant="outline"
      title={title}
      mb="md"
      role="note"
      styles={{ root: { borderColor: color }, title: { color } }}
    >
      {children}
    </Alert>
  );
}
