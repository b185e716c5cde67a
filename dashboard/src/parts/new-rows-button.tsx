/** Announces new rows of a live list, and shows them on request. The button floats, so that it moves no row. */
import { Button } from '@mantine/core';
import { formatCount } from './number';

interface NewRowsButtonProps {
  readonly count: number;
  /** True if there are more new rows than `count`. */
  readonly hasMore?: boolean;
  /** The singular of the rows, such as `message`. */
  readonly noun: string;
  readonly nounPlural?: string;
  readonly onShow: () => void;
}

export function NewRowsButton({ count, hasMore = false, noun, nounPlural = `${noun}s`, onShow }: NewRowsButtonProps) {
  return (
    <div className="new-rows" role="status">
      {count === 0 ? null : (
        <Button size="compact-sm" radius="xl" onClick={onShow}>
          Show {hasMore ? 'more than ' : ''}
          {formatCount(count, `new ${noun}`, `new ${nounPlural}`)}
        </Button>
      )}
    </div>
  );
}
