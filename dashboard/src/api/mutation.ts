/**
 * Sends a request that changes data of the service. On success, shows a notification and reloads the queries of the
 * changed topics.
 */
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Topic } from '../../../src/model/audit.ts';

/**
 * Creates the mutation of a component. `successText` returns the text of the notification. Without `successText`
 * no notification is shown.
 */
export function useApiMutation<Value, Result>(
  request: (value: Value) => Promise<Result>,
  topics: readonly Topic[],
  successText?: (result: Result, value: Value) => string,
) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: request,
    onSuccess: (result, value) => {
      if (successText !== undefined)
        notifications.show({ message: successText(result, value), closeButtonProps: { 'aria-label': 'Close' } });
      for (const topic of [...topics, 'audit']) void queryClient.invalidateQueries({ queryKey: [topic] });
    },
  });
}
