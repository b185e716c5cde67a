/** The states that a page shows in place of its content: loading, empty, error. */
import { Alert, Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { TextWithCode } from './text-with-code';

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

export function EmptyState({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
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

export function ErrorAlert({ error, retry }: { readonly error: unknown; readonly retry?: () => unknown }) {
  return (
    <Alert
      color="red"
      variant="outline"
      title="Error"
      role="alert"
      // The red of Mantine has too little contrast on white.
      styles={{ title: { color: 'var(--mantine-color-error)' } }}
    >
      <Group justify="space-between">
        <Text className="wrap">
          <TextWithCode text={error instanceof Error ? error.message : 'Unknown error.'} />
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
