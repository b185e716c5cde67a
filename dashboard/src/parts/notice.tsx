/** Something that must be known of the page, with its colour readable in light and dark. */
import { Alert } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Tone } from './mark';

type NoticeTone = Exclude<Tone, 'good'>;

const COLOURS: Readonly<Record<NoticeTone, string>> = {
  bad: 'light-dark(#b42318, #ff8f85)',
  waiting: 'light-dark(#8a4b08, #f0b35e)',
  news: 'light-dark(#1c5fa8, #7fb3ee)',
  quiet: 'light-dark(#5c636a, #a6adb4)',
};

interface NoticeProps {
  readonly tone: NoticeTone;
  readonly title: string;
  readonly children: ReactNode;
}

export function Notice({ tone, title, children }: NoticeProps) {
  const colour = COLOURS[tone];
  return (
    <Alert
      variant="outline"
      title={title}
      mb="md"
      role="note"
      styles={{ root: { borderColor: colour }, title: { color: colour } }}
    >
      {children}
    </Alert>
  );
}
