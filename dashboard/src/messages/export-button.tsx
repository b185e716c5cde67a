/**
 * Downloads the messages that match the filters as CSV. The request has the session header, so that the second factor
 * of the session applies.
 */
import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import { getBlob } from '../api/client';
import { saveFile } from '../parts/download';
import type { Filters } from './filters';

export function ExportButton({ filters }: { readonly filters: Filters }) {
  const { mutate, isPending } = useMutation({
    mutationFn: async () => saveFile(await getBlob('/messages/export', filters), 'messages.csv'),
    onError: ({ message }) =>
      notifications.show({ color: 'red', message, closeButtonProps: { 'aria-label': 'Close' } }),
  });
  return (
    <Button variant="default" loading={isPending} onClick={() => mutate()}>
      Export CSV
    </Button>
  );
}
