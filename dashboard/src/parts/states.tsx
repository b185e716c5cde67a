/** What a page shows when it has nothing to show: loading, nothing there, a failure with its remedy. */
import { Alert, Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Prose } from './prose';

const ROWS = ['first', 'second', 'third', 'fourth', 'fifth'];

export function Loading() {
  return (
    <Stack gap="sm" role="status" aria-label="Loading">
      {ROWS.map((row) => (
        <Skeleton key={row} height={24} />
      ))}
    </Stack>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <Stack align="center" py="xl" gap="xs">
      <Text fw={600}>{title}</Text>
      {children === undefined ? null : (
        <Text component="div" c="dimmed" ta="center" maw="36rem">
          {children}
        </Text>
      )}
    </Stack>
  );
}

export function Failure({ error, retry }: { readonly error: unknown; readonly retry?: () => unknown }) {
  return (
    <Alert
      color="red"
      variant="outline"
      title="That did not work"
      role="alert"
      // The library's red is too light for text on white.
      styles={{ title: { color: 'var(--mantine-color-error)' } }}
    >
      <Group justify="space-between">
        <Text className="wrap">
          <Prose text={error instanceof Error ? error.message : 'An unknown fault.'} />
        </Text>
        {retry === undefined ? null : (
          <Button variant="default" onClick={() => void retry()}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}
