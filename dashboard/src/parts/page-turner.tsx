/** The foot of a list that the service returns page by page: a note, the way back to the first page, and the next page. */
import { Button, Group } from '@mantine/core';
import type { ReactNode } from 'react';

interface PageTurnerProps {
  /** The order of the list, such as `Newest first`, or the state of a search. */
  readonly note: ReactNode;
  /** The button for the first page; null on the first page. */
  readonly first: { readonly label: string; readonly onTurn: () => void } | null;
  /** The button for the next page; null on the last page. */
  readonly next: { readonly label: string; readonly onTurn: () => void } | null;
  /** True while the next page is loaded. */
  readonly isLoading?: boolean;
}

export function PageTurner({ note, first, next, isLoading = false }: PageTurnerProps) {
  return (
    <div className="list-foot">
      <span role="status">{note}</span>
      <Group gap="xs">
        {first === null ? null : (
          <Button variant="default" size="xs" onClick={first.onTurn}>
            {first.label}
          </Button>
        )}
        {next === null ? null : (
          <Button variant="default" size="xs" loading={isLoading} onClick={next.onTurn}>
            {next.label}
          </Button>
        )}
      </Group>
    </div>
  );
}
