/** How much of a limit is used: the figures in words, and a bar of the same. */
import { Group, Progress, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';

interface GaugeProps {
  readonly label: string;
  /** The same as the bar, in words. */
  readonly text: string;
  /** From 0 to 1 and above; null where there is no limit. */
  readonly reached: number | null;
  readonly children?: ReactNode;
}

export function Gauge({ label, text, reached, children }: GaugeProps) {
  const part = Math.min(1, Math.max(0, reached ?? 0));
  const colour = part >= 1 ? '#c4392c' : part >= 0.5 ? '#b8690f' : '#2b8a4b';
  return (
    <Stack gap={6}>
      <Group justify="space-between" gap="xs">
        <Text fw={600}>{label}</Text>
        <Text>{text}</Text>
      </Group>
      {reached === null ? null : <Bar part={part} label={label} text={text} colour={colour} />}
      {children === undefined ? null : (
        <Text size="sm" c="dimmed" component="div">
          {children}
        </Text>
      )}
    </Stack>
  );
}

interface BarProps {
  /** From 0 to 1. */
  readonly part: number;
  readonly label: string;
  readonly text: string;
  readonly colour?: string;
}

/** The bar alone; `text` is what a screen reader says in place of a percentage. */
export function Bar({ part, label, text, colour = '#2f80d8' }: BarProps) {
  return (
    <Progress.Root size="md">
      <Progress.Section value={part * 100} color={colour} aria-label={label} aria-valuetext={text} />
    </Progress.Root>
  );
}
