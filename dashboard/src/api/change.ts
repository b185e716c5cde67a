/** A change that somebody makes on a page: told when it is done, and what shows it is asked anew. */
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Topic } from '../../../src/model/topic.ts';

/** `told` makes the line that says it is done; where it is left out the page shows that itself. */
export function useChange<Value, Result>(
  work: (value: Value) => Promise<Result>,
  topics: readonly Topic[],
  told?: (result: Result, value: Value) => string,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: work,
    onSuccess: (result, value) => {
      if (told !== undefined)
        notifications.show({ message: told(result, value), closeButtonProps: { 'aria-label': 'Close' } });
      for (const topic of [...topics, 'audit']) void queries.invalidateQueries({ queryKey: [topic] });
    },
  });
}
