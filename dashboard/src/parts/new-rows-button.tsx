/**
 * Announces new and outdated rows of a live list, and shows the current rows on request. The button overlays the list,
 * so that no row moves when the button appears.
 */
import { Button } from '@mantine/core';
import { formatCount } from './number';

interface NewRowsButtonProps {
  readonly count: number;
  /** True if there are more new rows than `count`. */
  readonly hasMore?: boolean;
  /** The number of shown rows that no longer match the filter. The button announces them only if no row is new. */
  readonly outdatedCount?: number;
  /** The singular noun for a row, such as `message`. */
  readonly noun: string;
  readonly nounPlural?: string;
  readonly onShow: () => void;
}

export function NewRowsButton({
  count,
  hasMore = false,
  outdatedCount = 0,
  noun,
  nounPlural = `${noun}s`,
  onShow,
}: NewRowsButtonProps) {
  return (
    <div className="new-rows" role="status">
      {count + outdatedCount === 0 ? null : (
        <Button size="compact-sm" radius="xl" onClick={onShow}>
          {count === 0
            ? `Remove ${formatCount(outdatedCount, `changed ${noun}`, `changed ${nounPlural}`)}`
            : `Show ${hasMore ? 'more than ' : ''}${formatCount(count, `new ${noun}`, `new ${nounPlural}`)}`}
        </Button>
      )}
    </div>
  );
}
